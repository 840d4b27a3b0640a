"""A log of everything, for those who have a loop of their own."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
import structlog
from structlog.testing import ReturnLoggerFactory, capture_logs

import prism
from prism.agents import SocialAgent
from prism.errors import InputError
from prism.runlog import configure
from prism.statechart import AgentState, Statechart, Transition, social_media_chart

MOVE = "statechart.transition"
ENDS = ("run.started", "run.ended")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a log that does not exist yet."""
    return tmp_path / "events.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def names(path: Path) -> list[str]:
    return [line["event"] for line in lines(path)]


def move(agent_id: str = "ada") -> None:
    """Let a new agent make one move."""
    social_media_chart().fire(SocialAgent(agent_id, interests=["tea"]), "feed_ready")


def fail() -> None:
    """Let a guard raise an exception."""

    def broken(agent: Any, context: Any) -> bool:
        raise LookupError("no such post")

    moves = [Transition("go", AgentState.IDLE, AgentState.SCROLLING, guard=broken)]
    assert (
        Statechart(AgentState, moves, AgentState.IDLE).fire(
            SocialAgent("ada", interests=["tea"]), "go"
        )
        is None
    )


# What is written


def test_one_line_writes_everything(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prism's events and the application's own land in the file between a beginning and an end, and nowhere else."""
    log = structlog.get_logger()
    with configure(path) as opened:
        move()
        log.bind(user="u1").info("mine", cost=2)
        log.debug("detail")
    assert opened.path == path
    assert names(path) == ["run.started", MOVE, "mine", "detail", "run.ended"]
    assert list(lines(path)[2].items())[2:] == [("user", "u1"), ("cost", 2)]
    assert lines(path)[0]["schema"] == prism.telemetry.events.SCHEMA_VERSION
    assert capsys.readouterr() == ("", "")


def test_times_are_real(path: Path) -> None:
    """Every line bears the real time in UTC, and the times never go back."""
    before = datetime.now(UTC)
    with configure(path):
        move()
    after = datetime.now(UTC)
    stamps = [line["timestamp"] for line in lines(path)]
    assert all(stamp.endswith("Z") for stamp in stamps)
    times = [before, *map(datetime.fromisoformat, stamps), after]
    assert times == sorted(times)


def test_what_is_bound_stands_in_every_line(path: Path) -> None:
    """Bound round and tick follow the time, other bound keys follow them, and none displaces a key of the event."""
    with configure(path):
        structlog.contextvars.bind_contextvars(
            seed=7, tick=3, event="bound", timestamp=0, trigger="bound", host="h", round=2
        )
        move()
        structlog.contextvars.clear_contextvars()
        move()
    _, bound, free, _ = lines(path)
    assert list(bound)[:4] == ["event", "timestamp", "round", "tick"]
    assert set(list(bound)[4:7]) == {"seed", "trigger", "host"}
    assert (bound["event"], bound["round"], bound["tick"], bound["trigger"]) == (
        MOVE,
        2,
        3,
        "feed_ready",
    )
    assert datetime.fromisoformat(bound["timestamp"]).tzinfo is UTC
    assert not {"round", "tick", "seed", "host"} & free.keys()


def test_a_fault_is_written_with_its_traceback(path: Path) -> None:
    """A guard that raises leaves its traceback as text, and so does an exception that the application logs."""
    with configure(path):
        fail()
        try:
            raise OSError("disk full")
        except OSError:
            structlog.get_logger().exception("mine")
    _, guard, mine, _ = lines(path)
    assert guard["exception"].endswith("LookupError: no such post")
    assert mine["exception"].startswith("Traceback")
    assert mine["exception"].endswith("OSError: disk full")
    assert not {"exc_info"} & {*guard, *mine}


def test_any_value_can_be_written(path: Path) -> None:
    """A value that JSON has no room for is written as text."""
    with configure(path):
        structlog.get_logger().info(
            "mine", path=Path("a/b"), half="\ud83d", when=datetime(2026, 1, 1, tzinfo=UTC)
        )
    mine = lines(path)[1]
    assert (mine["path"], mine["half"], mine["when"]) == (
        "a/b",
        r"'\ud83d'",
        "2026-01-01T00:00:00Z",
    )


def test_others_can_read_along(path: Path) -> None:
    """A line is in the file as soon as it was logged."""
    with configure(path):
        move()
        assert names(path) == ["run.started", MOVE]


# Beginning and end


def test_closing_leaves_structlog_as_it_was(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the end moves are silent again, loggers print again, and another log can be begun that gets both."""
    log = structlog.get_logger()
    opened = configure(path)
    log.info("first")
    opened.close()
    opened.close()
    assert not structlog.is_configured()
    move()
    log.info("to the terminal")
    assert "to the terminal" in capsys.readouterr().out
    with configure(tmp_path / "second.jsonl"):
        log.info("second")
        move()
    assert names(path) == ["run.started", "first", "run.ended"]
    assert names(tmp_path / "second.jsonl") == ["run.started", "second", MOVE, "run.ended"]


def test_a_run_that_fails_is_closed(path: Path) -> None:
    """Leaving the context by an exception closes the log like any other end."""
    with pytest.raises(KeyError), configure(path):
        raise KeyError
    assert names(path) == list(ENDS)


@pytest.mark.parametrize(
    ("ending", "ends"), [("", True), ("sys.exit(3)", True), ("os._exit(3)", False)]
)
def test_a_log_that_nobody_closes_ends_with_the_process(
    path: Path, ending: str, ends: bool
) -> None:
    """When Python exits the log is complete; after a crash it lacks its end, but nothing that was logged."""
    run_python(f"configure({str(path)!r})\nmove()\n{ending}")
    assert names(path) == ["run.started", MOVE, *(["run.ended"] if ends else [])]


def test_a_disk_that_is_full_in_the_end_is_told_of(path: Path) -> None:
    """Where the end cannot be written when Python exits, one warning says so, and what was logged is there."""
    said = run_python(
        f"configure({str(path)!r})\nmove()\n"
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"size = os.path.getsize({str(path)!r})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))\n",
        strict=False,
    )
    assert f"RuntimeWarning: {path}: is cut off, as it cannot be written to: File too large" in said
    assert "Traceback" not in said
    assert names(path) == ["run.started", MOVE]


def run_python(code: str, *, strict: bool = True) -> str:
    """Run code in a fresh interpreter, which may say nothing if strict; give what it says on stderr."""
    opening = (
        "import os, sys\n"
        "from prism.runlog import configure\n"
        "from prism.agents import SocialAgent\n"
        "from prism.statechart import social_media_chart\n"
        "def move(agent_id='ada'):\n"
        "    social_media_chart().fire(SocialAgent(agent_id, interests=['tea']), 'feed_ready')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(prism.__file__).parents[1])}
    warn = ["-W", "error"] if strict else []
    done = subprocess.run(
        [sys.executable, *warn, "-c", opening + code],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr if strict else "") == ("", "")
    return done.stderr


def test_a_log_is_never_overwritten(path: Path) -> None:
    """A file that exists is refused with a way out, and stays as it is; structlog stays unconfigured."""
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"events\.jsonl: exists already.*name another file"):
        configure(path)
    assert path.read_text(encoding="utf-8") == "mine"
    assert not structlog.is_configured()


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """A file in a folder that does not exist is refused by name."""
    with pytest.raises(
        InputError, match=r"nowhere/events\.jsonl: cannot be written to: No such file"
    ):
        configure(tmp_path / "nowhere" / "events.jsonl")
    assert not structlog.is_configured()


def test_two_logs_at_once_are_refused(path: Path, tmp_path: Path) -> None:
    """A second log beside an open one is refused by the name of the first, which goes on; no file is left."""
    with configure(path):
        with pytest.raises(
            InputError, match=r"second\.jsonl: a log is written to .*events\.jsonl already"
        ):
            configure(tmp_path / "second.jsonl")
        move()
    assert names(path) == ["run.started", MOVE, "run.ended"]
    assert not (tmp_path / "second.jsonl").exists()


# Beside the application's own configuration


def as_json(file: Any, *, cached: bool) -> None:
    """Configure structlog to write JSON lines."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(file),
        cache_logger_on_first_use=cached,
    )


@pytest.mark.parametrize("cached", [True, False])
def test_a_configured_application_gets_the_same_events(
    path: Path, tmp_path: Path, cached: bool
) -> None:
    """Structlog as configured gets every event that the file gets, from cached loggers too, and goes on without it."""
    with (tmp_path / "own.jsonl").open("w", encoding="utf-8") as own:
        as_json(own, cached=cached)
        before = structlog.get_config()
        processors = [*before["processors"]]
        log = structlog.get_logger()
        log.info("before")
        move("eve")
        with configure(path):
            move()
            fail()
            log.info("mine", cost=2)
        log.info("after")
        assert structlog.get_config() == before
        assert before["processors"] == processors
    written = [
        {key: value for key, value in line.items() if key != "timestamp"} for line in lines(path)
    ]
    assert [line["event"] for line in written] == [
        "run.started",
        MOVE,
        "statechart.guard_failed",
        "mine",
        "run.ended",
    ]
    first, moved, *same, last = lines(tmp_path / "own.jsonl")
    assert (first["event"], moved["agent_id"], last["event"]) == ("before", "eve", "after")
    assert same == written


def test_the_file_gets_what_the_application_drops(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Through structlog's standard library loggers, too quiet for moves, the file still gets them."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_log_level,
            structlog.dev.ConsoleRenderer(),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    with configure(path):
        move()
        fail()
    assert names(path) == ["run.started", MOVE, "statechart.guard_failed", "run.ended"]
    assert "log_level" not in lines(path)[1]
    assert [(entry.name, entry.levelname) for entry in caplog.records] == [
        ("prism.statechart", "ERROR")
    ]


def test_a_configuration_that_drops_moves_is_refused(path: Path) -> None:
    """A wrapper class that drops info events is refused with a way out; no file and no processor is left."""
    processors: list[Any] = [structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=processors, wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING)
    )
    with pytest.raises(
        InputError, match=r"events\.jsonl: would lack the transitions.*make_filtering_bound_logger"
    ):
        configure(path)
    assert not path.exists()
    assert len(processors) == 1


def test_a_configuration_that_fails_leaves_nothing(path: Path) -> None:
    """An exception of the application's own processors ends the call, and leaves no file and no processor."""

    def broken(logger: Any, method: str, event: Any) -> Any:
        raise LookupError("broken")

    processors: list[Any] = [broken]
    structlog.configure(processors=processors)
    with pytest.raises(LookupError, match="broken"):
        configure(path)
    assert not path.exists()
    assert processors == [broken]


def test_processors_that_cannot_be_joined_are_refused(path: Path) -> None:
    """Processors that are no list, which cached loggers would not see changed, are refused by their kind."""
    structlog.configure(processors=(structlog.processors.JSONRenderer(),))
    with pytest.raises(InputError, match="configure them as a list, not a tuple"):
        configure(path)
    assert not path.exists()


def configure_anew() -> None:
    """Replace the processors, as an application that sets structlog up too late does."""
    structlog.configure(
        processors=[structlog.processors.JSONRenderer()], logger_factory=ReturnLoggerFactory()
    )


@pytest.mark.parametrize("displace", [configure_anew, structlog.reset_defaults])
def test_a_log_that_was_displaced_says_so(path: Path, displace: Callable[[], None]) -> None:
    """A log that lost its place to a later configuration warns at the end, and does not claim to be complete."""
    opened = configure(path)
    move()
    displace()
    configured = structlog.is_configured()
    with pytest.warns(
        RuntimeWarning, match=r"events\.jsonl: lacks all events since.*configure structlog before"
    ):
        opened.close()
    assert names(path) == ["run.started", MOVE]
    assert structlog.is_configured() is configured


def test_what_comes_after_the_end_is_not_an_error(path: Path) -> None:
    """A configuration that brings a closed log back does not make the application's events fail."""
    structlog.configure(
        processors=[structlog.processors.JSONRenderer()], logger_factory=ReturnLoggerFactory()
    )
    opened = configure(path)
    with capture_logs(), pytest.warns(RuntimeWarning):
        opened.close()
    assert structlog.get_logger().info("late") == '{"event": "late"}'
    assert names(path) == ["run.started"]


def test_the_application_gets_events_as_they_are(path: Path) -> None:
    """The application's processors see an exception itself, and nothing that was bound or stamped for the file."""
    received: list[Any] = []
    structlog.configure(
        processors=[lambda logger, method, event: received.append(dict(event)) or ""]
    )
    structlog.contextvars.bind_contextvars(round=1)
    with configure(path):
        fail()
    _, fault, _ = received
    assert isinstance(fault["exc_info"], LookupError)
    assert not {"exception", "timestamp", "round"} & fault.keys()


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING])
def test_standard_logging_gets_what_it_wants(
    path: Path, caplog: pytest.LogCaptureFixture, level: int
) -> None:
    """Where structlog was not configured, events go on to the standard library's loggers that are enabled for them."""
    with caplog.at_level(level), configure(path):
        move()
        fail()
        structlog.get_logger("mine").warning("hot", degrees=40)
    assert names(path) == ["run.started", MOVE, "statechart.guard_failed", "hot", "run.ended"]
    wanted = {
        logging.INFO: ["run.started", MOVE, "statechart.guard_failed", "hot", "run.ended"],
        logging.WARNING: ["statechart.guard_failed", "hot"],
    }
    assert [entry.prism["event"] for entry in caplog.records] == wanted[level]
    assert {entry.name for entry in caplog.records} == {"prism.statechart", "mine"}


# Threads and processes


@pytest.fixture
def _restless() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_restless")
def test_lines_of_threads_are_whole(path: Path) -> None:
    """Threads that log long and short lines at once leave every one of them whole, each thread's in order."""
    threads, events = 8, 200
    barrier = Barrier(threads)

    def work(number: int) -> None:
        barrier.wait()
        for count in range(events):
            structlog.get_logger().info(
                "mine", thread=number, count=count, text="x" * (20_000 * (count % 20 == 0))
            )

    with configure(path):
        workers = [Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    _, *written, _ = lines(path)
    counts: dict[int, list[int]] = {}
    for line in written:
        counts.setdefault(line["thread"], []).append(line["count"])
    assert counts == {number: list(range(events)) for number in range(threads)}


def test_a_forked_process_writes_to_the_same_log(path: Path) -> None:
    """A forked process adds whole lines beside its parent's, and its end is not the run's."""
    run_python(
        f"configure({str(path)!r})\n"
        "child = os.fork()\n"
        "for count in range(300):\n"
        "    move('child' if child == 0 else 'parent')\n"
        "if child:\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
    )
    first, *moves, last = lines(path)
    assert (first["event"], last["event"]) == ENDS
    assert sorted(line["agent_id"] for line in moves) == ["child"] * 300 + ["parent"] * 300

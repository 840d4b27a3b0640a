"""A log of everything, for those who have a loop of their own."""

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import orjson
import pytest
import structlog
from structlog.testing import ReturnLoggerFactory

import prism
from prism.agents import SocialAgent
from prism.analysis import read_log
from prism.errors import InputError
from prism.runlog import configure
from prism.runs import run_status
from prism.statechart import AgentState, Statechart, Transition, social_media_chart

JOIN, MOVE = "agent.joined", "statechart.transition"
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
    """Let a new agent make one transition."""
    social_media_chart().fire(SocialAgent(agent_id, interests=["tea"]), "feed_ready")


def fail() -> None:
    """Let a guard raise an exception."""

    def broken(agent: Any, context: Any) -> bool:
        raise LookupError("no such post")

    moves = [Transition("go", AgentState.IDLE, AgentState.SCROLLING, guard=broken)]
    chart = Statechart(AgentState, moves, AgentState.IDLE, name="social_media")
    assert chart.fire(SocialAgent("ada", interests=["tea"]), "go") is None


# What is written


def test_one_line_writes_everything(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Events of prism and of the application are in the file, between start and end."""
    log = structlog.get_logger()
    with configure(path) as opened:
        move()
        log.bind(user="u1").info("mine", cost=2)
        log.debug("detail")
    assert opened.path == path
    assert names(path) == ["run.started", JOIN, MOVE, "mine", "detail", "run.ended"]
    assert list(lines(path)[3].items())[2:] == [("user", "u1"), ("cost", 2)]
    assert lines(path)[0]["schema"] == prism.telemetry.events.SCHEMA_VERSION
    assert capsys.readouterr() == ("", "")


def test_every_line_contains_what_is_bound(path: Path) -> None:
    """Bound round and tick follow the time, then other bound keys; event keys take precedence."""
    with configure(path):
        structlog.contextvars.bind_contextvars(
            seed=7, tick=3, event="bound", timestamp=0, trigger="bound", host="h", round=2
        )
        move()
        structlog.contextvars.clear_contextvars()
        move()
    _, _, bound, free, _ = lines(path)
    assert list(bound)[:4] == ["event", "timestamp", "round", "tick"]
    assert set(list(bound)[4:7]) == {"seed", "trigger", "host"}
    own = {"event": MOVE, "round": 2, "tick": 3, "trigger": "feed_ready"}
    assert bound | own == bound
    assert datetime.fromisoformat(bound["timestamp"]).tzinfo is UTC
    assert not {"round", "tick", "seed", "host"} & free.keys()


# Beginning and end


def test_closing_restores_structlog(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After closing, structlog is as before, and another log can be opened."""
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
    assert names(tmp_path / "second.jsonl") == ["run.started", "second", JOIN, MOVE, "run.ended"]


def test_a_run_that_fails_is_closed(path: Path) -> None:
    """An exception inside the ``with`` statement closes the log, too."""
    with pytest.raises(KeyError), configure(path):
        raise KeyError("ada")
    assert names(path) == list(ENDS)
    assert orjson.loads(path.read_bytes().splitlines()[-1])["error"] == "KeyError: 'ada'"
    status = run_status(path)
    assert (status.state, status.problem) == ("stopped", "KeyError: 'ada'")


@pytest.mark.parametrize(
    ("ending", "said", "state", "problem"),
    [
        ("sys.exit(3)", "", "complete", "None"),
        ("os._exit(3)", "", "stopped", "its process ended without a reason"),
        ("raise ValueError('no ink')", "ValueError: no ink", "stopped", "ValueError: no ink"),
    ],
)
def test_an_open_log_ends_with_the_process(
    path: Path, ending: str, said: str, state: str, problem: str
) -> None:
    """After a crash only the end is missing; an exception that ends the program is in the log."""
    err = run_python(f"configure({str(path)!r})\nmove()\n{ending}")
    assert err.rpartition("\n")[0].rpartition("\n")[2] == said
    ends = [] if ending.startswith("os") else ["run.ended"]
    assert names(path) == ["run.started", JOIN, MOVE, *ends]
    assert run_status(path).state == state
    assert str(run_status(path).problem).startswith(problem)


def run_python(code: str) -> str:
    """Run code in a fresh interpreter, and return what it says on stderr."""
    opening = (
        "import os, sys\n"
        "from prism.runlog import configure\n"
        "from prism.agents import SocialAgent\n"
        "from prism.statechart import social_media_chart\n"
        "def move(agent_id='ada'):\n"
        "    social_media_chart().fire(SocialAgent(agent_id, interests=['tea']), 'feed_ready')\n"
    )
    line = [sys.executable, "-W", "error", "-c", opening + code]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.stdout == ""
    return done.stderr


LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({}, -1))"


@pytest.mark.parametrize(
    ("fault", "cure", "kept"),
    [
        (LIMIT.format(400), LIMIT.format(-1), ["run.started", *[JOIN, MOVE] * 3]),
        ("os.rename('../a', '../b')", "os.mkdir('../a')", [JOIN, MOVE]),
    ],
    ids=["a full disk", "no folder"],
)
def test_a_line_that_cannot_be_written_breaks_no_transition(
    fault: str, cure: str, kept: list[str], tmp_path: Path
) -> None:
    """It is shown by the standard library's logging, and the log goes on as soon as it can be."""
    path = tmp_path / "a" / "events.jsonl"
    path.parent.mkdir()
    acts = ["move('a')", fault, "move('b')", cure, "move('c')"]
    opening = [f"os.chdir({str(path.parent)!r})", f"configure({str(path)!r})"]
    said = run_python("\n".join([*opening, *acts])).splitlines()
    assert len(said) == 2
    assert all(str(path) in line and '"agent_id":"b"' in line for line in said)
    assert names(path) == [*kept, "run.ended"]


@pytest.mark.parametrize("device", ["/dev/full", "/dev"])
def test_what_is_no_file_is_refused(device: str) -> None:
    """A device may have no end to begin to write at."""
    with pytest.raises(InputError, match=f"{device}: is no log"):
        configure(device)


@pytest.mark.parametrize("first", ["mine", '["mine"]', '{"event":"run.started","agents":3}'])
def test_a_file_of_another_kind_is_refused(path: Path, first: str) -> None:
    """What is no such log is not changed, that of a simulation included."""
    path.write_text(first, encoding="utf-8")
    with pytest.raises(InputError, match=r"events\.jsonl: is no log of.*name another file"):
        configure(path)
    assert path.read_text(encoding="utf-8") == first
    assert not structlog.is_configured()


@pytest.mark.parametrize("end", [b"", b'{"event":"statech'])
def test_a_program_that_begins_again_goes_on_in_its_log(path: Path, end: bytes) -> None:
    """Its runs follow each other, without the line that a crash cut off; the last is read."""
    with configure(path):
        move()
    with path.open("ab") as file:
        file.write(end)
    with configure(path):
        chart = social_media_chart()
        chart.adopt(SocialAgent("bo"))
        chart.fire(SocialAgent("cy"), "sees_post")
    assert names(path) == [
        *("run.started", JOIN, MOVE, "run.ended"),
        *("run.started", JOIN, JOIN, "run.ended"),
    ]
    logs = read_log(path)
    states = logs.sql("select agent_id, state from agents").fetchall()
    assert states == [("bo", "idle"), ("cy", "idle")]
    assert [note.kind for note in logs.notes] == ["earlier_runs"]


def test_two_logs_at_once_are_refused(path: Path, tmp_path: Path) -> None:
    """A second log is refused while one is open; no file is left."""
    with configure(path):
        with pytest.raises(
            InputError, match=r"second\.jsonl: a log is already being written to .*events\.jsonl"
        ):
            configure(tmp_path / "second.jsonl")
        move()
    assert names(path) == ["run.started", JOIN, MOVE, "run.ended"]
    assert not (tmp_path / "second.jsonl").exists()


def test_a_log_survives_rotation(path: Path) -> None:
    """Renamed, deleted or truncated meanwhile, the file of that name gets the following lines."""
    with configure(path):
        move("a")
        path.rename(path.with_suffix(".1"))
        move("b")
        assert names(path) == [JOIN, MOVE]
        path.unlink()
        move("c")
        assert [line["agent_id"] for line in lines(path)] == ["c", "c"]
        path.write_bytes(b"")
        move("d")
    assert names(path.with_suffix(".1")) == ["run.started", JOIN, MOVE]
    assert names(path) == [JOIN, MOVE, "run.ended"]
    with configure(path):
        move("e")
    assert names(path) == [JOIN, MOVE, "run.ended", "run.started", JOIN, MOVE, "run.ended"]


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
    """A configured structlog gets every event of the file, from cached loggers, too."""
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
    expected = ["run.started", JOIN, MOVE, "statechart.guard_failed", "mine", "run.ended"]
    assert names(path) == expected
    first, moved, *same, last = lines(tmp_path / "own.jsonl")
    assert (first["event"], moved["agent_id"], last["event"]) == ("before", "eve", "after")
    assert same == written


def test_the_file_gets_events_that_the_application_drops(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The file gets transitions even if structlog's standard library loggers drop them."""
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
    assert names(path) == ["run.started", JOIN, MOVE, "statechart.guard_failed", "run.ended"]
    assert "log_level" not in lines(path)[1]
    assert [(entry.name, entry.levelname) for entry in caplog.records] == [
        ("prism.statechart", "ERROR")
    ]


@pytest.mark.parametrize(
    ("level", "details", "lacks"),
    [(logging.WARNING, False, "transitions"), (logging.INFO, True, "details")],
)
def test_a_configuration_that_drops_events_is_refused(
    level: int, details: bool, lacks: str, path: Path
) -> None:
    """A wrapper class that drops what is to be logged is refused; no file or processor is left."""
    processors: list[Any] = [structlog.processors.JSONRenderer()]
    wrapper = structlog.make_filtering_bound_logger(level)
    structlog.configure(processors=processors, wrapper_class=wrapper)
    with pytest.raises(InputError, match=rf"events\.jsonl: would lack the {lacks}.* such as "):
        configure(path, details=details)
    assert not path.exists()
    assert len(processors) == 1


def configure_anew() -> None:
    """Replace the processors, as an application that configures structlog too late does."""
    structlog.configure(
        processors=[structlog.processors.JSONRenderer()], logger_factory=ReturnLoggerFactory()
    )


@pytest.mark.parametrize("displace", [configure_anew, structlog.reset_defaults])
def test_a_displaced_log_warns(path: Path, displace: Callable[[], None]) -> None:
    """A log that a later configuration displaced warns, and has no end event."""
    opened = configure(path)
    move()
    displace()
    configured = structlog.is_configured()
    with pytest.warns(
        RuntimeWarning, match=r"events\.jsonl: lacks all events since.*configure structlog before"
    ):
        opened.close()
    assert names(path) == ["run.started", JOIN, MOVE]
    assert structlog.is_configured() is configured


# Threads and processes


@pytest.fixture
def _restless() -> Iterator[None]:
    """Let threads switch as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_restless")
def test_lines_of_threads_are_whole(path: Path) -> None:
    """Lines of concurrent threads are whole, and in order for each thread."""
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


@pytest.mark.slow
def test_a_forked_process_writes_to_the_same_log(path: Path) -> None:
    """A forked process adds whole lines, and its end does not end the log."""
    said = run_python(
        f"configure({str(path)!r})\n"
        "child = os.fork()\n"
        "for count in range(100):\n"
        "    move('child' if child == 0 else 'parent')\n"
        "if child:\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
    )
    assert said == ""
    first, *moves, last = lines(path)
    assert (first["event"], last["event"]) == ENDS
    assert sorted(line["agent_id"] for line in moves) == ["child"] * 101 + ["parent"] * 101

"""Writing a run's log."""

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import structlog

from prism.agents import SocialAgent
from prism.runlog import RunLog, SimulatedClock
from prism.statechart import AgentState, Statechart, Transition, social_media_chart
from prism.telemetry import events

OpenLog = Callable[..., RunLog]


def lines(log: RunLog) -> list[dict[str, Any]]:
    """Close a log and return its lines."""
    log.close()
    return [json.loads(line) for line in log.path.read_bytes().splitlines()]


def configure_for_a_terminal() -> None:
    """Configure structlog for errors only, as text, cached, with a context."""
    structlog.contextvars.bind_contextvars(request="r1")
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, structlog.dev.ConsoleRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=True,
    )


def configure_to_drop_everything() -> None:
    """Configure structlog to write nothing."""

    def drop(logger: Any, method: str, event: Any) -> Any:
        raise structlog.DropEvent

    structlog.configure(processors=[drop])


def run(log: RunLog, clock: SimulatedClock) -> None:
    """Drive an agent through a round, as a simulation does."""
    chart = social_media_chart(logger=log.logger, clock=clock)
    agent = SocialAgent("ann", interests=["tea"])
    clock.begin_round(1)
    log.logger.info(events.ROUND_STARTED, agents=1)
    for trigger in ("feed_ready", "sees_post", "decides", "compose_done", "round_ends"):
        clock.advance()
        chart.fire(agent, trigger, {"relevance": 0.9})
    log.logger.info(events.ROUND_ENDED, states={AgentState.IDLE: 1})


def test_what_is_saved_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that was logged before is in the file when the file is synchronized."""
    path, synchronized = tmp_path / "events.jsonl", []
    monkeypatch.setattr("os.fsync", lambda _: synchronized.append(path.read_bytes()))
    with RunLog(path) as log:
        log.logger.info(events.ROUND_STARTED)
        log.save()
    assert synchronized == [path.read_bytes()]
    assert b"round.started" in synchronized[0]


def test_every_line_begins_with_event_and_time(open_log: OpenLog) -> None:
    """The first keys of a line are event, timestamp, round and tick."""
    clock = SimulatedClock()
    log = open_log(clock=clock)
    log.logger.info("run.started", seed=7)
    clock.begin_round(2)
    clock.advance()
    log.logger.warning("late", why="rain")
    log.close()
    assert log.path.read_text().splitlines() == [
        '{"event":"run.started","timestamp":"2026-01-01T00:00:00Z","round":0,"tick":0,"seed":7}',
        '{"event":"late","timestamp":"2026-01-01T00:01:00Z","round":2,"tick":1,"why":"rain"}',
    ]


def test_an_applications_own_keys_stand_once(open_log: OpenLog) -> None:
    """A line in which an application gives its own round has that one alone; one may have none."""
    log = open_log(clock=SimulatedClock())
    log.logger.info("mine", round="last", why="rain")
    log.logger.info("bare")
    log.close()
    stamp = '"timestamp":"2026-01-01T00:00:00Z"'
    assert log.path.read_text().splitlines() == [
        f'{{"event":"mine",{stamp},"round":"last","tick":0,"why":"rain"}}',
        f'{{"event":"bare",{stamp},"round":0,"tick":0}}',
    ]


def test_a_log_is_never_overwritten(open_log: OpenLog) -> None:
    """Opening a log on an existing file raises an error and does not change the file."""
    log = open_log()
    log.logger.info("first")
    log.close()
    before = log.path.read_bytes()
    with pytest.raises(FileExistsError):
        open_log()
    assert log.path.read_bytes() == before != b""


@pytest.mark.parametrize("cut", [1, 2])
def test_a_whole_line_whose_end_is_missing_is_kept(open_log: OpenLog, cut: int) -> None:
    """A line that is cut off leaves the file; if only its end is missing, it gets one."""
    log = open_log()
    log.logger.info("first")
    log.close()
    whole = log.path.read_bytes()
    log.path.write_bytes(whole[:-cut])
    with RunLog(log.path, SimulatedClock(), append=True) as again:
        again.logger.info("first")
    assert log.path.read_bytes() == whole * (3 - cut)


def test_without_a_clock_time_is_real(tmp_path: Path) -> None:
    """A log without a clock writes real time, each line at once."""
    before = datetime.now(UTC)
    with RunLog(tmp_path / "run.jsonl") as log:
        log.logger.info("free", a=1)
        (free,) = map(json.loads, log.path.read_bytes().splitlines())
    assert not structlog.is_configured()
    assert list(free) == ["event", "timestamp", "a"]
    assert before <= datetime.fromisoformat(free["timestamp"]) <= datetime.now(UTC)


def test_with_a_clock_bound_keys_are_not_written(open_log: OpenLog) -> None:
    """A log of simulated time contains no bound keys."""
    log = open_log()
    structlog.contextvars.bind_contextvars(host="h", tick=2)
    log.logger.info("first")
    (line,) = lines(log)
    assert (list(line), line["tick"]) == (["event", "timestamp", "round", "tick"], 0)


@pytest.mark.parametrize("configure", [configure_for_a_terminal, configure_to_drop_everything])
def test_the_log_does_not_depend_on_the_configuration(
    open_log: OpenLog, capsys: pytest.CaptureFixture[str], configure: Callable[[], None]
) -> None:
    """However structlog is configured, the log gets every event and the terminal none."""
    clocks = [SimulatedClock() for _ in range(3)]
    plain = open_log("plain.jsonl", clocks[0])
    run(plain, clocks[0])
    opened_before = open_log("before.jsonl", clocks[1])
    configure()
    opened_after = open_log("after.jsonl", clocks[2])
    run(opened_before, clocks[1])
    run(opened_after, clocks[2])
    assert lines(opened_before) == lines(opened_after) == lines(plain)
    assert capsys.readouterr() == ("", "")


def test_a_fault_is_logged_with_its_traceback(open_log: OpenLog) -> None:
    """The traceback of a guard that raises is in its line as text."""

    def broken(agent: Any, context: Any) -> bool:
        raise RuntimeError("no such mood")

    log = open_log()
    moves = [Transition("go", AgentState.IDLE, AgentState.SCROLLING, guard=broken)]
    chart = Statechart(AgentState, moves, AgentState.IDLE, logger=log.logger)
    assert chart.fire(SocialAgent("ann"), "go") is None
    (line,) = lines(log)
    assert (line["event"], line["agent_id"]) == (events.GUARD_FAILED, "ann")
    assert line["error"] == "RuntimeError: no such mood"
    assert line["exception"].startswith("Traceback (most recent call last):\n")
    assert "in broken\n" in line["exception"]
    assert line["exception"].endswith("RuntimeError: no such mood")
    assert "exc_info" not in line


Mood = StrEnum("Mood", ["CALM"])


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Mood.CALM, "calm"),
        ({Mood.CALM: 1, 2: None}, {"calm": 1, "2": None}),
        (("a", 1.5, True), ["a", 1.5, True]),
        (float("nan"), None),
        ("Grüße ☕\u2028", "Grüße ☕\u2028"),
        (Path("runs/one"), "runs/one"),
        (b"raw", "b'raw'"),
        (ValueError("bad"), "bad"),
        (2**64, "18446744073709551616"),
        ("\ud83d", r"'\ud83d'"),
        ({("a", 1): "b"}, "{('a', 1): 'b'}"),
        ({"text": "ü\ud83d"}, r"{'text': 'ü\ud83d'}"),
        (ENDLESS, "[[[[[[[...]]]]]]]"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_any_value_can_be_logged(open_log: OpenLog, value: Any, expected: Any) -> None:
    """A JSON value is written as it is, any other value as text."""
    log = open_log()
    log.logger.info("seen", value=value, other={"a": [1]})
    log.logger.info("next")
    first, second = lines(log)
    assert (first["value"], first["other"], second["event"]) == (expected, {"a": [1]}, "next")


def test_keys_that_are_bound_to_the_logger_stand_in_every_line(open_log: OpenLog) -> None:
    """A transition has the keys that were bound to the log's own logger."""
    log = open_log()
    chart = social_media_chart(logger=log.logger.bind(arm="a"))
    chart.fire(SocialAgent("ann"), "feed_ready")

    assert [line["arm"] for line in lines(log)] == ["a"]

"""One run as the viewer follows it: what is wrong with its log, and what its rounds are called."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.kit import make
from tests.kit.visits import Visitor
from tests.kit.waiting import wait_until

WriteLog = Callable[..., Path]
Visit = Callable[[Any], Visitor]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a log be looked at more often than for people."""
    monkeypatch.setattr("prism.watch._watched.SECONDS_BETWEEN", 0.02)
    monkeypatch.setattr("prism.watch._watched._SECONDS_OF_STATUS", 0.02)


def test_only_a_line_that_is_cut_off_is_reported(
    folder: Path, visit: Visit, tmp_path: Path
) -> None:
    """A complete run has nothing that is wrong, unless its last line has no end."""
    client = visit(shutil.copytree(folder, tmp_path / "run"))
    head = client.ask("/head")
    assert (head["state"], head["notes"]) == ("complete", [])
    with (tmp_path / "run" / "events.jsonl").open("ab") as log:
        log.write(b'{"event": "round.en')
    wait_until(lambda: client.ask("/head")["notes"])
    (note,) = client.ask("/head")["notes"]
    assert note.endswith("events.jsonl: the last line is cut off and left out")


@pytest.mark.slow
def test_what_was_read_again_is_reported_once(write_log: WriteLog, visit: Visit) -> None:
    """However often a log is replaced, one note says that it was read again."""
    log = write_log([make.started(), make.joined("a", "x")])
    client = visit(log)
    for number in range(2):
        joined = (make.joined(f"b{each}", "x") for each in range(number + 2))
        write_log([make.started(), *joined], "new.jsonl").replace(log)
        wait_until(lambda: client.ask("/head")["read"] == log.stat().st_size)
    (note,) = client.ask("/head")["notes"]
    assert "it was read again from the beginning" in note


@pytest.mark.slow
def test_a_long_log_that_has_ended_is_read_from_the_file_that_is_kept_of_it(
    write_log: WriteLog, visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there at once, and is followed again if it goes on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    moves = [make.move("x", "a", "b", padding="x" * 900)] * 10_000
    log = write_log([make.started(), *moves])
    client = visit(log)
    assert len([*(tmp_path / "cache").rglob("*.duckdb")]) == 1
    assert client.ask("/head")["read"] == log.stat().st_size
    assert ">10,000\u00d7<" in client.html("/round")["the-chart"]
    with log.open("ab") as file:
        file.write(orjson.dumps(make.move("y", "a", "b")) + b"\n")
    wait_until(lambda: client.ask("/head")["read"] == log.stat().st_size)
    assert ">10,001\u00d7<" in client.html("/round")["the-chart"]
    assert any("has gone on" in note for note in client.ask("/head")["notes"])


@pytest.mark.parametrize(
    ("event", "agents", "unit"),
    [
        ("workflow.step", "a", "turn"),
        ("cognition.cycle", "a", "cycle"),
        ("world.sold", "a", "round"),
        ("workflow.step", "ab", "round"),
    ],
)
@pytest.mark.sampled(4)
def test_an_agent_that_runs_alone_has_turns_or_cycles(
    event: str, agents: str, unit: str, visit: Visit
) -> None:
    """What a round is called follows from what the log tells of whom."""
    joined = [make.joined(agent, "x") for agent in agents]
    client = visit([make.started(), *joined, make.event(event, agent_id="a")])
    assert client.ask("/head")["unit"] == unit

"""One run as the viewer follows it: what is wrong with its log, and what its rounds are called."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import orjson
import pytest

from prism.watch._watched import Watched
from tests.kit import make
from tests.kit.waiting import wait_until

WriteLog = Callable[..., Path]
Follow = Callable[[Path], Watched]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a log be looked at more often than for people."""
    monkeypatch.setattr("prism.watch._watched.SECONDS_BETWEEN", 0.02)
    monkeypatch.setattr("prism.watch._watched._SECONDS_OF_STATUS", 0.02)


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Return a function that follows a run until the test ends, and has read its log."""
    with ExitStack() as stack:

        def followed(run: Path) -> Watched:
            watched = Watched(run, "real")
            stack.callback(watched.close)
            wait_until(lambda: watched.read > 0)
            return watched

        yield followed


def test_only_a_line_that_is_cut_off_is_told(folder: Path, follow: Follow, tmp_path: Path) -> None:
    """A complete run has nothing that is wrong, unless its last line has no end."""
    run = shutil.copytree(folder, tmp_path / "run")
    watched = follow(run)
    assert (watched.status.state, watched.notes()) == ("complete", [])
    with (run / "events.jsonl").open("ab") as log:
        log.write(b'{"event": "round.en')
    wait_until(watched.notes)
    (note,) = watched.notes()
    assert note.endswith("events.jsonl: the last line is cut off and left out")


def test_what_was_read_again_is_told_once(write_log: WriteLog, follow: Follow) -> None:
    """However often a log is replaced, one note says that it was read again."""
    log = write_log([make.started(), make.joined("a", "x")])
    watched = follow(log)
    for _ in range(2):
        version = watched.version
        shutil.copy(log, log.with_suffix(".new")).replace(log)
        wait_until(lambda before=version: watched.version >= before + 2)
    (note,) = watched.notes()
    assert "it was read again from the beginning" in note


@pytest.mark.slow
def test_a_long_log_that_has_ended_is_read_from_the_file_that_is_kept_of_it(
    write_log: WriteLog,
    follow: Follow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is there at once, and is followed again if it goes on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    moves = [make.move("x", "a", "b", padding="x" * 900)] * 10_000
    log = write_log([make.started(), *moves])
    watched = follow(log)
    assert len([*(tmp_path / "cache").rglob("*.duckdb")]) == 1
    assert watched.read == log.stat().st_size
    assert watched.rows("select count(*) as moves from events where agent_id = 'x'") == [
        {"moves": 10_000}
    ]
    with log.open("ab") as file:
        file.write(orjson.dumps(make.move("y", "a", "b")) + b"\n")
    wait_until(lambda: watched.read == log.stat().st_size)
    assert watched.rows("select count(*) as n from events where agent_id = 'y'") == [{"n": 1}]
    assert any("has gone on" in note for note in watched.notes())


@pytest.mark.parametrize(
    ("event", "agents", "unit"),
    [
        ("workflow.step", "a", "turn"),
        ("cognition.cycle", "a", "cycle"),
        ("world.sold", "a", "round"),
        ("workflow.step", "ab", "round"),
    ],
)
def test_an_agent_that_runs_alone_has_turns_or_cycles(
    event: str, agents: str, unit: str, write_log: WriteLog, follow: Follow
) -> None:
    """What a round is called follows from what the log tells of whom."""
    joined = [make.joined(agent, "x") for agent in agents]
    watched = follow(write_log([make.started(), *joined, make.event(event, agent_id="a")]))
    wait_until(lambda: watched.read == watched.tail.size)
    assert watched.unit == unit

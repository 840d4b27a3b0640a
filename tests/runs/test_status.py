"""How far runs are, seen from outside."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from prism import Run, resume
from prism.errors import InputError
from prism.llm import Model
from prism.runlog import RunLog
from prism.runs import RunStatus, find_runs, run_status
from prism.runs._running import go_on
from prism.runs._status import HEARTBEAT_NAME, read_heartbeat
from prism.social import Feed
from prism.testing import FakeOllama
from tests.kit.dice import DiceOptions, StoppedError, stop_after, tree
from tests.kit.kept import begin
from tests.kit.waiting import wait_until

WriteLog = Callable[..., Path]

RUN = Run(Feed, 20, rounds=3, seed=1)


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that has come to its end."""
    path = tmp_path_factory.mktemp("runs") / "complete"
    RUN.keep(path)
    return path


@pytest.fixture
def cut(complete: Path, tmp_path: Path) -> Path:
    """Return the folder of a run that lost power in the third tick of its second round."""
    path = tmp_path / "cut"
    shutil.copytree(complete, path)
    summary = orjson.loads((path / "run.json").read_bytes())
    del summary["results"]
    (path / "run.json").write_bytes(orjson.dumps(summary))

    lines = (complete / "events.jsonl").read_bytes().splitlines(keepends=True)
    until = [b'"round":2,"tick":3' in line for line in lines].index(True) + 1
    (path / "events.jsonl").write_bytes(b"".join(lines[:until]) + b'{"event":"stat')
    return path


def test_a_complete_run(complete: Path) -> None:
    """A run with results is complete, at its last round and tick, whatever else is there."""
    assert run_status(complete) == RunStatus(complete, "complete", 3, 12, 3, 12)


def test_a_run_while_it_runs(tmp_path: Path) -> None:
    """A run is running as long as its log is locked, with its plan from the beginning."""
    found: list[RunStatus] = []
    path = tmp_path / "run"
    RUN.keep(path, on_round=lambda _summary: found.append(run_status(path)))
    assert {status.state for status in found} == {"running"}
    assert [(each.round, each.tick, each.rounds, each.ticks_per_round) for each in found] == [
        (number, 12, 3, 12) for number in (1, 2, 3)
    ]
    assert run_status(path).state == "complete"


def test_a_look_disturbs_nobody(tmp_path: Path) -> None:
    """A log can be opened to be written while somebody looks at it again and again."""
    path = tmp_path / "events.jsonl"
    path.touch()
    seen, is_over = Counter[str](), Event()

    def look() -> None:
        while not is_over.wait(0.0001):
            seen[run_status(path).state] += 1

    looking = Thread(target=look)
    looking.start()
    try:
        wait_until(lambda: seen["not begun"])
        for number in range(100):
            with RunLog(path, append=True):
                if not number:
                    wait_until(lambda: seen["running"])
    finally:
        is_over.set()
        looking.join()
    assert set(seen) == {"not begun", "running"}


def test_a_stopped_run_without_a_heartbeat(cut: Path) -> None:
    """Without a sign of life the log says where a run was, however it is cut off."""
    assert run_status(cut) == RunStatus(cut, "stopped", 2, 3, 3, 12)


@pytest.mark.parametrize(
    ("heartbeat", "rate", "left"),
    [
        ({"ended": 1, "done": 1, "seconds": 0.5}, 2.0, 1.0),
        ({"ended": 3, "done": 2, "seconds": 4}, 0.5, 0.0),
        ({"ended": 1, "done": 0, "seconds": 3}, None, None),
        ({"ended": 1}, None, None),
    ],
)
def test_speed_and_time_left_are_those_since_it_was_resumed(
    heartbeat: Any, rate: float | None, left: float | None, cut: Path
) -> None:
    """Only rounds done since then count, and only while the run is alive."""
    (cut / HEARTBEAT_NAME).write_bytes(orjson.dumps({"rounds": 3, **heartbeat}))
    assert run_status(cut) == RunStatus(cut, "stopped", 2, 3, 3, 12)
    with RunLog(cut / "events.jsonl", append=True):
        status = run_status(cut)
    assert (status.state, status.rate, status.seconds_left) == ("running", rate, left)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"prism": 1}', b"\xff"])
def test_a_damaged_summary_is_told(content: bytes, cut: Path) -> None:
    """A run whose summary cannot be read is damaged, and the status says where."""
    (cut / "run.json").write_bytes(content)
    status = run_status(cut)
    assert (status.state, status.round) == ("damaged", None)
    assert "run.json" in str(status.problem)


def test_a_log_without_a_folder(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A log of one's own loop is complete with its end, and stopped without."""
    lines = [make.move("x", "a", "b", round=4, tick=2), make.event("run.ended", round=4, tick=2)]
    path = write_log(lines, "own.jsonl")
    assert run_status(path) == RunStatus(path, "complete", 4, 2)
    path = write_log(lines[:1], "other.jsonl")
    assert run_status(path) == RunStatus(path, "stopped", 4, 2)
    path = write_log([{"event": "x"}, b"\x00" * 100_000], "odd.jsonl")
    assert run_status(path) == RunStatus(path, "stopped")


def test_something_without_ticks(tmp_path: Path) -> None:
    """A run of anything has a status: what it does not say is open."""
    with pytest.raises(StoppedError):
        begin(DiceOptions(), tmp_path / "dice", on_round=stop_after(2))
    status = run_status(tmp_path / "dice")
    assert (status.state, status.round, status.rounds) == ("stopped", 2, 5)
    assert status.ticks_per_round is None


def test_no_run_is_an_error(tmp_path: Path) -> None:
    """A folder without a run, and a file that is not there, are refused."""
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError):
            run_status(path)


def test_runs_are_found_below(complete: Path, tmp_path: Path) -> None:
    """Runs are found by name, down to four levels, but not in hidden folders or behind links."""
    places = ("b", "a/x", "1/2/3/4", "1/2/3/4x/5", ".hidden/run", "b/inside")
    for place in places:
        shutil.copytree(complete, tmp_path / place, dirs_exist_ok=True)
    (tmp_path / "link").symlink_to(complete)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "empty").mkdir()
    assert find_runs(tmp_path) == [tmp_path / place for place in ("1/2/3/4", "a/x", "b")]
    assert find_runs(tmp_path / "b") == [tmp_path / "b"]
    assert find_runs(tmp_path / "nowhere") == []


def files_in(folder: Path) -> set[str]:
    """Return the names of everything in a folder."""
    return {path.name for path in folder.iterdir()}


def test_a_run_tells_how_far_it_is_until_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds, speed and what its model has cost, as in the end; nothing of that is left."""
    monkeypatch.setattr("prism.runs._status._SECONDS_BETWEEN", 0.0)
    found: list[RunStatus] = []
    run = tmp_path / "run"
    with FakeOllama() as server:
        model = Model("llama3.2", hosts=(server.host,))
        Run(Feed, 20, rounds=2, reasoner=model).keep(
            run, on_round=lambda _: found.append(run_status(run))
        )
    assert [(each.round, each.rounds, each.ticks_per_round) for each in found] == [
        (number, 2, 12) for number in (1, 2)
    ]
    assert all(each.rate and each.rate > 0 for each in found)
    assert found[0].seconds_left == pytest.approx(1 / (found[0].rate or 0))
    assert found[0].spent is not None
    assert 0 < found[0].spent["calls"] <= run_status(run).spent["calls"]
    assert found[1].spent == run_status(run).spent
    assert files_in(run) == {"events.jsonl", "run.json", "answers.jsonl"}


def test_a_resumed_run_counts_its_speed_from_where_it_had_been_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds that it only does again say nothing of the time that is left."""
    monkeypatch.setattr("prism.runs._status._SECONDS_BETWEEN", 0.0)
    found: list[Any] = []

    def stop(summary: Any) -> None:
        if summary.number == 2:
            raise StoppedError

    run = tmp_path / "run"
    with pytest.raises(StoppedError):
        RUN.replace(rounds=4).keep(run, on_round=stop)
    resume(run, on_round=lambda _: found.append(read_heartbeat(run)))
    assert [(each["ended"], each["done"]) for each in found] == [(1, 0), (2, 1), (3, 2), (4, 3)]


def test_a_run_that_fails_leaves_none(tmp_path: Path) -> None:
    """It is removed when a run is stopped by an exception, too."""
    with pytest.raises(StoppedError):
        begin(DiceOptions(), tmp_path / "run", on_round=stop_after(2))
    assert files_in(tmp_path / "run") == {"events.jsonl", "run.json"}


def test_one_that_a_complete_run_left_goes_when_it_is_resumed(tmp_path: Path) -> None:
    """A run that was killed after its last line, before its heartbeat was removed, is tidied up."""
    begin(DiceOptions(2), tmp_path / "run")
    whole = tree(tmp_path / "run")
    (tmp_path / "run" / HEARTBEAT_NAME).write_text("{}", encoding="utf-8")

    assert go_on(tmp_path / "run", DiceOptions) is None
    assert tree(tmp_path / "run") == whole


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"round": 1}'])
def test_a_damaged_one_is_passed_over(content: bytes, tmp_path: Path) -> None:
    """Whatever stands in the file, it is read or passed over, and never fails."""
    (tmp_path / HEARTBEAT_NAME).write_bytes(content)
    assert read_heartbeat(tmp_path) == {}
    assert read_heartbeat(tmp_path / "nowhere") == {}

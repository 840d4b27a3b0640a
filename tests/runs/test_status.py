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
from prism.runs import Observer, RunStatus, find_runs, run_status
from prism.runs._running import go_on
from prism.runs._status import HEARTBEAT_NAME, read_heartbeat
from prism.social import Feed
from prism.testing import Asked, FakeOllama
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
    assert {(status.rounds, status.ticks_per_round, status.questions) for status in found} == {
        (3, 12, 0)
    }
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
            with RunLog(path, keep=0):
                if not number:
                    wait_until(lambda: seen["running"])
    finally:
        is_over.set()
        looking.join()
    assert set(seen) == {"not begun", "running"}


def test_a_stopped_run_without_a_heartbeat(cut: Path) -> None:
    """Without a sign of life the log says where a run was, however it is cut off."""
    assert run_status(cut) == RunStatus(cut, "stopped", 2, 3, 3, 12)


def test_a_stopped_run_of_another_version_says_what_resumes_it(cut: Path) -> None:
    """The status of a run that this version refuses to resume names the version that does."""
    summary = orjson.loads((cut / "run.json").read_bytes())
    (cut / "run.json").write_bytes(orjson.dumps({**summary, "prism": "0.0.1"}))
    found = run_status(cut)
    assert found.state == "stopped"
    assert "resume it with prism 0.0.1" in str(found.problem)
    with pytest.raises(InputError) as refused:
        resume(cut)
    assert refused.value.problem == found.problem


def heartbeat(**keys: Any) -> bytes:
    """Return a heartbeat in the fifth tick of the second round, some seconds after the start."""
    found = {"round": 2, "rounds": 3, "tick": 5, "ticks_per_round": 12, "questions": 4}
    return orjson.dumps({**found, "done": 17, "seconds": 8.5, **keys})


def test_a_killed_run_was_where_its_heartbeat_says(cut: Path) -> None:
    """A heartbeat that was left behind says where a run was stopped, but not that it is alive."""
    (cut / "heartbeat.json").write_bytes(heartbeat())
    assert run_status(cut) == RunStatus(cut, "stopped", 2, 5, 3, 12)


@pytest.mark.parametrize(
    ("keys", "rate", "left"),
    [
        ({}, 2.0, 9.5),
        ({"done": 0}, None, None),
        ({"seconds": 0}, None, None),
        ({"ticks_per_round": None, "done": 1, "seconds": 4}, 0.25, 8.0),
        ({"round": 9, "tick": 12}, 2.0, 0.0),
    ],
)
def test_rate_and_time_left(
    keys: dict[str, Any], rate: float | None, left: float | None, cut: Path
) -> None:
    """Both come from the ticks since the run began or was resumed; without any they are open."""
    (cut / "heartbeat.json").write_bytes(heartbeat(**keys))
    with RunLog(cut / "events.jsonl", keep=(cut / "events.jsonl").stat().st_size):
        status = run_status(cut)
    assert (status.state, status.questions) == ("running", 4)
    assert (status.rate, status.seconds_left) == (rate, left)


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


def looking(folder: Path, found: list[Any]) -> Callable[[Any], None]:
    """Return what reads the heartbeat as each round ends."""
    return lambda _summary: found.append(read_heartbeat(folder))


def test_a_run_has_a_heartbeat_until_its_end(tmp_path: Path) -> None:
    """It is there from the beginning, tells rounds and ticks, and is gone with the run."""
    found: list[Any] = []
    RUN.keep(tmp_path / "run", on_round=looking(tmp_path / "run", found))
    assert len(found) == 3
    for heartbeat in found:
        assert (heartbeat["rounds"], heartbeat["ticks_per_round"]) == (3, 12)
        assert heartbeat["questions"] == 0
    assert files_in(tmp_path / "run") == {"events.jsonl", "run.json"}


def test_a_heartbeat_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it beats, the run leaves the same bytes, and no other file."""
    RUN.keep(tmp_path / "once")
    monkeypatch.setattr("prism.runs._status.SECONDS_BETWEEN", 0.0)
    RUN.keep(tmp_path / "often")
    assert tree(tmp_path / "often") == tree(tmp_path / "once")


def test_it_tells_what_a_model_has_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests and tokens so far are told while a run goes on, as in the end by run.json."""
    monkeypatch.setattr("prism.runs._status.SECONDS_BETWEEN", 0.01)
    found: list[Any] = []
    spent: list[Any] = []
    run = tmp_path / "run"

    def look(_summary: Any) -> None:
        wait_until(lambda: found.append(read_heartbeat(run)) or found[-1]["spent"]["calls"] > 0)
        spent.append(run_status(run).spent)

    with FakeOllama() as server:
        options = Model("llama3.2", hosts=(server.host,))
        outcome = Run(Feed, 20, rounds=1, reasoner=options).keep(run, on_round=look)

    assert [spent[0].keys(), run_status(run).spent] == [
        {"calls", "tokens", "by_model", "places"},
        outcome.summary["spent"],
    ]


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


def test_questions_under_way_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a model keeps a run waiting, its heartbeat goes on and tells the open questions."""
    monkeypatch.setattr("prism.runs._status.SECONDS_BETWEEN", 0.01)
    folder, found = tmp_path / "run", list[dict[str, Any]]()

    def choose(asked: Asked) -> str:
        """Answer once the heartbeat tells of a question."""
        wait_until(lambda: _open_questions(folder))
        found.append(read_heartbeat(folder))
        return asked.options[-1]

    with FakeOllama(models=["tiny"], choose=choose) as server:
        model = Model("tiny", hosts=(server.host,), mode="chat", concurrency=2)
        Run(Feed, 8, rounds=1, seed=3, reasoner=model).keep(folder)

    assert found
    assert {heartbeat["round"] for heartbeat in found} == {1}
    assert min(heartbeat["tick"] for heartbeat in found) > 0
    asking = [heartbeat["asking"] for heartbeat in found]
    (host,) = asking[0]["hosts"]
    assert (host["address"], host["limit"]) == (server.host, 2)
    assert {len(each["open"]) - each["hosts"][0]["in_flight"] - each["waiting"] for each in asking}
    texts = [request["text"] for each in asking for request in each["open"]]
    assert texts
    assert all("choose" in text.lower() and len(text) <= 600 for text in texts)


def _open_questions(folder: Path) -> int:
    return read_heartbeat(folder).get("questions") or 0


def test_one_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    """A run goes on without a heartbeat where none can be written, and says so once."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / f".{HEARTBEAT_NAME}.part").symlink_to("/dev/full")
    warned: list[str] = []

    class Heard(Observer):
        def warn(self, message: str) -> None:
            warned.append(message)

    RUN.keep(folder, observer=Heard())
    assert warned == [
        f"{folder / HEARTBEAT_NAME}: cannot be written (No space left on device), so prism "
        "status cannot follow the run"
    ]
    assert files_in(folder) == {"events.jsonl", "run.json"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"round": 1}'])
def test_a_damaged_one_is_passed_over(content: bytes, tmp_path: Path) -> None:
    """Whatever stands in the file, it is read or passed over, and never fails."""
    (tmp_path / HEARTBEAT_NAME).write_bytes(content)
    assert read_heartbeat(tmp_path) == {}
    assert read_heartbeat(tmp_path / "nowhere") == {}

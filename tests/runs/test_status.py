"""How far runs are, seen from outside."""

import shutil
from collections import Counter
from pathlib import Path
from threading import Event, Thread

import orjson
import pytest

from prism import Run, resume
from prism.llm import Model
from prism.runlog import RunLog
from prism.runs import RunStatus, find_runs, run_status
from prism.social import Feed
from prism.testing import Asked, FakeOllama
from tests.kit import make
from tests.kit.commands import Prism
from tests.kit.logs import WriteLog
from tests.kit.waiting import wait_until

RUN = Run(Feed, 20, rounds=3, seed=1)
KILLED = "its process ended without a reason: it was killed, or the machine stopped"


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


def test_a_stopped_run_is_where_its_log_ends(cut: Path) -> None:
    """Without a sign of life the log says where a run was, however it is cut off."""
    assert run_status(cut) == RunStatus(cut, "stopped", 2, 3, 3, 12, KILLED)


@pytest.mark.parametrize(
    ("error", "why"),
    [(KeyboardInterrupt(), "interrupted"), (ValueError("odd\nthing"), "ValueError: odd thing")],
)
def test_a_stopped_run_says_why_until_it_goes_on(
    error: BaseException, why: str, prism: Prism
) -> None:
    """An interruption or an error stands in ``run.json``, and in the status, until a resume."""

    def stop(_summary: object) -> None:
        raise error

    path = prism.folder / "run"
    with pytest.raises(type(error)):
        RUN.keep(path, on_round=stop)
    status = run_status(path)
    assert (status.state, status.round, status.problem) == ("stopped", 1, why)
    shown = prism("status", "run").stdout.decode()
    assert f"{why}\ncontinue with: prism resume run" in shown
    stands = []
    resume(path, on_round=lambda _: stands.append("stopped" in (path / "run.json").read_text()))
    assert (stands, run_status(path).problem) == ([False] * 3, None)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"prism": 1}', b"\xff"])
def test_a_damaged_summary_is_reported(content: bytes, cut: Path) -> None:
    """A run whose summary cannot be read is damaged, and the status says where."""
    (cut / "run.json").write_bytes(content)
    status = run_status(cut)
    assert (status.state, status.round) == ("damaged", None)
    assert "run.json" in str(status.problem)


def test_a_log_without_a_folder(write_log: WriteLog) -> None:
    """A log of one's own loop is complete with its end, and stopped without."""
    lines = [make.move("x", "a", "b", round=4, tick=2), make.event("run.ended", round=4, tick=2)]
    path = write_log(lines, "own.jsonl")
    assert run_status(path) == RunStatus(path, "complete", 4, 2)
    path = write_log(lines[:1], "other.jsonl")
    assert run_status(path) == RunStatus(path, "stopped", 4, 2, problem=KILLED)
    for odd in (b"\x00" * 100_000, make.move("x", "a", "b", round="four", tick=True)):
        path = write_log([{"event": "x"}, odd], "odd.jsonl")
        assert run_status(path) == RunStatus(path, "stopped", problem=KILLED)


def test_runs_are_found_below(complete: Path, tmp_path: Path) -> None:
    """Runs are found by name, but not in hidden folders, in other runs or behind links."""
    places = ("b", "a/x", "1/2/3/4", ".hidden/run", "b/inside")
    for place in places:
        shutil.copytree(complete, tmp_path / place, dirs_exist_ok=True)
    (tmp_path / "link").symlink_to(complete)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "empty").mkdir()
    assert find_runs(tmp_path) == [tmp_path / place for place in ("1/2/3/4", "a/x", "b")]
    assert find_runs(tmp_path / "b") == [tmp_path / "b"]
    assert find_runs(tmp_path / "nowhere") == []


def test_a_run_with_a_model_is_followed_line_by_line(tmp_path: Path) -> None:
    """Its log is as far as the run itself, in the midst of a round; what it has spent, in the end.

    Nothing else is left in the folder.
    """
    found: list[RunStatus] = []
    run = tmp_path / "run"

    def choose(asked: Asked) -> str:
        found.append(run_status(run))
        return asked.options[0]

    with FakeOllama(choose=choose) as server:
        model = Model("llama3.2", hosts=(server.host,), mode="chat")
        Run(Feed, 10, rounds=2, reasoner=model).keep(run)
    assert {(each.state, each.rounds, each.spent) for each in found} == {("running", 2, None)}
    assert [each.round for each in found] == sorted(each.round or 0 for each in found)
    assert len({(each.round, each.tick) for each in found}) > 3
    assert (run_status(run).spent or {})["calls"] > 0
    assert {path.name for path in run.iterdir()} == {"events.jsonl", "run.json", "answers.jsonl"}

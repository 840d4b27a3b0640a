"""The heartbeat of a run: what others can read of it meanwhile."""

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from prism import runs
from prism.runs import ModelOptions, run_status
from prism.runs._status import HEARTBEAT_NAME, Heartbeat
from prism.social import SocialRun
from prism.testing import Asked, FakeOllama
from tests.kit.dice import DiceOptions, StoppedError, stop_after, tree
from tests.kit.waiting import wait_until

RUN = SocialRun(20, rounds=3, seed=1)


def files_in(folder: Path) -> set[str]:
    """Return the names of everything in a folder."""
    return {path.name for path in folder.iterdir()}


def looking(folder: Path, found: list[Any]) -> Callable[[Any], None]:
    """Return what reads the heartbeat as each round ends."""
    return lambda _summary: found.append(Heartbeat.read(folder))


def test_a_run_has_a_heartbeat_until_its_end(tmp_path: Path) -> None:
    """It is there from the beginning, tells rounds and ticks, and is gone with the run."""
    found: list[Any] = []
    runs.begin(RUN, tmp_path / "run", on_round=looking(tmp_path / "run", found))
    assert len(found) == 3
    for heartbeat in found:
        assert heartbeat is not None
        assert (heartbeat.rounds, heartbeat.ticks_per_round) == (3, 12)
        assert heartbeat.questions == 0
    assert files_in(tmp_path / "run") == {"events.jsonl", "run.json"}


def test_a_heartbeat_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it beats, the run leaves the same bytes, and no other file."""
    runs.begin(RUN, tmp_path / "once")
    monkeypatch.setattr("prism.runs._status.SECONDS_BETWEEN", 0.0)
    runs.begin(RUN, tmp_path / "often")
    assert tree(tmp_path / "often") == tree(tmp_path / "once")


def test_something_without_ticks_has_one_too(tmp_path: Path) -> None:
    """Whatever can be run has a heartbeat; what it does not say is left open."""
    found: list[Any] = []
    runs.begin(DiceOptions(), tmp_path / "run", on_round=looking(tmp_path / "run", found))
    assert {heartbeat.ticks_per_round for heartbeat in found} == {None}
    assert {heartbeat.questions for heartbeat in found} == {None}
    assert files_in(tmp_path / "run") == {"events.jsonl", "run.json"}


def test_it_tells_what_a_model_has_cost(tmp_path: Path) -> None:
    """Requests and tokens so far are told while a run goes on, as in the end by run.json."""
    found: list[Any] = []
    spent: list[Any] = []
    run = tmp_path / "run"

    def look(_summary: Any) -> None:
        wait_until(lambda: found.append(Heartbeat.read(run)) or found[-1].spent["calls"] > 0)
        spent.append(run_status(run).spent)

    with FakeOllama() as server:
        options = ModelOptions("llama3.2", host=(server.host,))
        outcome = runs.begin(SocialRun(20, rounds=1, reasoner=options), run, on_round=look)

    assert [spent[0].keys(), run_status(run).spent] == [
        {"calls", "tokens"},
        outcome.summary["spent"],
    ]


def test_a_run_that_fails_leaves_none(tmp_path: Path) -> None:
    """It is removed when a run is stopped by an exception, too."""
    with pytest.raises(StoppedError):
        runs.begin(DiceOptions(), tmp_path / "run", on_round=stop_after(2), checkpoint_every=0)
    assert files_in(tmp_path / "run") == {"events.jsonl", "run.json", "checkpoints"}


def test_one_that_a_complete_run_left_goes_when_it_is_resumed(tmp_path: Path) -> None:
    """A run that was killed after its last line, before its heartbeat was removed, is tidied up."""
    runs.begin(DiceOptions(2), tmp_path / "run")
    whole = tree(tmp_path / "run")
    (tmp_path / "run" / HEARTBEAT_NAME).write_text("{}", encoding="utf-8")

    assert runs.resume(tmp_path / "run", DiceOptions) is None
    assert tree(tmp_path / "run") == whole


def test_questions_under_way_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a model keeps a run waiting, its heartbeat goes on and tells the open questions."""
    monkeypatch.setattr("prism.runs._status.SECONDS_BETWEEN", 0.01)
    folder, found = tmp_path / "run", list[Heartbeat]()

    def choose(asked: Asked) -> str:
        """Answer once the heartbeat tells of a question."""
        wait_until(lambda: _open_questions(folder))
        heartbeat = Heartbeat.read(folder)
        if heartbeat is not None:
            found.append(heartbeat)
        return asked.options[-1]

    with FakeOllama(models=["tiny"], choose=choose) as server:
        model = runs.ModelOptions("tiny", host=(server.host,), mode="chat", concurrency=2)
        runs.begin(SocialRun(8, rounds=1, seed=3, reasoner=model), folder)

    assert found
    assert {heartbeat.round for heartbeat in found} == {1}
    assert min(heartbeat.tick for heartbeat in found) > 0


def _open_questions(folder: Path) -> int:
    heartbeat = Heartbeat.read(folder)
    return 0 if heartbeat is None else heartbeat.questions or 0


def test_it_is_written_once_a_second_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two beats passes the time that is said, however fast rounds are."""
    waits: list[float] = []
    original = Event.wait

    def wait(event: Event, timeout: float | None = None) -> bool:
        waits.append(timeout or 0.0)
        return original(event, timeout)

    monkeypatch.setattr(Event, "wait", wait)
    runs.begin(SocialRun(5, rounds=40, seed=1), tmp_path / "run")
    beats = [each for each in waits if each == 1.0]
    assert 1 <= len(beats) <= 10


def test_one_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    """A run goes on without a heartbeat where none can be written, and says so once."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / f".{HEARTBEAT_NAME}.part").symlink_to("/dev/full")
    warned: list[str] = []

    class Heard(runs.Observer):
        def warn(self, message: str) -> None:
            warned.append(message)

    runs.begin(RUN, folder, observer=Heard())
    assert warned == [
        f"{folder / HEARTBEAT_NAME}: cannot be written (No space left on device), so prism status "
        "could not follow the run"
    ]
    assert files_in(folder) == {"events.jsonl", "run.json"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"round": 1}',
        b"[" * 4000,
        *(
            json.dumps(
                {
                    **dict.fromkeys(("round", "rounds", "tick", "done", "seconds"), 1),
                    "ticks_per_round": 1,
                    "questions": 1,
                    name: value,
                }
            ).encode()
            for name in ("round", "done", "seconds", "questions")
            for value in (-1, "1", True, 10**30, [1], 1e308)
        ),
    ],
)
def test_a_damaged_one_is_none(content: bytes, tmp_path: Path) -> None:
    """Whatever stands in the file, it is read or passed over, and never fails."""
    (tmp_path / HEARTBEAT_NAME).write_bytes(content)
    assert Heartbeat.read(tmp_path) is None
    assert Heartbeat.read(tmp_path / "nowhere") is None

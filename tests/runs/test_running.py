"""Beginning, resuming and replaying a run from Python, of something that is no simulation."""

import asyncio
import json
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from threading import Event, current_thread, main_thread
from typing import Any

import pytest

from prism import Run
from prism.errors import InputError
from prism.examples.rumour import Rumour
from prism.runs import Observer
from prism.runs._loops import run_to_end
from tests.kit import kept as runs
from tests.kit.dice import (
    CONFIG,
    ROUNDS,
    THROWS,
    DiceOptions,
    StoppedError,
    Sum,
    stop_after,
    tree,
)
from tests.kit.kept import begin
from tests.kit.waiting import MOST_SECONDS, until


class Heard(Observer):
    """Keeps what a run says, in its order."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def note(self, message: str) -> None:
        self.said.append(("note", message))

    def warn(self, message: str) -> None:
        self.said.append(("warning", message))

    def started(self, run: Any) -> None:
        self.said.append(("started", len(run.finished), run.rounds))


def stopped_at(path: Path, last: int) -> None:
    """Begin the dice in a folder, and stop them when a round has ended."""
    with pytest.raises(StoppedError):
        runs.begin(DiceOptions(), path, on_round=stop_after(last))


def test_a_run_is_kept_in_its_folder(tmp_path: Path, whole: Any) -> None:
    """A run leaves log and summary in its folder, and returns results and summary."""
    rounds: list[int] = []
    outcome = runs.begin(DiceOptions(), tmp_path / "run", on_round=rounds.append)
    assert tree(tmp_path / "run") == whole
    assert isinstance(outcome.results, Sum)
    assert outcome.summary == json.loads((tmp_path / "run" / "run.json").read_bytes())
    assert outcome.summary["config"] == CONFIG
    assert outcome.folder == tmp_path / "run"
    assert repr(outcome) == f"Outcome(folder={outcome.folder!r})"
    assert rounds == list(range(1, ROUNDS + 1))


def test_a_run_without_a_folder_writes_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    """Without a folder a run has the same results and leaves nothing on the disk."""
    monkeypatch.chdir(tmp_path)
    outcome = runs.begin(DiceOptions())
    assert outcome.folder is None
    assert outcome.results == runs.begin(DiceOptions(), "kept").results
    assert THROWS * ROUNDS <= outcome.results.total <= 6 * THROWS * ROUNDS
    assert sorted(tree(tmp_path)) == ["kept", "kept/events.jsonl", "kept/run.json"]


@pytest.mark.parametrize("last", range(1, ROUNDS + 1))
def test_a_run_stopped_after_a_round_is_resumed_to_the_same_bytes(
    last: int, tmp_path: Path, whole: Any
) -> None:
    """Stopped after any round and resumed, a run writes the same."""
    stopped_at(tmp_path, last)
    outcome = runs.resume(tmp_path, DiceOptions)
    assert tree(tmp_path) == whole
    assert outcome is not None
    assert outcome.summary["results"] == outcome.results.to_dict()


def test_a_replay_is_resumed_like_any_run(tmp_path: Path) -> None:
    """It takes its decisions from the log; stopped, it goes on, and the log is the same."""
    runs.begin(DiceOptions(), tmp_path / "run")
    with pytest.raises(StoppedError):
        runs.replay(
            tmp_path / "run",
            DiceOptions,
            tmp_path / "again",
            on_round=stop_after(2),
        )
    outcome = runs.resume(tmp_path / "again", DiceOptions)
    assert outcome is not None
    assert outcome.summary["config"]["recorded"] == str(tmp_path / "run")
    assert runs.resume(tmp_path / "again", DiceOptions) is None
    logs = [(tmp_path / name / "events.jsonl").read_bytes() for name in ("run", "again")]
    assert logs[0] == logs[1]


def test_an_impossible_run_leaves_no_folder(tmp_path: Path) -> None:
    """What is refused while a run is prepared is refused before anything is written."""
    with pytest.raises(InputError, match="field 'rounds': must be 0 or more"):
        runs.begin(DiceOptions(rounds=-1), tmp_path / "run")
    assert tree(tmp_path) == {}


def test_an_observer_receives_where_a_run_begins(tmp_path: Path) -> None:
    """A new run says nothing before it starts; a resumed one what it has."""
    heard = Heard()
    with pytest.raises(StoppedError):
        runs.begin(DiceOptions(), tmp_path, on_round=stop_after(2), observer=heard)
    runs.resume(tmp_path, DiceOptions, observer=heard)
    assert heard.said == [
        ("started", 0, ROUNDS),
        ("note", f"{tmp_path}: carrying it out again with 0 answers, then on"),
        ("started", 0, ROUNDS),
    ]


def test_each_round_is_kept_before_it_is_reported(tmp_path: Path) -> None:
    """When a round is reported its events can be read."""

    def look(number: int) -> None:
        assert (tmp_path / "events.jsonl").read_bytes().count(b"round.ended") == number

    runs.begin(DiceOptions(), tmp_path, on_round=look)


_SAID: ContextVar[str] = ContextVar("said", default="nothing")


async def test_a_run_is_begun_within_an_event_loop() -> None:
    """A cell of a notebook, which runs in an event loop, may begin a run."""
    seen: list[int] = []
    outcome = begin(Run(Rumour, 10, rounds=3), on_round=lambda summary: seen.append(summary.number))
    assert seen == [1, 2, 3]
    assert len(outcome.results.rounds) == 3


async def test_what_the_caller_bound_and_what_fails_come_through() -> None:
    """The thread has the caller's context, and its exceptions are the caller's."""
    _SAID.set("hello")

    async def fail() -> None:
        raise ValueError(_SAID.get())

    with pytest.raises(ValueError, match="hello"):
        run_to_end(fail())


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have an interruption raise KeyboardInterrupt, also where a shell had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the waiting thread cancels what it waits for."""
    ended: list[str] = []
    is_waiting, result = Event(), Future.result

    def noted(future: Future[Any], timeout: float | None = None) -> Any:
        if current_thread() is main_thread():
            is_waiting.set()
        return result(future, timeout)

    monkeypatch.setattr(Future, "result", noted)

    async def forever() -> None:
        try:
            await until(is_waiting.is_set)
            for _ in range(10):
                # one that comes just before the thread begins to wait is seen only when it wakes
                press_ctrl_c()
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.Event().wait(), MOST_SECONDS / 10)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def cell() -> None:
        run_to_end(forever())

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        loop.close()
    assert ended == ["cancelled"]


def press_ctrl_c() -> None:
    """Interrupt the main thread, as a terminal does."""
    signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

"""The heartbeat of a run: a small file beside its log, from which others learn how far it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

from prism.errors import InputError
from prism.files import parse_json
from prism.runlog import SimulatedClock
from prism.runs._model import spent_by
from prism.runs._runnable import Runnable

HEARTBEAT_NAME = "heartbeat.json"
SECONDS_BETWEEN = 1.0

_MOST_BYTES = 64 << 10
_MOST = 2**53


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """How far a run was a moment ago.

    Args:
        round: Round that was going on; that of the last checkpoint before the first.
        rounds: Number of rounds.
        tick: Tick of the round.
        ticks_per_round: Ticks of each round; None if the run does not say.
        questions: Questions without an answer; None if the run does not say.
        done: Ticks since this process began or resumed the run; rounds if the run has no ticks.
        seconds: Seconds since then.
        spent: What its model has cost, as ``run.json`` says it in the end; None if none is asked.
    """

    round: int
    rounds: int
    tick: int
    ticks_per_round: int | None
    questions: int | None
    done: int
    seconds: float
    spent: dict[str, Any] | None = None

    @classmethod
    def read(cls, folder: Path) -> Heartbeat | None:
        """Return the heartbeat in a folder; None if there is none, or it is damaged."""
        try:
            with (folder / HEARTBEAT_NAME).open("rb") as file:
                found = parse_json(file.read(_MOST_BYTES).decode())
        except (OSError, UnicodeDecodeError, InputError):
            return None

        names = [field.name for field in fields(cls)]
        if not isinstance(found, dict) or {*found, "spent"} != set(names):
            return None
        if not all(_fits(name, found.get(name)) for name in names):
            return None

        return cls(**found)


@contextmanager
def beating(
    folder: Path, run: Runnable[Any], clock: SimulatedClock, warn: Callable[[str], None]
) -> Iterator[None]:
    """Keep a heartbeat in a folder meanwhile, and remove it in the end.

    It is written by a thread of its own, since a model may take minutes for one answer. It takes
    nothing from the run but a look, and is not worth failing for.

    Args:
        folder: The run's folder.
        run: The run; its ``ticks_per_round`` and ``open_questions`` are told where it has them.
        clock: The run's clock.
        warn: Called if the file cannot be written.
    """
    heart = _Heart(folder / HEARTBEAT_NAME, run, clock)
    heart.start()
    try:
        yield
    finally:
        heart.stop()
        if heart.fault is not None:
            warn(
                f"{heart.path}: cannot be written ({heart.fault}), so prism status could not "
                "follow the run"
            )


def remove_heartbeat(folder: Path) -> None:
    """Remove what is left of the heartbeat of a run that has ended.

    Raises:
        OSError: If that fails.
    """
    path = folder / HEARTBEAT_NAME
    path.unlink(missing_ok=True)
    _unfinished(path).unlink(missing_ok=True)


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


class _Heart:
    def __init__(self, path: Path, run: Runnable[Any], clock: SimulatedClock) -> None:
        self.path = path
        self.fault: str | None = None
        self._unfinished = _unfinished(path)
        self._run = run
        self._clock = clock
        self._ticks: int | None = getattr(run, "ticks_per_round", None)
        self._resumed_after = len(run.finished)
        self._began = monotonic()
        self._stopped = Event()
        self._thread = Thread(target=self._beat, name="prism-heartbeat", daemon=True)

    def start(self) -> None:
        self._write()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        try:
            remove_heartbeat(self.path.parent)
        except OSError as error:
            self.fault = error.strerror

    def _beat(self) -> None:
        while self.fault is None and not self._stopped.wait(SECONDS_BETWEEN):
            self._write()

    def _write(self) -> None:
        # Not durable: after a crash of the machine the log says where the run was.
        try:
            self._unfinished.write_text(json.dumps(asdict(self._look())), encoding="utf-8")
            self._unfinished.replace(self.path)
        except OSError as error:
            self.fault = error.strerror

    def _look(self) -> Heartbeat:
        now = self._clock.moment
        rounds_before = max(now.round - 1, 0) - self._resumed_after
        done = rounds_before if self._ticks is None else rounds_before * self._ticks + now.tick

        return Heartbeat(
            round=now.round,
            rounds=self._run.rounds,
            tick=now.tick,
            ticks_per_round=self._ticks,
            questions=getattr(self._run, "open_questions", None),
            done=max(done, 0),
            seconds=round(monotonic() - self._began, 3),
            spent=spent_by(self._run.reasoner, getattr(self._run, "writer", None)).get("spent"),
        )


def _fits(name: str, value: Any) -> bool:
    if value is None:
        return name in ("ticks_per_round", "questions", "spent")
    if name == "spent":
        return isinstance(value, dict)
    return type(value) in ((int, float) if name == "seconds" else (int,)) and 0 <= value < _MOST

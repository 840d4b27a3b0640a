"""A run that is watched: its log is followed and counted by a thread of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, RLock, Thread
from time import monotonic
from typing import Any

from prism.analysis._reading.runs import Run
from prism.drawing import Diagram
from prism.errors import InputError
from prism.files._records import shown_path
from prism.runs import RunStatus, run_status
from prism.telemetry.events import POST_PUBLISHED, TEXT_WRITTEN
from prism.watch._tail import Changed, Tail
from prism.watch._tally import Tally

MOST_READ_WHOLE = 32 << 20
"""Bytes of a log that is read as a report reads it; of a longer one the counts are shown."""

SECONDS_BETWEEN = 0.2
"""Least time from one look at a log to the next."""

# A look is followed by a rest that is so many times as long, for the run that is watched comes
# first; but a new round is to be on the page within a second.
_REST, _MOST_SECONDS_BETWEEN = 20, 0.65
_SECONDS_OF_STATUS = 0.5
_SECONDS_TO_BE_SHOWN = 3.0
_MOST_NOTES = 20
_SAID_ANYHOW = ("unfinished", "no_feed", "empty")
_OF_STATUS = ("questions", "rate", "seconds_left", "spent", "asking")
_ROUND_ENDED = b'"round.ended"'
_MOST_LOOKED_BACK = 512


class Watched:
    """One run, followed from its folder; nothing is ever written there.

    Args:
        run: Its folder, or its log.
        label: Its name on the page.
        charts: Your own charts that it may follow.

    Attributes:
        path: The log.
        label: Its name.
        charts: The charts.
        status: How far the run is.
        version: Goes up with every change.
        counted: Bytes of the log whose lines are in the counts.
        shown: Set when the last counts are on the page, so that a long log may be read.
    """

    def __init__(self, run: Path, label: str, charts: Sequence[Diagram] = ()) -> None:
        self._run = run
        self.label: str = label
        self.charts: tuple[Diagram, ...] = tuple(charts)
        self._lock = RLock()
        self.status: RunStatus = RunStatus(run, "not begun")
        self.version: int = 0
        self._stopped = Event()
        self.shown: Event = Event()
        self._notes: deque[str] = deque(maxlen=_MOST_NOTES)
        self._problem: str | None = None
        self._status_due = 0.0
        self._begin()
        self._thread = Thread(target=self._follow, name="prism-watch", daemon=True)
        self._thread.start()

    @property
    def unit(self) -> str:
        """The word for a round in this run: an agent that runs alone has turns or cycles."""
        with self._lock:
            counts, agents = self.tally.events(), self.tally.joined()
        if sum(agents.values()) > 1:
            return "round"
        if any(name.startswith("workflow.") for name in counts):
            return "turn"
        return "cycle" if any(name.startswith("cognition.") for name in counts) else "round"

    def close(self) -> None:
        """Stop following."""
        self._stopped.set()
        self.shown.set()
        self._thread.join()
        self.tail.close()
        self.tally.index.close()

    def head(self) -> dict[str, Any]:
        """Return what the head of the page shows."""
        with self._lock:
            rounds, status, run = self.tally.rounds(), self.status, self.tally.known_run
            about, counts = run or Run(self.label, self.path), self.tally.events()
            return {
                "world": about.world,
                "faults": int(self.tally.table("faults")["count"].sum()),
                "templates": POST_PUBLISHED in counts and TEXT_WRITTEN not in counts,
                "agents": about.agents or sum(self.tally.joined().values()) or None,
                "planned": status.rounds or about.rounds,
                "logged": about.logged_agents,
                "seed": about.seed,
                "label": self.label,
                "unit": self.unit,
                "version": self.version,
                "state": status.state,
                "rounds": max(rounds, default=None),
                "first": min(rounds, default=None),
                "ended": max(self.tally.ends, default=None),
                "tick": self.tally.tick if status.tick is None else status.tick,
                "ticks": status.ticks_per_round,
                **{name: getattr(status, name) for name in _OF_STATUS},
                "read": self.counted,
                "size": self.tail.size,
                "notes": self.notes(),
            }

    def notes(self) -> list[str]:
        """Return what is wrong with the log, in words."""
        about_log = (
            str(note) for note in self.tally.survey.notes() if note.kind not in _SAID_ANYHOW
        )
        wrong = self._problem, self.status.problem if self.status.state == "damaged" else None
        found = [*self._notes, *about_log, *filter(None, wrong)]
        unfinished = self.tail.size - self.tail.position
        if self.status.state in ("stopped", "complete") and 0 < unfinished < 1 << 16:
            found.append(f"{self.path}: the last line is cut off and left out")

        return [shown_path(note) for note in found]

    @contextmanager
    def reading(self) -> Iterator[tuple[Tally, Tail]]:
        """Hold the counts as they are in the block."""
        with self._lock:
            yield self.tally, self.tail

    def read(self, begin: int, end: int) -> bytes:
        """Return some bytes of the log, fewer where it ends before."""
        with self._lock:
            return self.tail.read(begin, end)

    def _begin(self) -> None:
        tail = Tail(self._run)
        tally = Tally(tail.path, self.label)
        tally.put_end(tail.last_line(_ROUND_ENDED, _MOST_LOOKED_BACK) or b"")
        self.counted: int = 0
        self.path: Path = tail.path
        self.tail: Tail = tail
        self.tally: Tally = tally

    def _follow(self) -> None:
        self._guarded(self._look)
        if self.tail.size > MOST_READ_WHOLE:
            self.shown.wait(_SECONDS_TO_BE_SHOWN)
        with suppress(KeyboardInterrupt):  # polars raises it in every thread that it works for
            while not self._stopped.is_set():
                began = monotonic()
                self._guarded(self._look)
                self._guarded(self._read)
                rest = min(_REST * (monotonic() - began), _MOST_SECONDS_BETWEEN)
                self._stopped.wait(max(rest, SECONDS_BETWEEN))

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do a piece of work; what is wrong with the files is told on the page."""
        try:
            work()
        except Changed as change:
            note = f"{self.path}: {change}; it was read again from the beginning"
            if note not in self._notes:
                self._notes.append(note)
            self._guarded(self._begin_again)
        except (InputError, OSError) as error:
            if self._problem != str(error):
                self._problem = str(error)
                self.version += 1

    def _begin_again(self) -> None:
        with self._lock:
            old = self.tail, self.tally.index
            self._begin()
            for each in old:
                each.close()
        self.version += 1

    def _read(self) -> None:
        for block in self.tail.blocks():
            with self._lock:
                self.tally.take(block, self.counted)
                self.counted = self.tail.position
            self._look()
            self.version += 1
            if self._stopped.is_set():
                return
        self._problem = None

    def _look(self) -> None:
        if monotonic() < self._status_due:
            return

        self._status_due = monotonic() + _SECONDS_OF_STATUS
        status = run_status(self._run)
        if status != self.status:
            self.status = status
            self.version += 1

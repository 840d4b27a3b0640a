"""A run that is watched: a thread of its own puts the lines of its log into tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, RLock, Thread
from time import monotonic
from typing import Any

from prism.analysis import Log, read_log, rows_of
from prism.analysis.growing import GrowingLog
from prism.analysis.loading import MOST_BYTES
from prism.drawing import Diagram
from prism.errors import InputError
from prism.files.records import printable_path
from prism.runs import RunStatus, run_status
from prism.watch._tail import BLOCK_BYTES, Changed, Tail

SECONDS_BETWEEN = 0.2
"""Least time from one look at a log to the next."""

# A look is followed by a rest that is so many times as long, for the run that is watched comes
# first; but a new round is to be on the page within a second.
_REST, _MOST_SECONDS_BETWEEN = 20, 0.65
_SECONDS_OF_STATUS = 0.5
_MOST_NOTES = 20
_ENDED = ("complete", "stopped")
_SHOWN_ELSEWHERE = ("unfinished", "empty")
_HEAD = """
select min(round) as first, max(round) as rounds, arg_max(tick, line) as tick,
       max(round) filter (event = 'round.ended') as ended,
       bool_or(event like 'workflow.%') as has_turns,
       bool_or(event like 'cognition.%') as has_cycles,
       count(distinct agent_id) filter (event in ('agent.joined', 'statechart.transition'))
       as agents, (select count(*) from wrong) as faults
from events
"""


class Watched:
    """One run, followed from its folder; nothing is ever written there.

    Args:
        run: Its folder, or its log.
        label: Its name on the page.
        charts: Your own charts that it may follow.

    Attributes:
        run: Its folder, or its log.
        path: The log.
        label: Its name.
        charts: The charts.
        status: How far the process of the run is.
        version: Goes up with every change.
        read: Bytes of the log whose lines are in the tables.
    """

    def __init__(self, run: Path, label: str, charts: Sequence[Diagram] = ()) -> None:
        self.run: Path = run
        self.label: str = label
        self.charts: tuple[Diagram, ...] = tuple(charts)
        self._lock = RLock()
        self.status: RunStatus = RunStatus(run, "not begun")
        self.version: int = 0
        self._stopped = Event()
        self._notes: deque[str] = deque(maxlen=_MOST_NOTES)
        self._problem: str | None = None
        self._status_due = 0.0
        self._head: dict[str, Any] | None = None
        self._begin(run_status(run).state in _ENDED)
        self._thread = Thread(target=self._follow, name="prism-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following."""
        self._stopped.set()
        self._thread.join()
        with self._lock:
            self.tail.close()
            self.log.close()

    @contextmanager
    def reading(self) -> Iterator[Log]:
        """Hold the tables as they are in the block: what is read there is of one instant."""
        with self._lock:
            yield self.log

    def rows(self, query: str, **values: object) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        with self._lock:
            return rows_of(self.log.sql(query, **values))

    def head(self) -> dict[str, Any]:
        """Return what the head of the page shows."""
        with self._lock:
            if self._head is None:
                self._head = self._counted()
            return {
                **self._head,
                "planned": self.status.rounds or self._head["planned"],
                "ticks": self.status.ticks_per_round,
                **self.progress(),
                "notes": self.notes(),
            }

    def progress(self) -> dict[str, Any]:
        """Return how far the run and the reading of its log are; the tables may be behind."""
        return {
            "state": self.status.state,
            "now": self.status.round,
            "problem": self._problem,
            "read": self.read,
            "size": self.tail.size,
            "spent": self.status.spent,
        }

    @property
    def unit(self) -> str:
        """The word for a round in this run: an agent that runs alone has turns or cycles."""
        return str(self.head()["unit"])

    def notes(self) -> list[str]:
        """Return what is wrong with the log, in words."""
        with self._lock:
            of_log = [str(note) for note in self.log.notes if note.kind not in _SHOWN_ELSEWHERE]
        wrong = self._problem, self.status.problem if self.status.state == "damaged" else None
        notes = [*self._notes, *of_log, *filter(None, wrong)]
        unfinished = self.tail.size - self.tail.position
        if self.status.state in _ENDED and 0 < unfinished < 1 << 16:
            notes.append(f"{self.path}: the last line is cut off and left out")

        return [printable_path(note) for note in notes]

    def _counted(self) -> dict[str, Any]:
        (counts,) = self.rows(_HEAD)
        run = next(iter(self.log.runs), None)
        units = {"turn": counts["has_turns"], "cycle": counts["has_cycles"]}
        is_alone = counts["agents"] <= 1
        return {
            **{name: counts[name] for name in ("first", "rounds", "ended", "tick", "faults")},
            "label": self.label,
            "unit": next((name for name in units if units[name] and is_alone), "round"),
            "world": run and run.world,
            "agents": (run and run.agents) or counts["agents"] or None,
            "logged": run and run.logged_agents,
            "seed": run and run.seed,
            "planned": run and run.rounds,
        }

    def _begin(self, is_over: bool = False) -> None:
        tail = Tail(self.run)
        self.path: Path = tail.path
        self.tail: Tail = tail
        self._head = None
        self.log: Log
        if is_over and tail.size > MOST_BYTES:
            # it is loaded into a file once, from which others open it, too
            tail.pass_over()
            self.log = read_log(tail.path)
            self.log.lock()
        else:
            self.log = GrowingLog(tail.path, self.label)
        self.read: int = tail.position

    def _follow(self) -> None:
        while not self._stopped.is_set():
            began = monotonic()
            self._guarded(self._look)
            self._guarded(self._read)
            rest = min(_REST * (monotonic() - began), _MOST_SECONDS_BETWEEN)
            self._stopped.wait(max(rest, SECONDS_BETWEEN))

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do a piece of work; what is wrong with the files is shown on the page."""
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
            old = self.tail, self.log
            self._begin()
            for each in old:
                each.close()
        self.version += 1

    def _read(self) -> None:
        for block in self.tail.blocks():
            with self._lock:
                if not isinstance(self.log, GrowingLog):
                    raise Changed("has gone on")
                if block:
                    self.log.append(block)
                else:
                    self.log.skip(f"is longer than {BLOCK_BYTES:,} bytes and is left out")
                self.read, self._head = self.tail.position, None
                self.version += 1
            self._look()
            if self._stopped.is_set():
                return
        self._problem = None

    def _look(self) -> None:
        if monotonic() < self._status_due:
            return

        self._status_due = monotonic() + _SECONDS_OF_STATUS
        status = run_status(self.run)
        if status != self.status:
            self.status = status
            self.version += 1

"""What a log turns out to hold while it is read: its runs, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from prism.analysis.notes import Note, NoteKind
from prism.analysis.parsing import Parsed, parse
from prism.runlog import events
from prism.runlog.events import RUN_ENDED, RUN_STARTED, SCHEMA_VERSION
from prism.runlog.reader import CUT_OFF, Block

KNOWN_EVENTS = frozenset(getattr(events, name) for name in events.__all__ if isinstance(getattr(events, name), str))
SURVEYED = ("event",)
"""Keys that every pass over a log reads."""

_FACTS = ("schema", "agents", "rounds", "ticks_per_round", "seed")

_MOST_LINES_NAMED = 10
_MOST_EVENTS_NAMED = 5


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a log, as far as the log says what it is.

    Args:
        label: What the column ``run`` of tables calls it: its folder or file, with ``#1``, ``#2``, ... where a
            file holds several.
        path: The log.
        started: Whether it begins with ``run.started``, as the runs of `prism.simulation` do.
        ended: Whether it says that it has ended.
        schema: Version of its events.
        agents: Number of its agents.
        rounds: Rounds it was to have.
        ticks_per_round: Ticks of each round.
        seed: Its seed.
    """

    label: str
    path: Path
    started: bool = False
    ended: bool = False
    schema: int | None = None
    agents: int | None = None
    rounds: int | None = None
    ticks_per_round: int | None = None
    seed: int | None = None


@dataclass(slots=True)
class FileSurvey:
    """What one file turns out to hold.

    Args:
        path: The file.
        label: What to call its run.
        first_run: Number of its first run among those of all files.
    """

    path: Path
    label: str
    first_run: int
    runs: list[Run] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _only_opened: bool = False
    _lines: int = 0
    _foreign: Counter[str] = field(default_factory=Counter)
    _bad_lines: list[int] = field(default_factory=list)
    _faults: list[Note] = field(default_factory=list)

    def take(self, block: Block, parsed: Parsed) -> pl.DataFrame:
        """Take some lines in.

        Args:
            block: The lines.
            parsed: The same as columns, ``event`` among them.

        Returns:
            Those that are events of prism, with the number of their run as ``run``.
        """
        self._lines += parsed.frame.height + len(parsed.bad_lines)
        self._take_bad_lines(parsed, cut_off=not block.data.endswith(b"\n"))
        frame = parsed.frame
        counts = dict(frame["event"].value_counts().iter_rows())
        foreign = {name: count for name, count in counts.items() if name not in KNOWN_EVENTS}
        if foreign:
            self._foreign.update({name or "without a name": count for name, count in foreign.items()})
            frame = frame.filter(pl.col("event").is_in(list(KNOWN_EVENTS)))
        if RUN_STARTED in counts or RUN_ENDED in counts or not self.runs:
            return self._numbered(frame, block)
        self._only_opened &= frame.is_empty()
        return self._with_number(frame)

    def take_fault(self, line: int, fault: str) -> None:
        """Take in that some bytes could not be read."""
        self._lines += 1
        self._note("truncated" if fault is CUT_OFF else "corrupt", fault, line)

    def labelled_runs(self) -> list[Run]:
        """Give the runs with labels of their own."""
        if len(self.runs) == 1:
            return self.runs
        return [replace(run, label=f"{run.label}#{number}") for number, run in enumerate(self.runs, start=1)]

    def notes(self) -> Iterator[Note]:
        """Tell all that is to be said of the file."""
        path = str(self.path)
        for line in self._bad_lines[:_MOST_LINES_NAMED]:
            yield Note("corrupt", path, line, "is no JSON and is left out")
        if (more := len(self._bad_lines) - _MOST_LINES_NAMED) > 0:
            yield Note("corrupt", path, None, f"{more:,} more lines are no JSON and are left out")
        yield from self._faults
        if self._foreign:
            yield Note("foreign_events", path, None, _describe(self._foreign))
        yield from self._notes_on_runs()
        if not self.runs:
            what = "holds no event of prism" if self._lines else "is empty: nothing has been written to it"
            yield Note("empty", path, None, what)

    def _notes_on_runs(self) -> Iterator[Note]:
        path = str(self.path)
        if len(self.runs) > 1:
            lines = ", ".join(f"{line:,}" for line in self._starts[:_MOST_LINES_NAMED])
            message = f"holds {len(self.runs)} runs, which begin in lines {lines}: each is taken by itself"
            yield Note("mixed_runs", path, None, message)
        for run in self.labelled_runs():
            if run.schema is not None and run.schema > SCHEMA_VERSION:
                yield Note("newer_schema", path, None, _newer(run))
            if run.started and not run.ended:
                yield Note("unfinished", path, None, f"{run.label} has not ended: it is still going on, or was stopped")

    def _take_bad_lines(self, parsed: Parsed, *, cut_off: bool) -> None:
        bad = list(parsed.bad_lines)
        last = max(bad[-1] if bad else 0, parsed.frame["line"].max() or 0)
        if cut_off and bad and bad[-1] == last:
            self._note("truncated", "is cut off in its middle and is left out", bad.pop())
        self._bad_lines += bad

    def _note(self, kind: NoteKind, message: str, line: int) -> None:
        self._faults.append(Note(kind, str(self.path), line, message))

    def _numbered(self, frame: pl.DataFrame, block: Block) -> pl.DataFrame:
        """Number lines among which runs may begin or end."""
        facts = parse(block, ("event", *_FACTS)).frame.filter(pl.col("event") == RUN_STARTED)
        starts = {facts["line"][place]: facts.row(place, named=True) for place in range(facts.height)}
        parts = [self._numbered_part(part, starts) for part in _split(frame, starts)]
        return pl.concat(parts) if parts else self._with_number(frame)

    def _numbered_part(self, frame: pl.DataFrame, starts: Mapping[int, Mapping[str, Any]]) -> pl.DataFrame:
        """Number lines of which only the first may begin a run."""
        line = frame["line"][0]
        facts = {name: starts[line][name] for name in _FACTS} if line in starts else {}
        if self._only_opened and facts:  # a log of an application's own, in which a simulation begins
            self.runs[-1] = Run(self.label, self.path, started=True, **facts)
        elif facts or not self.runs:
            self.runs.append(Run(self.label, self.path, started=bool(facts), **facts))
            self._starts.append(line)
        self._only_opened = bool(facts) and facts["agents"] is None and frame.height == 1
        if frame["event"].eq(RUN_ENDED).any():
            self.runs[-1] = replace(self.runs[-1], ended=True)
        return self._with_number(frame)

    def _with_number(self, frame: pl.DataFrame) -> pl.DataFrame:
        number = self.first_run + max(len(self.runs) - 1, 0)
        return frame.with_columns(run=pl.lit(number, pl.UInt32))


def _split(frame: pl.DataFrame, starts: Iterable[int]) -> Iterator[pl.DataFrame]:
    """Split a frame before each of some of its lines."""
    places = [int(frame["line"].search_sorted(line)) for line in starts]
    for begin, end in pairwise(sorted({0, *places, frame.height})):
        yield frame.slice(begin, end - begin)


def _describe(foreign: Counter[str]) -> str:
    most_first = sorted(foreign.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{name} {count:,}" for name, count in most_first[:_MOST_EVENTS_NAMED])
    more = len(foreign) - _MOST_EVENTS_NAMED
    return f"{foreign.total():,} events of others are left out: {named}{f', and {more} kinds more' if more > 0 else ''}"


def _newer(run: Run) -> str:
    return (
        f"{run.label} has events of version {run.schema}, and this prism knows version {SCHEMA_VERSION}: what it does "
        "not know is left out; a newer prism may read more"
    )

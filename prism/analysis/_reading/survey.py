"""What a log turns out to hold while it is read: its runs, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from prism.analysis._reading.notes import Note, NoteKind
from prism.analysis._reading.parsing import TYPES, Parsed, empty, parse
from prism.runlog._reader import CUT_OFF, Block
from prism.telemetry import events
from prism.telemetry.events import AGENT_JOINED, DECISION, RUN_ENDED, RUN_STARTED, SCHEMA_VERSION

KNOWN_EVENTS = frozenset(
    getattr(events, name) for name in events.__all__ if isinstance(getattr(events, name), str)
)
SURVEYED = ("event",)
"""Keys that every pass over a log reads."""

_FACTS = ("schema", "agents", "rounds", "ticks_per_round", "seed")
_MARKS = frozenset((RUN_STARTED, AGENT_JOINED, RUN_ENDED))
_WARNINGS = [name for name in KNOWN_EVENTS if name.startswith("reasoner.") and name != DECISION]

_MOST_LINES_NAMED = 10
_MOST_EVENTS_NAMED = 5


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a log, as far as the log says what it is.

    Args:
        label: What the column ``run`` of tables calls it: its folder or file, with ``#1``, ``#2``,
            ... where a file holds several.
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
class _RunsOfFile:
    """The runs of a file, told apart by the lines that begin and end them.

    An application's log (`prism.runlog.configure`) may hold simulations: it begins with a
    ``run.started`` that names no agents, and its last ``run.ended`` follows that of a simulation.

    What a reasoner says of itself, also before a run and after it, belongs to the run but neither
    begins nor ends one.

    Args:
        path: The file.
        label: What to call its run.
        runs: Those that have begun.
        starts: Lines that they begin in.
        mixed_in: The first line by which to see that lines of several runs stand between each
            other.
    """

    path: Path
    label: str
    runs: list[Run] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    mixed_in: int | None = None
    _opened: int | None = None
    _is_bare: bool = False
    _cut_into: list[int] = field(default_factory=list)
    _joined: pl.Series = field(default_factory=lambda: pl.Series(dtype=TYPES["agent_id"]))

    def may_change(self, counts: Mapping[str, int]) -> bool:
        """Say whether a run may begin or end among lines with so many events of each name."""
        return not _MARKS.isdisjoint(counts) or not self.runs or self.runs[-1].ended

    def take_others(self, frame: pl.DataFrame) -> None:
        """Take in events among which no run begins or ends."""
        if self._is_bare:
            self._is_bare = frame["event"].is_in(_WARNINGS).all()

    def take(
        self, part: pl.DataFrame, facts: Mapping[str, Any] | None, joins: pl.DataFrame
    ) -> None:
        """Take in lines of which only the first may begin a run, or the only one ends one.

        Args:
            part: The lines.
            facts: What the first of them says of the run that it begins, if it does.
            joins: Those of agents that join.
        """
        line, event = part["line"][0], part["event"][0]
        if facts is not None:
            self._begin(line, facts)
        elif event == RUN_ENDED:
            self._end(line)
        elif not self.runs or (self.runs[-1].ended and not part["event"].is_in(_WARNINGS).all()):
            self._go_on(line)

        self.take_others(part if facts is None else part.slice(1))
        if not joins.is_empty():
            self._take_joins(joins)

    def describe(self) -> str:
        """Say how many runs there are, and whether they can be told apart."""
        lines = ", ".join(f"{line:,}" for line in self.starts[:_MOST_LINES_NAMED])
        what = (
            f"holds {len(self.runs)} runs, which begin in lines {lines}"
            if len(self.runs) > 1
            else "holds several runs"
        )
        if self.mixed_in is None:
            return f"{what}: each is taken by itself"

        told = f"as line {self.mixed_in:,} tells"

        return f"{what}, and their lines are mixed, {told}: they cannot be told apart, so that tables mix them"

    def _begin(self, line: int, facts: Mapping[str, Any]) -> None:
        run = Run(self.label, self.path, started=True, **facts)
        before = self.runs[-1] if self.runs else run
        if (
            self._is_bare
            and before.agents is None
            and (run.agents is not None or not before.started)
        ):
            self.runs[-1] = run
        else:
            if before.agents is not None and not before.ended and self.runs:
                self._cut_into.append(len(self.runs) - 1)
            self._add(run, line)

        if run.agents is None:
            self._opened = len(self.runs) - 1

    def _end(self, line: int) -> None:
        """End the run under way; what ends after it is the log of an application, or a run mixed with it."""
        if not self.runs:
            self._add(Run(self.label, self.path), line)

        run = self.runs[-1]
        if self._opened is not None and (run.ended or run.agents is None):
            self._mark_as_ended(self._opened)
            self._opened = None
        elif run.ended:
            self.mixed_in = self.mixed_in or line
            if self._cut_into:
                self._mark_as_ended(self._cut_into.pop())

        self._mark_as_ended(-1)

    def _go_on(self, line: int) -> None:
        """Go on after the end of a run: with one that was cut into before it ended, else with one of unknown begin."""
        if self._cut_into:
            self.mixed_in = self.mixed_in or line
        else:
            self._add(Run(self.label, self.path), line)

    def _take_joins(self, joins: pl.DataFrame) -> None:
        """Take in agents that join, which each does only once in a run."""
        self._joined = pl.concat([self._joined, joins["agent_id"]])
        again = joins.filter(~self._joined.is_first_distinct().tail(joins.height))
        if again.height:
            self.mixed_in = self.mixed_in or again["line"][0]

    def _add(self, run: Run, line: int) -> None:
        self.runs.append(run)
        self.starts.append(line)
        self._joined = self._joined.clear()
        self._is_bare = True

    def _mark_as_ended(self, number: int) -> None:
        self.runs[number] = replace(self.runs[number], ended=True)


class FileSurvey:
    """What one file turns out to hold.

    Args:
        path: The file.
        label: What to call its run.
        first_run: Number of its first run among those of all files.
    """

    def __init__(self, path: Path, label: str, first_run: int) -> None:
        self._path = path
        self._first_run = first_run
        self._runs = _RunsOfFile(path, label)
        self._lines = 0
        self._foreign: Counter[str] = Counter()
        self._bad_lines: list[int] = []
        self._faults: list[Note] = []

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
            self._foreign.update(
                {name or "without a name": count for name, count in foreign.items()}
            )
            frame = frame.filter(pl.col("event").is_in(list(KNOWN_EVENTS)))

        if frame.is_empty():
            return self._with_number(frame)
        if self._runs.may_change(counts):
            return self._numbered(frame, _marks(block, counts))

        self._runs.take_others(frame)

        return self._with_number(frame)

    def take_fault(self, line: int, fault: str) -> None:
        """Take in that some bytes could not be read."""
        self._lines += 1
        self._note("truncated" if fault is CUT_OFF else "corrupt", fault, line)

    def labelled_runs(self) -> list[Run]:
        """Return the runs with labels of their own."""
        runs = self._runs.runs
        if len(runs) == 1:
            return runs

        return [
            replace(run, label=f"{run.label}#{number}") for number, run in enumerate(runs, start=1)
        ]

    def notes(self) -> Iterator[Note]:
        """Tell all that is to be said of the file."""
        path = str(self._path)
        for line in self._bad_lines[:_MOST_LINES_NAMED]:
            yield Note("corrupt", path, line, "is no JSON and is left out")

        if (more := len(self._bad_lines) - _MOST_LINES_NAMED) > 0:
            yield Note("corrupt", path, None, f"{more:,} more lines are no JSON and are left out")

        yield from self._faults
        if self._foreign:
            yield Note("foreign_events", path, None, _describe(self._foreign))

        yield from self._notes_on_runs()

        if not self._runs.runs:
            what = (
                "holds no event of prism"
                if self._lines
                else "is empty: nothing has been written to it"
            )
            yield Note("empty", path, None, what)

    def _notes_on_runs(self) -> Iterator[Note]:
        path = str(self._path)
        if len(self._runs.runs) > 1 or self._runs.mixed_in is not None:
            yield Note("mixed_runs", path, None, self._runs.describe())

        for run in self.labelled_runs():
            if run.schema is not None and run.schema > SCHEMA_VERSION:
                yield Note("newer_schema", path, None, _newer(run))

            if run.started and not run.ended:
                yield Note(
                    "unfinished",
                    path,
                    None,
                    f"{run.label} has not ended: it is still going on, or was stopped",
                )

    def _take_bad_lines(self, parsed: Parsed, *, cut_off: bool) -> None:
        bad = list(parsed.bad_lines)
        last = max(bad[-1] if bad else 0, parsed.frame["line"].max() or 0)
        if cut_off and bad and bad[-1] == last:
            self._note("truncated", "is cut off in its middle and is left out", bad.pop())

        self._bad_lines += bad

    def _note(self, kind: NoteKind, message: str, line: int) -> None:
        self._faults.append(Note(kind, str(self._path), line, message))

    def _numbered(self, frame: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
        """Number lines among which runs may begin or end."""
        told = marks.filter(event=RUN_STARTED)
        starts = dict(zip(told["line"], told.select(_FACTS).iter_rows(named=True), strict=True))
        joins = marks.filter(event=AGENT_JOINED).select("line", "agent_id").drop_nulls()
        parts = []
        for part in _split(frame):
            first, last = part["line"][0], part["line"][-1]
            self._runs.take(
                part, starts.get(first), joins.filter(pl.col("line").is_between(first, last))
            )
            parts.append(self._with_number(part))

        return pl.concat(parts)

    def _with_number(self, frame: pl.DataFrame) -> pl.DataFrame:
        number = self._first_run + max(len(self._runs.runs) - 1, 0)
        return frame.with_columns(run=pl.lit(number, pl.UInt32))


def _marks(block: Block, counts: Mapping[str, int]) -> pl.DataFrame:
    """Return the lines of a block that say which run begins or who joins it."""
    told = [name for name in (RUN_STARTED, AGENT_JOINED) if name in counts]
    columns = ("event", "agent_id", *_FACTS)
    return (
        parse(block, columns).frame.filter(pl.col("event").is_in(told)) if told else empty(columns)
    )


def _split(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Split a frame before each line that begins a run, and around each that ends one."""
    starts, ends = (
        frame["event"].eq(event).arg_true().to_list() for event in (RUN_STARTED, RUN_ENDED)
    )
    for begin, end in pairwise(
        sorted({0, *starts, *ends, *(place + 1 for place in ends), frame.height})
    ):
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

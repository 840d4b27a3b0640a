"""The survey of a log file while it is read: its runs, and its faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from prism.analysis._reading.parsing import Parsed, empty, objects_of, parse
from prism.analysis._reading.runs import (
    MOST_LINES_NAMED,
    RUN_FACTS,
    RUN_OBJECTS,
    Note,
    NoteKind,
    Run,
    RunsOfFile,
    is_known,
)
from prism.analysis._reading.scanning import read_object
from prism.runlog._reader import CUT_OFF, Block
from prism.telemetry import events

SURVEYED = ("event",)
"""Keys that every pass over a log reads."""

_NO_EVENTS = "contains no events of prism, one JSON object a line in UTF-8"
_MOST_EVENTS_NAMED = 5
_SOURCE_TARGET_TRIGGER = 3

_FAULTS: Mapping[str, tuple[NoteKind, str, str]] = {
    events.GUARD_FAILED: ("guard_failed", "a guard raised an exception", ", and counted as false"),
    events.ACTION_FAILED: (
        "action_failed",
        "an action raised an exception",
        ", but its transition took place",
    ),
}
"""Events of faults in the user's code: the kind of note, what happened, and the consequence."""


class FileSurvey:
    """The runs of one file, and its faults.

    Args:
        path: The file.
        label: Label of its runs.
        first_run: Number of its first run among those of all files.
        own: Name of an application's own events to include; all others are left out.

    Attributes:
        events: The number of prism's events of each name.
    """

    def __init__(self, path: Path, label: str, first_run: int, own: str | None = None) -> None:
        self._path = path
        self._first_run = first_run
        self._own = own
        self._runs = RunsOfFile(path, label)
        self._lines = 0
        self.events: Counter[str] = Counter()
        self._foreign: Counter[str] = Counter()
        self._left_out = _LeftOut(path)
        self._raised = _Raised(path)

    def take(self, block: Block, parsed: Parsed) -> pl.DataFrame:
        """Add some lines.

        Args:
            block: The lines.
            parsed: The same lines as columns, ``event`` among them.

        Returns:
            Prism's events among them, and the application's own that are included, with the number
            of their run as ``run``. For an application's own events, it is the run that began last.
        """
        before = self._number()
        frame = self._taken(block, parsed)
        if self._own is None:
            return frame

        own = parsed.frame.filter(event=self._own)
        own = own.join_asof(frame.select("line", "run"), on="line").with_columns(
            pl.col("run").fill_null(before)
        )

        return pl.concat([frame, own.select(frame.columns)]).sort("line")

    def _taken(self, block: Block, parsed: Parsed) -> pl.DataFrame:
        self._lines += parsed.frame.height + len(parsed.bad_lines)
        self._left_out.take(parsed, cut_off=not block.data.endswith(b"\n"))

        counts = dict(parsed.frame["event"].value_counts().iter_rows())
        frame = self._without_foreign(parsed.frame, counts)
        self._raised.take(frame, counts)

        if frame.is_empty():
            return self._with_number(frame)
        if self._runs.may_change(counts):
            return self._numbered(frame, _boundaries(block, counts))

        self._runs.take_others(frame)

        return self._with_number(frame)

    def take_fault(self, line: int, fault: str) -> None:
        """Add a line that could not be read.

        Args:
            line: Its number.
            fault: What is wrong with it.
        """
        self._lines += 1
        self._left_out.take_fault(line, fault)

    def foreign_names(self) -> set[str]:
        """Return the names of the events that are not prism's."""
        return set(self._foreign)

    def labelled_runs(self) -> list[Run]:
        """Return the runs, numbered in their labels if there are several."""
        runs = self._runs.runs
        if len(runs) == 1:
            return runs

        return [
            replace(run, label=f"{run.label}#{number}") for number, run in enumerate(runs, start=1)
        ]

    def notes(self) -> Iterator[Note]:
        """Return all notes on the file."""
        yield from self._left_out.notes()

        if self._foreign:
            yield self._note("foreign_events", _describe(self._foreign))

        yield from self._notes_on_runs()
        yield from self._raised.notes()

        if not self._runs.runs:
            is_empty = "is empty: nothing has been written to it"
            yield self._note("empty", _NO_EVENTS if self._lines else is_empty)

    def _notes_on_runs(self) -> Iterator[Note]:
        if len(self._runs.runs) > 1 or self._runs.interleaved_at is not None:
            yield self._note("mixed_runs", self._runs.describe())

        for run in self.labelled_runs():
            if run.schema is not None and run.schema > events.SCHEMA_VERSION:
                yield self._note("newer_schema", _newer(run))

            if run.agents is not None and run.logged_agents is not None:
                text = _sampled(run.logged_agents, run.agents)
                yield self._note("sampled", text)

            if run.started and not run.ended:
                text = f"{run.label} has not ended: it is still running, or was stopped"
                yield self._note("unfinished", text)

    def _note(self, kind: NoteKind, message: str) -> Note:
        return Note(kind, str(self._path), None, message)

    def _without_foreign(self, frame: pl.DataFrame, counts: Mapping[str, int]) -> pl.DataFrame:
        """Count the events that are not prism's, and leave them out."""
        foreign = {name: count for name, count in counts.items() if not is_known(name)}
        self.events.update({name: counts[name] for name in counts.keys() - foreign.keys()})
        if not foreign:
            return frame

        self._foreign.update({name or "without a name": foreign[name] for name in foreign})

        return frame.filter(pl.col("event").is_in(list(counts.keys() - foreign.keys())))

    def _numbered(self, frame: pl.DataFrame, boundaries: pl.DataFrame) -> pl.DataFrame:
        """Add the number of its run to each line, if runs may begin or end among the lines."""
        begun = boundaries.filter(event=events.RUN_STARTED)
        facts = {
            line: {
                **known,
                "parameters": read_object(objects["parameters"]),
                "charts": _trees(read_object(objects["charts"])),
                "arrows": _arrows(read_object(objects["arrows"])),
            }
            for line, objects, known in zip(
                begun["line"],
                begun.select(RUN_OBJECTS).iter_rows(named=True),
                begun.select(RUN_FACTS).iter_rows(named=True),
                strict=True,
            )
        }
        joins = boundaries.filter(event=events.AGENT_JOINED).select("line", "agent_id").drop_nulls()

        parts = []
        for part in _split(frame):
            first, last = part["line"][0], part["line"][-1]
            own_joins = joins.filter(pl.col("line").is_between(first, last))
            self._runs.take(part, facts.get(first), own_joins)
            parts.append(self._with_number(part))

        return pl.concat(parts)

    def _with_number(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(run=pl.lit(self._number(), pl.UInt32))

    def _number(self) -> int:
        return self._first_run + max(len(self._runs.runs) - 1, 0)


class _LeftOut:
    """The lines of a file that could not be read."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._bad_lines: list[int] = []
        self._faults: list[Note] = []

    def take(self, parsed: Parsed, *, cut_off: bool) -> None:
        """Add the bad lines of a block; the last line of an incomplete block is not corrupt."""
        bad = list(parsed.bad_lines)
        last = max(bad[-1] if bad else 0, parsed.frame["line"].max() or 0)
        if cut_off and bad and bad[-1] == last:
            text = "is cut off and is left out"
            self._faults.append(Note("truncated", self._path, bad.pop(), text))

        self._bad_lines += bad

    def take_fault(self, line: int, fault: str) -> None:
        """Add a line that was not even parsed."""
        kind: NoteKind = "truncated" if fault is CUT_OFF else "corrupt"
        self._faults.append(Note(kind, self._path, line, fault))

    def notes(self) -> Iterator[Note]:
        """Return a note on each of the first lines, and one on all others."""
        for line in self._bad_lines[:MOST_LINES_NAMED]:
            yield Note("corrupt", self._path, line, "is not valid JSON and is left out")

        more = len(self._bad_lines) - MOST_LINES_NAMED
        if more > 0:
            text = f"{more:,} more lines are not valid JSON and are left out"
            yield Note("corrupt", self._path, None, text)

        yield from self._faults


class _Raised:
    """The exceptions in the runs of a file: how often, and in which line first."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._counts: Counter[str] = Counter()
        self._first: dict[str, int] = {}

    def take(self, frame: pl.DataFrame, counts: Mapping[str, int]) -> None:
        """Add events, with their number by name."""
        for event in _FAULTS.keys() & counts.keys():
            self._counts[event] += counts[event]
            self._first.setdefault(event, frame.filter(event=event)["line"][0])

    def notes(self) -> Iterator[Note]:
        """Return a note on each kind."""
        for event, (kind, what, outcome) in _FAULTS.items():
            if count := self._counts[event]:
                times = "once" if count == 1 else f"{count:,} times"
                text = f"{what} {times}{outcome}; `prism log faults` has more"
                yield Note(kind, self._path, self._first[event], text)


def _trees(charts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the states inside each composite state of each chart; invalid trees are dropped."""
    return {chart: inside for chart, inside in charts.items() if _is_tree(inside)}


def _arrows(charts: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """Return the transitions of each chart; invalid ones are dropped."""
    return {
        chart: [each for each in arrows if isinstance(each, list) and _are_ends(each)]
        for chart, arrows in charts.items()
        if isinstance(arrows, list)
    }


def _are_ends(arrow: list[Any]) -> bool:
    return len(arrow) == _SOURCE_TARGET_TRIGGER and all(isinstance(each, str) for each in arrow)


def _is_tree(inside: Any) -> bool:
    if not isinstance(inside, dict) or not all(isinstance(each, list) for each in inside.values()):
        return False
    if not all(isinstance(state, str) for states in inside.values() for state in states):
        return False

    try:
        TopologicalSorter(inside).prepare()
    except CycleError:
        return False

    return True


def _boundaries(block: Block, counts: Mapping[str, int]) -> pl.DataFrame:
    """Return the lines of a block in which a run begins or an agent joins."""
    wanted = [name for name in (events.RUN_STARTED, events.AGENT_JOINED) if name in counts]
    columns = ("event", "agent_id", *RUN_FACTS)
    if not wanted:
        return empty((*columns, *RUN_OBJECTS))

    # Few blocks have such lines, and only these are parsed again, with more columns.
    found = parse(block, columns).frame.filter(pl.col("event").is_in(wanted))
    begins = found.select(pl.when(pl.col("event") == events.RUN_STARTED).then("line")).to_series()

    return found.with_columns(objects_of(block, begins, RUN_OBJECTS))


def _split(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Split a frame before each line that begins a run, and around each that ends one."""
    starts = frame["event"].eq(events.RUN_STARTED).arg_true().to_list()
    ends = frame["event"].eq(events.RUN_ENDED).arg_true().to_list()
    cuts = {0, *starts, *ends, *(place + 1 for place in ends), frame.height}

    for begin, end in pairwise(sorted(cuts)):
        yield frame.slice(begin, end - begin)


def _describe(foreign: Counter[str]) -> str:
    most_first = sorted(foreign.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{name} {count:,}" for name, count in most_first[:_MOST_EVENTS_NAMED])
    more = len(foreign) - _MOST_EVENTS_NAMED
    kinds = f", and {more} kinds more" if more > 0 else ""
    total = foreign.total()
    are = (
        f"{total:,} events that are not prism's are"
        if total > 1
        else "1 event that is not prism's is"
    )

    return f"{are} left out: {named}{kinds}"


def _sampled(logged: int, agents: int) -> str:
    if not logged:
        return (
            f"has only the rounds, and none of {agents:,} agents: `prism log states`, `measures` "
            "and `run-measures` have what all of them did"
        )
    return (
        f"has only {logged:,} of {agents:,} agents: states, measures and totals of rounds are of "
        "all, and all other tables of these alone"
    )


def _newer(run: Run) -> str:
    return (
        f"{run.label} has events of version {run.schema}, and this prism knows version "
        f"{events.SCHEMA_VERSION}: unknown parts are left out; a newer prism may read them"
    )

"""The survey of a log file while it is read: its run, and its faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from prism.analysis._reading.parsing import Parsed, objects_of, parse
from prism.analysis._reading.runs import (
    MOST_LINES_NAMED,
    RUN_FACTS,
    RUN_OBJECTS,
    Note,
    NoteKind,
    Run,
    is_known,
)
from prism.analysis._reading.scanning import read_object
from prism.runlog._reader import CUT_OFF, Block, LastRun
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
    """The run of one file, and its faults.

    Of several runs of an application, which begin with a ``run.started`` that names no agents, the
    last is read. In it, that of a simulation takes its place unless something has happened before.
    A second run then, and everything after its first line, is left out.

    Args:
        path: The file.
        label: Label of its run.
        number: Number of its run among those of all files.
        own: Name of an application's own events to include; all others are left out.
        last: Where its last run begins, as `last_run` returns it.

    Attributes:
        run: The run, as far as the file describes it; None before its first event.
        events: The number of prism's events of each name.
    """

    def __init__(
        self,
        path: Path,
        label: str,
        number: int,
        own: str | None = None,
        last: LastRun = LastRun(1, 0),  # noqa: B008 - it never changes
    ) -> None:
        self.run: Run | None = None
        self.events: Counter[str] = Counter()
        self._path = path
        self._label = label
        self._run_number = number
        self._own = own
        self._last = last
        # whether the run has no events yet, apart from its start and warnings
        self._is_bare = True
        self._second_at: int | None = None
        self._on_times: str | None = None
        self._lines = 0
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
            of their run as ``run``.
        """
        if block.first_line < self._last.line:
            bad = [line for line in parsed.bad_lines if line >= self._last.line]
            parsed = Parsed(parsed.frame.filter(pl.col("line") >= self._last.line), bad)
        self._lines += parsed.frame.height + len(parsed.bad_lines)
        self._left_out.take(parsed, cut_off=not block.data.endswith(b"\n"))

        counts = dict(parsed.frame["event"].value_counts().iter_rows())
        frame = self._without_foreign(parsed.frame, counts)
        if not self.events and frame.height:
            first = block.data.split(b"\n")[frame["line"][0] - block.first_line]
            self._on_times = _problem_of_time(orjson.loads(first).get("timestamp"))
        self._follow(block, frame)
        if self._own is not None:
            own = parsed.frame.filter(event=self._own)
            frame = pl.concat([frame, own]).sort("line")
        if self._second_at is not None:
            frame = frame.filter(pl.col("line") < self._second_at)
            counts = dict(frame["event"].value_counts().iter_rows())

        self.events.update({name: counts[name] for name in counts if is_known(name)})
        self._raised.take(frame, counts)

        return frame.with_columns(run=pl.lit(self._run_number, pl.UInt32))

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

    def notes(self) -> Iterator[Note]:
        """Return all notes on the file."""
        yield from self._left_out.notes()

        if self._foreign:
            yield self._note("foreign_events", _describe(self._foreign))

        if self._on_times is not None:
            yield self._note("times", self._on_times)

        if self._last.earlier:
            runs = "an earlier run" if self._last.earlier == 1 else f"{self._last.earlier:,} runs"
            text = f"the last run begins here: {runs} before it in this file, left out"
            yield Note("earlier_runs", str(self._path), self._last.line, text)

        if self._second_at is not None:
            text = "a second run begins here: it is left out, since a file holds one run"
            yield Note("second_run", str(self._path), self._second_at, text)

        if self.run is not None:
            yield from self._notes_on_run(self.run)
        yield from self._raised.notes()

        if self.run is None:
            is_empty = "is empty: nothing has been written to it"
            yield self._note("empty", _NO_EVENTS if self._lines else is_empty)

    def _notes_on_run(self, run: Run) -> Iterator[Note]:
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
        if not foreign:
            return frame

        self._foreign.update({name or "without a name": foreign[name] for name in foreign})

        return frame.filter(pl.col("event").is_in(list(counts.keys() - foreign.keys())))

    def _follow(self, block: Block, frame: pl.DataFrame) -> None:
        """Take up the run that begins or ends in some lines, or find where a second one begins."""
        starts = _starts(block, frame)
        for part in _split(frame):
            if self._second_at is not None:
                return

            line, event = part["line"][0], part["event"][0]
            if event == events.RUN_STARTED and self._is_bare:
                self.run = Run(self._label, self._path, started=True, **starts[line])
                # an application's start names no agents, and a simulation may begin in it
                self._is_bare = self.run.agents is None
                part = part.slice(1)
            elif event == events.RUN_STARTED or (self._has_ended and not _is_after_end(part)):
                self._second_at = line
            elif self.run is None or event == events.RUN_ENDED:
                run = self.run or Run(self._label, self._path)
                self.run = replace(run, ended=event == events.RUN_ENDED)
            self._is_bare = self._is_bare and part.is_empty()

    @property
    def _has_ended(self) -> bool:
        return self.run is not None and self.run.ended


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


def _problem_of_time(first: Any) -> str | None:
    """Return what is wrong with the times of a log, judged by the first of them."""
    try:
        has_zone = isinstance(first, float | int | None) or datetime.fromisoformat(first).tzinfo
    except (TypeError, ValueError):
        return f"has times that cannot be read, such as {first!r}: they are left out"
    return None if has_zone else "has times without a time zone: they are taken for UTC"


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


def _starts(block: Block, frame: pl.DataFrame) -> dict[int, dict[str, Any]]:
    """Return what the lines that begin a run say of it, by their numbers."""
    if events.RUN_STARTED not in frame["event"]:
        return {}

    # only these lines are parsed again, with more columns
    begun = parse(block, ("event", *RUN_FACTS)).frame.filter(event=events.RUN_STARTED)
    objects = objects_of(block, begun["line"], RUN_OBJECTS)

    return {
        line: {
            **known,
            "parameters": read_object(own["parameters"]),
            "charts": _trees(read_object(own["charts"])),
            "arrows": _arrows(read_object(own["arrows"])),
        }
        for line, known, own in zip(
            begun["line"],
            begun.select(RUN_FACTS).iter_rows(named=True),
            objects.iter_rows(named=True),
            strict=True,
        )
    }


def _is_after_end(part: pl.DataFrame) -> bool:
    """Return whether lines may follow the end of their run, such as an application's own end."""
    return bool((part["event"] == events.RUN_ENDED).all())


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

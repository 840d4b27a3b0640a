"""The runs in a log, and notes on its problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from prism.analysis._reading.parsing import TYPES
from prism.runlog._keys import WORLD_EVENTS
from prism.telemetry import events
from prism.telemetry.events import AGENT_JOINED, DECISION, RUN_ENDED, RUN_STARTED

NoteKind = Literal[
    "action_failed",
    "broken_chain",
    "corrupt",
    "empty",
    "foreign_events",
    "guard_failed",
    "mixed_runs",
    "newer_schema",
    "no_feed",
    "no_follows",
    "not_weighed",
    "out_of_order",
    "sampled",
    "truncated",
    "unfinished",
    "unreadable",
]


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on a log that affects its tables.

    Args:
        kind: Its kind, for programs.
        path: The log.
        line: The line that it refers to, counted from 1, or None for the whole log.
        message: Its text, for people.
    """

    kind: NoteKind
    path: str
    line: int | None
    message: str

    def __str__(self) -> str:
        """Return the note as ``file, line 3: message``."""
        where = self.path if self.line is None else f"{self.path}, line {self.line:,}"
        return f"{where}: {self.message}"


KNOWN_EVENTS = frozenset(
    value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)
)
RUN_FACTS = (
    *("schema", "chart", "agents", "logged_agents", "rounds", "ticks_per_round", "seed", "world"),
    "seconds_per_round",
)
"""Keys of ``run.started`` that describe a run, apart from those that are objects."""

RUN_OBJECTS = ("parameters", "charts", "arrows")

MOST_LINES_NAMED = 10

_BOUNDARIES = frozenset((RUN_STARTED, AGENT_JOINED, RUN_ENDED))

# A reasoner may warn before, during and after a run, so its warnings neither begin nor end one.
_WARNINGS = [name for name in KNOWN_EVENTS if name.startswith("reasoner.") and name != DECISION]


_FEW_PARAMETERS = 12
"""The largest number of a world's parameters for which all become columns of tables."""


def is_known(event: str | None) -> bool:
    """Return True for an event of prism, or one that a world has logged."""
    return event is not None and (event in KNOWN_EVENTS or event.startswith(WORLD_EVENTS))


def parameters_apart(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the parameters that distinguish each run.

    For a world with few parameters, these are all of them. For one with many, such as the social
    feed, they are those that differ between runs.
    """
    told = [run.parameters for run in runs]
    few = (each for each in told if len(each) <= _FEW_PARAMETERS)
    apart = _differing(told).union(*few)
    return [{name: each[name] for name in each if name in apart} for each in told]


def _differing(told: Sequence[Mapping[str, Any]]) -> set[str]:
    # by their texts, since lists and tables of values cannot be members of a set
    values = {(name, repr(value)) for each in told for name, value in each.items()}
    return {name for name, count in Counter(name for name, _ in values).items() if count > 1}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a log, as described by the log.

    Args:
        label: Its name in the column ``run`` of tables: its folder or file, with ``#1``, ``#2``,
            ... if a file has several runs.
        path: The log.
        started: Whether it begins with ``run.started``, as the runs of a simulation do.
        ended: Whether the log contains its end.
        schema: Version of its events.
        chart: The name of the agents' chart, or several names separated by commas.
        agents: Number of its agents.
        logged_agents: How many of them the log covers; None for all.
        rounds: Number of rounds planned.
        ticks_per_round: Ticks of each round.
        seconds_per_round: Seconds of the log in a round, if events happen at rates.
        seed: Its seed.
        world: The class of its world; None for a social feed, or if the log does not contain it.
        parameters: The world's parameters at the beginning, by name.
        charts: The states inside each composite state, by chart.
        arrows: Source, target and trigger of the transitions of these charts.
    """

    label: str
    path: Path
    started: bool = False
    ended: bool = False
    schema: int | None = None
    chart: str | None = None
    agents: int | None = None
    logged_agents: int | None = None
    rounds: int | None = None
    ticks_per_round: int | None = None
    seconds_per_round: float | None = None
    seed: int | None = None
    world: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    charts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    arrows: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(slots=True)
class RunsOfFile:
    """The runs of a file, separated by the lines that begin and end them.

    The log of an application (`prism.runlog.configure`) may contain simulations. It begins with a
    ``run.started`` that names no agents, and its ``run.ended`` follows that of the last simulation.

    Args:
        path: The file.
        label: Label of its runs.
        runs: The runs found so far.
        starts: The line each of them begins in.
        interleaved_at: The first line that shows that runs are interleaved, if any does.
    """

    path: Path
    label: str
    runs: list[Run] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    interleaved_at: int | None = None

    # Index of the application's run, if it has not ended.
    _application: int | None = None
    # Whether the last run has no events yet, apart from its start and warnings.
    _is_bare: bool = False
    # Indices of the simulations during which another one began.
    _interrupted: list[int] = field(default_factory=list)
    # Agents that joined the last run.
    _joined: pl.Series = field(default_factory=lambda: pl.Series(dtype=TYPES["agent_id"]))

    def may_change(self, counts: Mapping[str, int]) -> bool:
        """Return True if a run may begin or end among lines with these events.

        Args:
            counts: Number of events by name.
        """
        return not _BOUNDARIES.isdisjoint(counts) or not self.runs or self.runs[-1].ended

    def take_others(self, frame: pl.DataFrame) -> None:
        """Add events that contain no beginning or end of a run."""
        if self._is_bare:
            self._is_bare = frame["event"].is_in(_WARNINGS).all()

    def take(
        self, part: pl.DataFrame, facts: Mapping[str, Any] | None, joins: pl.DataFrame
    ) -> None:
        """Add lines of which only the first may begin a run, or a single line that ends one.

        Args:
            part: The lines.
            facts: The data of the run that the first line begins; None if it begins none.
            joins: The lines of agents that join.
        """
        line, event = part["line"][0], part["event"][0]

        if facts is not None:
            self._begin(line, facts)
        elif event == RUN_ENDED:
            self._end(line)
        elif not self.runs or self._goes_on_after_end(part):
            self._continue(line)

        self.take_others(part if facts is None else part.slice(1))
        if not joins.is_empty():
            self._take_joins(joins)

    def describe(self) -> str:
        """Return how many runs there are, and whether they can be told apart."""
        what = "contains several runs"
        if len(self.runs) > 1:
            lines = ", ".join(f"{line:,}" for line in self.starts[:MOST_LINES_NAMED])
            what = f"contains {len(self.runs)} runs, which begin at lines {lines}"

        if self.interleaved_at is None:
            return f"{what}: each is treated separately"

        return (
            f"{what}, and their lines are interleaved, as line {self.interleaved_at:,} shows: "
            "they cannot be separated, so tables mix them"
        )

    def _begin(self, line: int, facts: Mapping[str, Any]) -> None:
        run = Run(self.label, self.path, started=True, **facts)
        before = self.runs[-1] if self.runs else None

        if before is not None and self._is_first_simulation(run, before):
            self.runs[-1] = run
        else:
            if before is not None and before.agents is not None and not before.ended:
                self._interrupted.append(len(self.runs) - 1)
            self._add(run, line)

        if run.agents is None:
            self._application = len(self.runs) - 1

    def _is_first_simulation(self, run: Run, before: Run) -> bool:
        """Return True if a run takes the place of one that has only been announced."""
        is_announced = self._is_bare and before.agents is None
        return is_announced and (run.agents is not None or not before.started)

    def _goes_on_after_end(self, part: pl.DataFrame) -> bool:
        return self.runs[-1].ended and not part["event"].is_in(_WARNINGS).all()

    def _end(self, line: int) -> None:
        if not self.runs:
            self._add(Run(self.label, self.path), line)

        run = self.runs[-1]
        if self._application is not None and (run.ended or run.agents is None):
            self._mark_as_ended(self._application)
            self._application = None
        elif run.ended:
            # Two ends in a row without an application to end: the second belongs to another run.
            self._mark_as_interleaved(line)
            if self._interrupted:
                self._mark_as_ended(self._interrupted.pop())

        self._mark_as_ended(-1)

    def _continue(self, line: int) -> None:
        """Add a line after the end of a run, or before the start of the first."""
        if self._interrupted:
            # It may belong to the interrupted run, in which case the lines of two runs are
            # interleaved.
            self._mark_as_interleaved(line)
        else:
            self._add(Run(self.label, self.path), line)

    def _take_joins(self, joins: pl.DataFrame) -> None:
        # An agent joins a run only once, so a second time means that there are two runs.
        self._joined = pl.concat([self._joined, joins["agent_id"]])
        again = joins.filter(~self._joined.is_first_distinct().tail(joins.height))
        if again.height:
            self._mark_as_interleaved(again["line"][0])

    def _add(self, run: Run, line: int) -> None:
        self.runs.append(run)
        self.starts.append(line)
        self._joined = self._joined.clear()
        self._is_bare = True

    def _mark_as_interleaved(self, line: int) -> None:
        self.interleaved_at = self.interleaved_at or line

    def _mark_as_ended(self, number: int) -> None:
        self.runs[number] = replace(self.runs[number], ended=True)

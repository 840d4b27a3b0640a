"""The runs in a log, and notes on its problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from prism.runlog._keys import WORLD_EVENTS
from prism.telemetry import events
from prism.telemetry.events import DECISION

NoteKind = Literal[
    "action_failed",
    "broken_chain",
    "corrupt",
    "earlier_runs",
    "empty",
    "foreign_events",
    "guard_failed",
    "newer_schema",
    "no_feed",
    "out_of_order",
    "sampled",
    "second_run",
    "times",
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

WARNINGS = tuple(name for name in KNOWN_EVENTS if name.startswith("reasoner.") and name != DECISION)
"""A reasoner may warn before, during and after a run, so its warnings neither begin nor end one."""

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
        label: Its name in the column ``run`` of tables: its folder or file.
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

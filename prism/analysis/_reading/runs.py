"""The runs in a log, and notes on its problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from prism.analysis._log import Note as Note
from prism.analysis._log import Run as Run
from prism.runlog._events import WORLD_EVENTS
from prism.telemetry import events

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

"""The states of several charts, and messages about states that none of them has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from prism.statechart import Definition
from prism.statechart.names import unknown_trigger_problem
from prism.statechart.states import state_text


def states_of(chart: Definition[Any]) -> Sequence[Any]:
    """Return all states of a chart, including composite states."""
    return [node.state for node in chart.hierarchy.tree.nodes[1:]]


def has_state(charts: Iterable[Definition[Any]], state: Any) -> bool:
    """Return whether one of several charts has a state."""
    # by identity, since states of two charts are equal if they have the same text
    return any(state is each for chart in charts for each in states_of(chart))


def targets_of(chart: Definition[Any], trigger: str) -> tuple[Any, ...]:
    """Return the leaves to which transitions of a trigger lead from anywhere, guarded or not."""
    found = (each.target for each in chart.transitions if each.trigger == trigger)
    return tuple(dict.fromkeys(found))


def never_reached(state: Any, trigger: str, targets: Iterable[Any]) -> str:
    """Return the problem with a weight for a state that a trigger never leads to."""
    return (
        f"name {state_text(state)!r}, to which no transition of {trigger!r} ever leads: leave it "
        f"out; its targets are {', '.join(map(state_text, targets))}"
    )


def unheard_of(trigger: Any, charts: Iterable[Definition[Any]]) -> str:
    """Return what is wrong with an event that no chart of a world has."""
    known = {each.trigger: None for chart in charts for each in chart.transitions}
    return unknown_trigger_problem(trigger, known)


def unknown_among(state: Any, charts: Iterable[Definition[Any]]) -> str:
    """Return the part of a message about an unknown state: a suggestion, and the known states.

    Args:
        state: The state.
        charts: The charts that lack it.
    """
    # imported here as it loads pydantic, which a run needs only for its error messages
    from prism.files.declarations import meant

    known = {named(each): each for chart in charts for each in states_of(chart)}
    texts = {state_text(each): name for name, each in known.items()}
    near = texts.get(state_text(state)) or texts.get(meant(state_text(state), texts) or "")
    guess = f" (did you mean {near}?)" if near else ""
    shown = named(state) if isinstance(state, Enum) else repr(state)

    return f"{shown}{guess}: there are {', '.join(known)}"


def named(state: Any) -> str:
    """Return a state as it is written in code; a configuration, which is not, by its text."""
    return f"{type(state).__name__}.{state.name}" if isinstance(state, Enum) else state_text(state)

"""The states of several charts, and what to say of one that none of them has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from prism.statechart._definition import Definition
from prism.statechart._nesting import EventDescriptor
from prism.statechart.states import state_text


def states_of(chart: Definition[Any]) -> Sequence[Any]:
    """Return all states of a chart, those with states inside, too."""
    if chart.tree is None:
        return chart.states

    return [node.state for node in chart.tree.tree.nodes[1:]]


def has_state(charts: Iterable[Definition[Any]], state: Any) -> bool:
    """Return whether one of several charts has a state."""
    # by identity, as states of two charts with one text are equal
    return any(state is each for chart in charts for each in states_of(chart))


def targets_of(chart: Definition[Any], trigger: str) -> tuple[Any, ...]:
    """Return the leaves to which transitions of a trigger lead from anywhere, guarded or not."""
    found = (each.target for each in chart.transitions if _is_for(each.trigger, trigger))
    return tuple(dict.fromkeys(found))


def _is_for(written: Any, trigger: str) -> bool:
    if isinstance(written, EventDescriptor):
        return written.matches(trigger)

    return bool(written == trigger)


def never_reached(state: Any, trigger: str, targets: Iterable[Any]) -> str:
    """Return what is wrong with a weight of a state to which a trigger never leads."""
    return (
        f"name {state_text(state)!r}, to which no transition of {trigger!r} ever leads: leave it "
        f"out; its targets are {', '.join(map(state_text, targets))}"
    )


def unknown_among(state: Any, charts: Iterable[Definition[Any]]) -> str:
    """Return how a message goes on that names an unknown state: what is meant, and what there is.

    Args:
        state: The state.
        charts: The charts that lack it.
    """
    # it loads pydantic, which a run needs only to say what is wrong
    from prism.files._declarations import meant

    known = {named(each): each for chart in charts for each in states_of(chart)}
    texts = {state_text(each): name for name, each in known.items()}
    near = texts.get(state_text(state)) or texts.get(meant(state_text(state), texts) or "")
    guess = f" (did you mean {near}?)" if near else ""
    shown = named(state) if isinstance(state, Enum) else repr(state)

    return f"{shown}{guess}: there are {', '.join(known)}"


def named(state: Any) -> str:
    """Return a state as code names it."""
    return f"{type(state).__name__}.{state.name}"

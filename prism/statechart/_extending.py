"""One chart's definition, derived from another's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, TypedDict

from prism.errors import DefinitionError
from prism.statechart._definition import Definition, in_order
from prism.statechart._parts import Guard, History, State, with_insides
from prism.statechart.states import state_enum, state_text
from prism.statechart.transitions import (
    Transition,
    is_any_state,
    source_text,
    target_text,
    trigger_text,
)
from prism.telemetry.loggers import EventLogger

TransitionName = tuple[str | None, Any, Any]
"""``(trigger, source, target)`` of transitions as written; text stands for a state or a history.

None stands for anything.
"""

_PREFIX = "Extended"

_NAME_STATES = ("source", "target", "state", "states", "initial", "default")
"""Attributes of the parts of a chart that name states."""


class Changes(TypedDict, total=False):
    """What a derived chart has otherwise: see `Statechart.extended`."""

    states: Iterable[Enum | str | State[Any]]
    transitions: Iterable[Transition[Any]]
    without: Iterable[TransitionName | Transition[Any]]
    guards: Mapping[TransitionName, Guard | None]
    timeouts: Mapping[Any, int | None]
    decision_states: Iterable[Enum | str]
    final_states: Iterable[Enum | str]
    initial: Enum | str
    name: str
    description: str
    strict: bool
    logger: EventLogger | None
    clock: Callable[[], float]


def extended(base: Definition[Any], changes: Changes) -> dict[str, Any]:
    """Return the arguments of the derived chart: see `Statechart.extended`."""
    added: Any = in_order(changes.pop("states", ()))
    written, members = base.arguments, _members(base, [each.state for each in with_insides(added)])
    former = [*_former(base, changes)]
    decides: Any = changes.pop("decision_states", ())
    ends: Any = changes.pop("final_states", ())
    # a state is equal to its text, and to a member with the same one
    limits = {**base.timeouts, **changes.pop("timeouts", {})}
    naming = {
        "states": (*written["states"], *added),
        "transitions": (*former, *changes.pop("transitions", ())),
        "initial": changes.pop("initial", written["initial"]),
        "timeouts": {state: ticks for state, ticks in limits.items() if ticks is not None},
        "decision_states": (*written["decision_states"], *in_order(decides)),
        "final_states": (*written["final_states"], *in_order(ends)),
    }
    translated = {name: _translated(value, members) for name, value in naming.items()}
    return {**written, **changes, **translated}


# States


def _members(base: Definition[Any], added: Sequence[Any]) -> dict[str, Any]:
    """Return the members that the derived chart's states may be, by text."""
    texts = {*base.hierarchy.texts[1:], *map(state_text, added)}
    enums: list[type[Enum]] = [type(state) for state in added if isinstance(state, Enum)]
    complete = [
        enum for enum in (base.state_type, *enums) if texts <= {state_text(x) for x in enum}
    ]
    former: Any = base.state_type
    names = dict.fromkeys(state_text(each) for each in (*former, *added))
    name = _PREFIX + base.state_type.__name__.removeprefix(_PREFIX)
    enum = complete[0] if complete else state_enum(name, names)
    return {state_text(member): member for member in enum}


def _translated(value: Any, members: Mapping[str, Any]) -> Any:
    """Return a value with the members of the derived chart's enum as its states."""
    if isinstance(value, tuple):
        return tuple(_translated(each, members) for each in value)
    if isinstance(value, dict):
        return {_translated(state, members): ticks for state, ticks in value.items()}
    if isinstance(value, str):
        return members.get(state_text(value), value)
    if not isinstance(value, (Transition, State, History)):
        return value

    changes = {
        name: _translated(part, members)
        for name in _NAME_STATES
        if hasattr(value, name) and not is_any_state(part := getattr(value, name))
    }
    return replace(value, **changes)


# Transitions


def _former(base: Definition[Any], changes: Changes) -> Iterator[Transition[Any]]:
    """Yield the former transitions that stay, with their new guards."""
    without, guards = [*changes.pop("without", ())], changes.pop("guards", {})
    names = [*without, *guards]
    if lost := [n for n in names if not any(_is_named(item, n) for item in base.transitions)]:
        raise DefinitionError(
            f"chart {base.name!r} has no transition {', '.join(map(repr, lost))}: name one as "
            "(trigger, source, target), with None for any"
        )
    for item in base.transitions:
        if not any(_is_named(item, name) for name in without):
            matching = [guard for name, guard in guards.items() if _is_named(item, name)]
            yield replace(item, guard=matching[-1]) if matching else item


def _is_named(item: Transition[Any], name: Any) -> bool:
    if not isinstance(name, tuple) or len(name) != 3:
        return bool(item == name)
    texts = trigger_text(item.trigger), source_text(item.source), target_text(item.target)
    pairs = zip(name, texts, strict=True)
    return all(part is None or target_text(part) == text for part, text in pairs)

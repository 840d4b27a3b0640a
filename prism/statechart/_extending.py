"""One chart's definition, derived from another's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

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

TransitionName = tuple[str | None, Any, Any]
"""``(trigger, source, target)`` of transitions as written; text stands for a state or a history.

None stands for anything.
"""

_PREFIX = "Extended"

_NAME_STATES = ("source", "target", "state", "states", "initial", "default")
"""Attributes of the parts of a chart that name states."""


def extended(base: Definition[Any], **more: Any) -> dict[str, Any]:
    """Return the arguments of the derived chart: see `Statechart.extended`."""
    written = base.arguments
    added = in_order(more.pop("states", ()))
    former = [*_former(base, [*more.pop("without", ())], more.pop("guards", {}))]
    # a state is equal to its text, and to a member with the same one
    limits = {**base.timeouts, **more.pop("timeouts", {})}
    naming = {
        "states": (*written["states"], *added),
        "transitions": (*former, *more.pop("transitions", ())),
        "initial": more.pop("initial", written["initial"]),
        "timeouts": {state: ticks for state, ticks in limits.items() if ticks is not None},
        **{
            name: (*written[name], *in_order(more.pop(name, ())))
            for name in ("decision_states", "final_states")
        },
    }
    members = _members(base, [each.state for each in with_insides(added)])
    translated = {name: _translated(value, members) for name, value in naming.items()}
    return {**written, **more, **translated}


# States


def _members(base: Definition[Any], added: Sequence[Any]) -> dict[str, Any]:
    """Return the members that the derived chart's states may be, by text."""
    former: Any = base.state_type
    texts = dict.fromkeys(map(state_text, (*former, *added)))
    enums: list[Any] = [former, *(type(state) for state in added if isinstance(state, Enum))]
    complete = (enum for enum in enums if texts.keys() <= {*map(state_text, enum)})
    name = _PREFIX + former.__name__.removeprefix(_PREFIX)
    enum = next(complete, None) or state_enum(name, texts)
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


def _former(
    base: Definition[Any], without: Sequence[Any], guards: Mapping[TransitionName, Guard | None]
) -> Iterator[Transition[Any]]:
    """Yield the former transitions that stay, with their new guards."""
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

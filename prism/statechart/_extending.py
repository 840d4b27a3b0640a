"""One chart's definition, derived from another's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from enum import Enum
from typing import Any

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart._parts import Guard, History, State, in_order, with_insides
from prism.statechart.states import state_enum, state_text
from prism.statechart.transitions import Transition, target_text, trigger_text

TransitionName = tuple[str | None, Any, Any]
"""``(trigger, source, target)`` of transitions as written; text stands for a state or a history.

None stands for anything.
"""

_PREFIX = "Extended"

_OF_CHARTS = "states", "transitions", "initial", "timeouts", "decision_states", "final_states"
_OF_PARTS = "state", "states", "initial", "default", "source", "target"
"""The arguments that name states."""


def extended(base: Definition[Any], **more: Any) -> dict[str, Any]:
    """Return the arguments of the derived chart: see `Statechart.extended`."""
    written = base.arguments
    added = in_order(more.pop("states", ()))
    former = [*_former(base, [*more.pop("without", ())], more.pop("guards", {}))]
    changed = {state_text(state): ticks for state, ticks in more.pop("timeouts", {}).items()}
    limits = {**base.limits, **changed}
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
    enum = _enum(base, [each.state for each in with_insides(added)])
    return with_members({**written, **more, **naming}, enum)


# States


def _enum(base: Definition[Any], added: Sequence[Any]) -> Iterable[Any]:
    """Return the enum of the derived chart's states."""
    former: Any = base.state_type
    texts = dict.fromkeys(map(state_text, (*former, *added)))
    enums: list[Any] = [former, *(type(state) for state in added if isinstance(state, Enum))]
    complete = (enum for enum in enums if texts.keys() <= {*map(state_text, enum)})
    name = _PREFIX + former.__name__.removeprefix(_PREFIX)
    return next(complete, None) or state_enum(name, texts)


def with_members(arguments: Mapping[str, Any], enum: Iterable[Any]) -> dict[str, Any]:
    """Return a chart's arguments with the members of an enum for all states of their texts."""
    members = {state_text(member): member for member in enum}
    naming = arguments.keys() & _OF_CHARTS
    return {**arguments, **{name: _translated(arguments[name], members) for name in naming}}


def _translated(value: Any, members: Mapping[str, Any]) -> Any:
    match value:
        case tuple():
            return tuple([_translated(each, members) for each in value])
        case dict():
            return {_translated(state, members): ticks for state, ticks in value.items()}
        case str() | Enum():
            return members.get(state_text(value), value)
        case Transition() | State() | History():
            names = [each.name for each in fields(value) if each.name in _OF_PARTS]
            twin = copy(value)
            for name in names:
                # past the constructor, whose checks take as long as all else
                object.__setattr__(twin, name, _translated(getattr(value, name), members))
            return twin
    return value


# Transitions


def _former(
    base: Definition[Any], without: Sequence[Any], guards: Mapping[TransitionName, Guard | None]
) -> Iterator[Transition[Any]]:
    """Yield the former transitions that stay, with their new guards."""
    names = [*without, *guards]
    if lost := [n for n in names if not any(_is_named(item, n) for item in base.transitions)]:
        cure = "name one as (trigger, source, target), with None for any"
        problem = f"has no transition {', '.join(map(repr, lost))}"
        raise DefinitionError(f"chart {base.name!r} {problem}: {cure}")
    for item in base.transitions:
        if not any(_is_named(item, name) for name in without):
            matching = [guard for name, guard in guards.items() if _is_named(item, name)]
            yield replace(item, guard=matching[-1]) if matching else item


def _is_named(item: Transition[Any], name: Any) -> bool:
    if not isinstance(name, tuple) or len(name) != 3:
        return bool(item == name)
    texts = trigger_text(item.trigger), target_text(item.source), target_text(item.target)
    pairs = zip(name, texts, strict=True)
    return all(part is None or target_text(part) == text for part, text in pairs)

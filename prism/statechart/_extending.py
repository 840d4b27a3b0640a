"""One chart's definition, derived from another's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import reduce
from typing import Any, TypedDict

from prism.errors import DefinitionError
from prism.statechart._definition import Definition, arguments_of, listed
from prism.statechart._hierarchy import member_of, with_insides
from prism.statechart._nesting import In, State
from prism.statechart.states import state_enum, state_text
from prism.statechart.transitions import (
    Action,
    Guard,
    History,
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

_NAME_STATES = ("source", "target", "guard", "state", "states", "initial", "default")
"""Attributes of the parts of a chart that name states."""


class Changes(TypedDict, total=False):
    """What a derived chart has otherwise: see `Statechart.extended`."""

    states: Iterable[Enum | str | State[Any]]
    transitions: Iterable[Transition[Any]]
    without: Iterable[TransitionName | Transition[Any]]
    guards: Mapping[TransitionName, Guard | None]
    actions: Mapping[TransitionName, Action | None]
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
    states: Any = changes.pop("states", ())
    written, added = arguments_of(base), listed(states)
    further = {
        name: (*written[name], *listed(changes.pop(name, ())))  # type: ignore[misc]
        for name in ("decision_states", "final_states")
    }
    tree: tuple[Any, ...] = reduce(_with, added, written["states"])
    former = _changed(base, changes)
    if len(tree) > len(written["states"]):
        tops = map(member_of, written["states"])
        every = tuple(each for each in tops if each not in base.hierarchy.final_states)
        former = [replace(x, source=every) if is_any_state(x.source) else x for x in former]

    members = _members(base, [member_of(each) for each in with_insides(added)])
    # a state is equal to its text, and to a member with the same one
    limits = {**base.timeouts, **changes.pop("timeouts", {})}
    naming = {
        "states": tree,
        "transitions": (*former, *changes.pop("transitions", ())),
        "initial": changes.pop("initial", written["initial"]),
        "timeouts": {state: ticks for state, ticks in limits.items() if ticks is not None},
        **further,
    }
    translated = {name: _translated(value, members) for name, value in naming.items()}
    return {**written, **changes, **translated}


# States


def _with(states: tuple[Any, ...], more: Any) -> tuple[Any, ...]:
    """Return states with one more; if one of them has its name, with what it adds to that one."""
    text = state_text(member_of(more))
    if all(text != state_text(member_of(each)) for each in with_insides(states)):
        return (*states, more)
    return tuple(_enlarged(each, text, more) for each in states)


def _enlarged(state: Any, text: str, more: Any) -> Any:
    former = state if isinstance(state, State) else State(state)
    if state_text(former.state) == text and isinstance(more, State):
        return State(
            former.state,
            (*former.states, *more.states),
            initial=more.initial or former.initial or None,
            parallel=former.parallel or more.parallel,
            entry=(*former.entry, *more.entry),
            exit=(*former.exit, *more.exit),
        )
    if not former.states:
        return state
    return replace(state, states=tuple(_enlarged(each, text, more) for each in state.states))


def _members(base: Definition[Any], added: Sequence[Any]) -> dict[str, Any]:
    """Return the members that the derived chart's states may be, by text."""
    texts = {*base.hierarchy.texts, *map(state_text, added)}
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
    if not isinstance(value, (Transition, State, History, In)):
        return value

    changes = {
        name: _translated(part, members)
        for name in _NAME_STATES
        if hasattr(value, name) and not is_any_state(part := getattr(value, name))
    }
    return replace(value, **changes)


# Transitions


def _changed(base: Definition[Any], changes: Changes) -> list[Transition[Any]]:
    """Return the former transitions that stay, with their new guards and actions."""
    guards, actions = changes.pop("guards", {}), changes.pop("actions", {})
    changed: list[tuple[str, Any, Any]] = [
        *(("without", name, None) for name in changes.pop("without", ())),
        *(("guards", name, {"guard": guard}) for name, guard in guards.items()),
        *(("actions", name, {"action": action}) for name, action in actions.items()),
    ]
    if problems := [
        f"{argument}: {name!r} is not a transition of the chart: name one as (trigger, source, "
        "target), with None for any"
        for argument, name, _ in changed
        if not any(_is_named(item, name) for item in base.written)
    ]:
        raise DefinitionError(f"chart {base.name!r} cannot be extended: " + "; ".join(problems))

    kept = []
    for item in base.written:
        own = [change for _, name, change in changed if _is_named(item, name)]
        if None not in own:
            kept.append(reduce(lambda made, change: replace(made, **change), own, item))
    return kept


def _is_named(item: Transition[Any], name: Any) -> bool:
    if not isinstance(name, tuple) or len(name) != 3:
        return bool(item == name)
    texts = trigger_text(item.trigger), source_text(item.source), target_text(item.target)
    pairs = zip(name, texts, strict=True)
    return all(part is None or target_text(part) == text for part, text in pairs)

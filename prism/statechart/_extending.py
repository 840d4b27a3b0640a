"""One chart's definition, derived from another's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import count
from typing import Any, TypedDict, cast

from prism.errors import DefinitionError
from prism.statechart._definition import Definition, arguments_of, listed
from prism.statechart.states import is_made, made_enum, state_text
from prism.statechart.transitions import Action, Guard, OtherThan, Transition, is_any_state
from prism.telemetry._loggers import EventLogger

TransitionName = tuple[str | None, Enum | str | None, Enum | str | None]
"""``(trigger, source, target)`` of transitions; a state may be text, and None stands for any."""

_PREFIX = "Extended"


class Others(TypedDict, total=False):
    """Arguments that a derived chart takes as they are."""

    initial: Enum | str
    name: str
    description: str
    strict: bool
    logger: EventLogger | None
    clock: Callable[[], float]


@dataclass(frozen=True)
class Changes:
    """The differences of a derived chart from the one before.

    Args:
        states: Further states.
        transitions: Further transitions, tried after the former ones.
        without: The transitions to leave out.
        guards: Other guards, by transition; None for no guard.
        actions: Other actions, by transition; None for no action.
        timeouts: Further and other limits in ticks, by state; None for no limit.
        decision_states: Further decision states.
        final_states: Further final states.
        replaced: Other arguments of the definition, by name.
    """

    states: Iterable[Enum | str]
    transitions: Iterable[Transition[Any]]
    without: Iterable[TransitionName | Transition[Any]]
    guards: Mapping[TransitionName, Guard | None]
    actions: Mapping[TransitionName, Action | None]
    timeouts: Mapping[Any, int | None]
    decision_states: Iterable[Enum | str]
    final_states: Iterable[Enum | str]
    replaced: Mapping[str, Any]


def extended(base: Definition[Any], changes: Changes) -> Definition[Any]:
    """Derive a definition: see `Statechart.extended`."""
    if base.tree is not None:
        raise _refused(
            base,
            [
                "it has composites, timers, eventless transitions or guards on states, which would "
                "be lost: define another chart"
            ],
        )
    added = listed(cast("Iterable[Any]", changes.states))
    members = _members(base, added)
    kept = _kept(base, changes)

    return Definition(
        **{
            **arguments_of(base),
            "states": [members[state_text(state)] for state in (*base.states, *added)],
            "transitions": [_translated(item, members) for item in (*kept, *changes.transitions)],
            "initial": _member(base.initial, members),
            "decision_states": _union(base.decision_states, changes.decision_states, members),
            "timeouts": _limits(base, changes.timeouts, members),
            "final_states": _union(base.final_states, changes.final_states, members),
            **{
                name: _member(value, members) if name == "initial" else value
                for name, value in changes.replaced.items()
            },
        }
    )


# States


def _members(base: Definition[Any], added: tuple[Any, ...]) -> dict[str, Any]:
    """Return the members that the derived chart's states may be, by text."""
    wrong = [repr(state) for state in added if not isinstance(state, str) or not state_text(state)]
    if wrong:
        raise _refused(
            base, [f"states must be members of a str-based Enum or texts, got {', '.join(wrong)}"]
        )

    return {state_text(member): member for member in _state_type(base, added)}


def _state_type(base: Definition[Any], added: tuple[Any, ...]) -> type[Enum]:
    """Return the enum that has all states: the former, the one given, or one made for them."""
    former = {state_text(member) for member in base.state_type}
    if {state_text(state) for state in added} <= former:
        return base.state_type

    (given, *others) = {type(state) for state in added}
    if issubclass(given, Enum) and not others:
        texts = {state_text(member) for member in given}
        if {state_text(state) for state in base.states} <= texts:
            return given

    return _made(base, added)


def _made(base: Definition[Any], added: tuple[Any, ...]) -> type[Enum]:
    """Make an enum of all former members and the new ones, under their names."""
    names = {state_text(member): member.name for member in base.state_type}
    for state in added:
        if state_text(state) not in names:
            names[state_text(state)] = _name_for(state, names.values())

    _require_distinct(base, names)
    former = base.state_type.__name__
    name = former if former.startswith(_PREFIX) else _PREFIX + former

    return made_enum(name, tuple(names), tuple(names.values()))


def _require_distinct(base: Definition[Any], names: Mapping[str, str]) -> None:
    """Refuse two texts under one name.

    Args:
        base: The former chart, for messages.
        names: The members' names, by text.
    """
    texts: dict[str, list[str]] = {}
    for text, name in names.items():
        texts.setdefault(name, []).append(text)

    problems = [
        f"two states are members called {name!r} ({', '.join(own)}): rename one member"
        for name, own in sorted(texts.items())
        if len(own) > 1
    ]
    if problems:
        raise _refused(base, problems)


def _name_for(state: Any, taken: Collection[str]) -> str:
    """Return the name of a new member: its own if somebody gave it one, else a generated one."""
    if isinstance(state, Enum) and not (is_made(state) and state.name in taken):
        return state.name

    return next(name for n in count(len(taken)) if (name := f"S{n}") not in taken)


def _member(state: Any, members: Mapping[str, Any]) -> Any:
    """Return the member with a state's text; what is no state is left to the definition."""
    return members.get(state_text(state), state) if isinstance(state, str) else state


def _union(former: Iterable[Any], added: Iterable[Any], members: Mapping[str, Any]) -> list[Any]:
    return [_member(state, members) for state in (*former, *listed(added))]


def _limits(
    base: Definition[Any], given: Mapping[Any, int | None], members: Mapping[str, Any]
) -> dict[Any, Any]:
    limits: dict[Any, Any] = {_member(state, members): n for state, n in base.timeouts.items()}
    for state, ticks in given.items():
        if ticks is None:
            limits.pop(_member(state, members), None)
        else:
            limits[_member(state, members)] = ticks

    return limits


# Transitions


def _kept(base: Definition[Any], changes: Changes) -> list[Transition[Any]]:
    """Return the former transitions that stay, with their new guards and actions."""
    problems = [
        *_unmatched("without", changes.without, base),
        *_unmatched("guards", changes.guards, base),
        *_unmatched("actions", changes.actions, base),
    ]
    if problems:
        raise _refused(base, problems)

    without = list(changes.without)

    return [
        _changed(item, changes)
        for item in base.transitions
        if not any(_is_named(item, name) for name in without)
    ]


def _changed(item: Transition[Any], changes: Changes) -> Transition[Any]:
    for name, guard in changes.guards.items():
        if _is_named(item, name):
            item = replace(item, guard=guard)

    for name, action in changes.actions.items():
        if _is_named(item, name):
            item = replace(item, action=action)

    return item


def _unmatched(argument: str, names: Iterable[Any], base: Definition[Any]) -> Iterator[str]:
    for name in names:
        is_name = isinstance(name, tuple) and len(name) == 3
        if not is_name and not isinstance(name, Transition):
            yield (
                f"{argument} must name transitions as (trigger, source, target), None for any, "
                f"got {name!r}"
            )
        elif not any(_is_named(item, name) for item in base.transitions):
            yield f"{argument}: {_shown(name)} is not a transition of the chart"


def _is_named(item: Transition[Any], name: Any) -> bool:
    if isinstance(name, Transition):
        return item == name

    places = zip((item.trigger, item.source, item.target), name, strict=True)

    return all(given is None or state_text(place) == state_text(given) for place, given in places)


def _shown(name: Any) -> str:
    if isinstance(name, Transition):
        return str(name)
    trigger, source, target = ("any" if place is None else state_text(place) for place in name)
    return f"{source} --{trigger}--> {target}"


def _translated(item: Any, members: Mapping[str, Any]) -> Any:
    """Return a transition between the members of the derived chart's enum."""
    if not isinstance(item, Transition):
        # the definition says what is wrong with it
        return item

    source = _translated_source(item.source, members)
    target = _member(item.target, members)
    if source is item.source and target is item.target:
        return item

    return replace(item, source=source, target=target)


def _translated_source(source: Any, members: Mapping[str, Any]) -> Any:
    if is_any_state(source):
        return source
    if isinstance(source, OtherThan):
        return OtherThan(tuple(_member(each, members) for each in source.states))
    if isinstance(source, tuple):
        return tuple(_member(each, members) for each in source)
    return _member(source, members)


def _refused(base: Definition[Any], problems: Iterable[str]) -> DefinitionError:
    return DefinitionError(f"chart {base.name!r} cannot be extended: " + "; ".join(problems))

"""One chart's definition, derived from another's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import reduce
from itertools import count
from typing import Any, TypedDict

from prism.errors import DefinitionError
from prism.statechart._definition import Definition, arguments_of, listed
from prism.statechart._nesting import In, State
from prism.statechart._tree.hierarchy import Hierarchy, member_of, with_insides
from prism.statechart.states import is_made, made_enum, state_text
from prism.statechart.transitions import (
    History,
    OtherThan,
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

_WITH_STATES = ("source", "target", "guard", "state", "states", "initial", "default")
"""Attributes of the parts of a chart that name states."""


class Others(TypedDict, total=False):
    """Arguments that a derived chart takes as they are."""

    initial: Enum | str
    name: str
    description: str
    strict: bool
    logger: EventLogger | None
    clock: Callable[[], float]


def extended(
    base: Definition[Any],
    states: Iterable[Any],
    transitions: Iterable[Any],
    without: Iterable[Any],
    functions: Mapping[str, Mapping[TransitionName, Any]],
    timeouts: Mapping[Any, int | None],
    further: Mapping[str, Iterable[Any]],
    replaced: Mapping[str, Any],
) -> Definition[Any]:
    """Derive a definition: see `Statechart.extended`.

    Args:
        base: The former definition.
        states: Further states.
        transitions: Further transitions.
        without: The transitions to leave out.
        functions: Other guards and actions, by transition.
        timeouts: Further and other limits.
        further: What is added to other arguments of the definition, by their names.
        replaced: Other arguments, by name.
    """
    written, added = arguments_of(base), listed(states)
    members = _members(base, [member_of(each) for each in with_insides(added)])
    tree: tuple[Any, ...] = reduce(_with, added, tuple(written["states"]))
    kept = _kept(written["transitions"], base, list(without), functions)
    if len(tree) > len(written["states"]):
        kept = [_of_former_states(item, base.hierarchy) for item in kept]
    former, given = (
        {_member(state, members): ticks for state, ticks in limits.items()}
        for limits in (base.timeouts, timeouts)
    )
    return Definition(
        **{
            **written,
            **replaced,
            "states": _translated(tree, members),
            "transitions": _translated((*kept, *transitions), members),
            "initial": _translated(replaced.get("initial", written["initial"]), members),
            "timeouts": {
                state: ticks for state, ticks in {**former, **given}.items() if ticks is not None
            },
            **{
                name: _translated((*written[name], *listed(more)), members)
                for name, more in further.items()
            },
        }
    )


# States


def _with(states: tuple[Any, ...], more: Any) -> tuple[Any, ...]:
    """Return states with one more; if one of them has its name, with what it adds to that one."""
    text = _text_of(more)
    if text not in map(_text_of, with_insides(states)):
        return (*states, more)
    return tuple(_enlarged(each, text, more) for each in states)


def _enlarged(state: Any, text: str, more: Any) -> Any:
    if _text_of(state) == text and isinstance(more, State):
        former = state if isinstance(state, State) else State(state)
        return State(
            former.state,
            (*former.states, *more.states),
            initial=more.initial or former.initial or None,
            parallel=former.parallel or more.parallel,
            entry=(*former.entry, *more.entry),
            exit=(*former.exit, *more.exit),
        )
    if not isinstance(state, State):
        return state
    return replace(state, states=tuple(_enlarged(each, text, more) for each in state.states))


def _text_of(state: Any) -> str:
    return state_text(member_of(state))


def _members(base: Definition[Any], added: Sequence[Any]) -> dict[str, Any]:
    """Return the members that the derived chart's states may be, by text."""
    wrong = [repr(state) for state in added if not isinstance(state, str) or not state_text(state)]
    if wrong:
        raise _refused(
            base, [f"states must be members of a str-based Enum or texts, got {', '.join(wrong)}"]
        )

    return {state_text(member): member for member in _state_type(base, added)}


def _state_type(base: Definition[Any], added: Sequence[Any]) -> type[Enum]:
    """Return the enum that has all states: the former, the one given, or one made for them."""
    texts = {state_text(state) for state in added}
    if texts.issubset(state_text(member) for member in base.state_type):
        return base.state_type

    (given, *others) = {type(state) for state in added}
    if not others and issubclass(given, Enum):
        texts = {state_text(member) for member in given}
        return given if texts.issuperset(base.hierarchy.texts) else _made(base, added)
    return _made(base, added)


def _made(base: Definition[Any], added: Sequence[Any]) -> type[Enum]:
    """Make an enum of all former members and the new ones, under their names."""
    texts = {member.name: state_text(member) for member in base.state_type}
    for state in added:
        if (text := state_text(state)) in texts.values():
            continue
        name = _name_for(state, texts)
        if name in texts:
            both = f"{texts[name]}, {text}"
            raise _refused(
                base, [f"two states are members called {name!r} ({both}): rename one member"]
            )
        texts[name] = text

    former = base.state_type.__name__
    name = former if former.startswith(_PREFIX) else _PREFIX + former
    return made_enum(name, tuple(texts.values()), tuple(texts))


def _name_for(state: Any, taken: Collection[str]) -> str:
    """Return the name of a new member: its own if somebody gave it one, else a generated one."""
    if isinstance(state, Enum) and not (is_made(state) and state.name in taken):
        return state.name

    return next(name for n in count(len(taken)) if (name := f"S{n}") not in taken)


def _member(state: Any, members: Mapping[str, Any]) -> Any:
    """Return the member with a state's text; what is no state is left to the definition."""
    return members.get(state_text(state), state) if isinstance(state, str) else state


def _translated(value: Any, members: Mapping[str, Any]) -> Any:
    """Return a value with the members of the derived chart's enum as its states."""
    if isinstance(value, tuple):
        return tuple(_translated(each, members) for each in value)
    if isinstance(value, In):
        return In(_member(value.state, members))
    if not isinstance(value, (Transition, State, History, OtherThan)):
        return _member(value, members)

    new = {
        name: _translated(old, members)
        for name in _WITH_STATES
        if (old := getattr(value, name, None)) is not None and not is_any_state(old)
    }
    is_same = all(each is getattr(value, name) for name, each in new.items())
    return value if is_same else replace(value, **new)


# Transitions


def _kept(
    items: Sequence[Transition[Any]],
    base: Definition[Any],
    without: Sequence[Any],
    functions: Mapping[str, Mapping[TransitionName, Any]],
) -> list[Transition[Any]]:
    """Return the former transitions that stay, with their new guards and actions."""
    named = {"without": without, **{f"{field}s": names for field, names in functions.items()}}
    problems = [
        problem
        for argument, names in named.items()
        for name in names
        for problem in _name_problems(argument, name, items)
    ]
    if problems:
        raise _refused(base, problems)

    kept = []
    for item in items:
        changes = {
            field: function
            for field, changed in functions.items()
            for name, function in changed.items()
            if _is_named(item, name)
        }
        if not any(_is_named(item, name) for name in without):
            kept.append(replace(item, **changes) if changes else item)
    return kept


def _of_former_states(item: Transition[Any], tree: Hierarchy) -> Transition[Any]:
    """Return a transition that leaves any state as one that leaves any former one."""
    if not is_any_state(item.source):
        return item
    tops = map(member_of, tree.states)
    return replace(item, source=[each for each in tops if each not in tree.final_states])


def _name_problems(argument: str, name: Any, items: Iterable[Transition[Any]]) -> Iterator[str]:
    is_name = isinstance(name, tuple) and len(name) == 3
    if not is_name and not isinstance(name, Transition):
        yield (
            f"{argument} must name transitions as (trigger, source, target), None for any, "
            f"got {name!r}"
        )
    elif not any(_is_named(item, name) for item in items):
        yield f"{argument}: {_shown(name)} is not a transition of the chart"


def _is_named(item: Transition[Any], name: Any) -> bool:
    if isinstance(name, Transition):
        return item == name

    texts = trigger_text(item.trigger), source_text(item.source), target_text(item.target)
    pairs = zip(name, texts, strict=True)
    return all(given is None or target_text(given) == text for given, text in pairs)


def _shown(name: Any) -> str:
    if isinstance(name, Transition):
        return str(name)
    trigger, source, target = ("any" if each is None else target_text(each) for each in name)
    return f"{source} --{trigger}--> {target}"


def _refused(base: Definition[Any], problems: Iterable[str]) -> DefinitionError:
    return DefinitionError(f"chart {base.name!r} cannot be extended: " + "; ".join(problems))

"""What a chart is, and what must hold before one is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, cast

from prism.statechart.states import is_state, state_text
from prism.statechart.transitions import StateT, Transition, is_any_state

TIMEOUT = "timeout"
"""The trigger that `Statechart.tick` fires."""


def in_definition_order(states: Iterable[StateT]) -> tuple[StateT, ...]:
    """Order states as their enum defines them; a set has no order of its own to keep."""
    given = list(states)
    if not all(isinstance(state, Enum) for state in given):
        return tuple(given)

    position = {
        state: number
        for enum in {type(state) for state in given}
        for number, state in enumerate(enum)
    }

    return tuple(sorted(set(given), key=lambda state: position[state]))


def listed(states: Iterable[StateT]) -> tuple[StateT, ...]:
    """List states; a single one, which is iterable as text, is taken for itself."""
    return (cast("StateT", states),) if isinstance(states, str) else tuple(states)


def definition_problems(
    states: Sequence[Any],
    transitions: Sequence[Any],
    initial: Any,
    decision_states: Iterable[Any],
    timeouts: Mapping[Any, Any],
) -> list[str]:
    """List everything that keeps a chart from being built, so that its author can mend it in one go."""
    problems = _state_set_problems(states)
    if problems:
        return problems

    known = set(states)
    listing = ", ".join(map(state_text, states))
    for number, item in enumerate(transitions, start=1):
        problems += _transition_problems(number, item, known)

    if not _within(initial, known):
        problems.append(f"initial state {initial!r} is not among the states ({listing})")

    problems += [
        f"decision state {state!r} is not among the states ({listing})"
        for state in decision_states
        if not _within(state, known)
    ]

    for state, ticks in timeouts.items():
        if not _within(state, known):
            problems.append(f"timeouts names {state!r}, which is not among the states ({listing})")

        if not isinstance(ticks, int) or isinstance(ticks, bool) or ticks < 1:
            problems.append(
                f"timeouts[{state_text(state)}] must be a whole number of ticks from 1 on, got {ticks!r}"
            )

    return problems


def _state_set_problems(states: Sequence[Any]) -> list[str]:
    if not states:
        return ["a chart needs at least one state"]

    wrong = [repr(state) for state in states if not is_state(state)]
    if wrong:
        return [
            f"states must be members of a str-based Enum such as AgentState, got {', '.join(wrong)}"
        ]

    enums = sorted({type(state).__name__ for state in states})
    if len({type(state) for state in states}) > 1:
        return [f"states must all come from one enum, got members of {', '.join(enums)}"]

    return []


def _transition_problems(number: int, item: Any, known: set[Any]) -> list[str]:
    if not isinstance(item, Transition):
        return [f"transition {number} must be a Transition, got {item!r}"]

    problems = [
        f"transition {number} ({item}): {field} {end!r} is not among the states"
        for field, end in (("source", item.source), ("target", item.target))
        if not (field == "source" and is_any_state(end)) and not _within(end, known)
    ]
    if item.trigger == "state":
        problems.append(
            f"transition {number} ({item}): a trigger cannot be called 'state', rename it"
        )

    return problems


def _within(state: Any, known: set[Any]) -> bool:
    """Tell membership by enum, too: members of two enums with equal texts compare equal."""
    return isinstance(state, Enum) and type(state) is type(next(iter(known))) and state in known


def expand(
    transitions: Iterable[Transition[Any]], states: Sequence[Any]
) -> tuple[Transition[Any], ...]:
    """Replace each ``source="*"`` by one transition for every state, in place."""
    expanded: list[Transition[Any]] = []
    for item in transitions:
        sources = states if is_any_state(item.source) else (item.source,)
        expanded += [
            Transition(item.trigger, source, item.target, item.guard, item.action)
            for source in sources
        ]

    return tuple(expanded)

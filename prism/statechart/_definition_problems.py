"""The checks that a flat chart must pass, each with its message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from prism.statechart.states import is_state, state_text
from prism.statechart.transitions import Transition, is_any_state


def flat_problems(
    states: Sequence[Any],
    transitions: Sequence[Any],
    initial: Any,
    decision_states: Iterable[Any],
    timeouts: Mapping[Any, Any],
    final_states: Sequence[Any],
) -> list[str]:
    """List everything that is wrong with a chart without composites."""
    problems = state_set_problems(states)
    if problems:
        # without a set of states nothing else can be judged
        return problems

    known = set(states)
    listing = ", ".join(map(state_text, states))
    for number, item in enumerate(transitions, start=1):
        problems += _transition_problems(number, item, known)

    if not is_among(initial, known):
        problems.append(f"initial state {initial!r} is not among the states ({listing})")

    problems += [
        f"decision state {state!r} is not among the states ({listing})"
        for state in decision_states
        if not is_among(state, known)
    ]

    for state, ticks in timeouts.items():
        if not is_among(state, known):
            problems.append(f"timeouts names {state!r}, which is not among the states ({listing})")
        problems += tick_problems(state, ticks)

    for state in final_states:
        if is_among(state, known):
            problems += _final_state_problems(state, transitions, decision_states, timeouts)
        else:
            problems.append(f"final state {state!r} is not among the states ({listing})")

    return problems


def tick_problems(state: Any, ticks: Any) -> list[str]:
    """List what is wrong with a limit in ``timeouts``."""
    if isinstance(ticks, int) and not isinstance(ticks, bool) and ticks >= 1:
        return []
    must = "must be a whole number of ticks, 1 or more"
    return [f"timeouts[{state_text(state)}] {must}, got {ticks!r}"]


def _final_state_problems(
    state: Any, transitions: Sequence[Any], decision_states: Iterable[Any], timeouts: Iterable[Any]
) -> list[str]:
    """List what would make an agent do something in a final state."""
    text = state_text(state)
    problems = [
        f"transition {number} ({item}) leaves {text!r}, which is a final state: remove it, or take "
        "the state out of final_states"
        for number, item in enumerate(transitions, start=1)
        if isinstance(item, Transition) and not is_any_state(item.source) and item.source == state
    ]
    return problems + never_left_problems(state, decision_states, timeouts)


def never_left_problems(
    state: Any, decision_states: Iterable[Any], timeouts: Iterable[Any]
) -> list[str]:
    """List what a final state cannot be, since no agent leaves it."""
    text, problems = state_text(state), []
    if state in decision_states:
        problems.append(
            f"final state {text!r} cannot be a decision state: nothing is enabled there"
        )
    if state in timeouts:
        problems.append(f"final state {text!r} cannot have a limit in timeouts: no agent leaves it")

    return problems


def need_problems(needs: Iterable[Any]) -> list[str]:
    """List what is wrong with ``needs``."""
    return [
        f"needs must list names of attributes, got {name!r}"
        for name in needs
        if not isinstance(name, str) or not name.isidentifier()
    ]


def state_set_problems(states: Sequence[Any]) -> list[str]:
    """List why values cannot be the states of a chart."""
    if not states:
        return ["a chart needs at least one state"]

    wrong = [repr(state) for state in states if not is_state(state)]
    if wrong:
        return [
            f"states must be members of a str-based Enum, such as a StrEnum, got {', '.join(wrong)}"
        ]

    enums = sorted({type(state).__name__ for state in states})
    if len({type(state) for state in states}) > 1:
        return [f"states must all come from one enum, got members of {', '.join(enums)}"]

    return []


def _transition_problems(number: int, item: Any, known: set[Any]) -> list[str]:
    if not isinstance(item, Transition):
        return [f"transition {number} must be a Transition, got {item!r}"]

    problems = []
    if not is_any_state(item.source) and not is_among(item.source, known):
        problems.append(
            f"transition {number} ({item}): source {item.source!r} is not among the states"
        )

    if not is_among(item.target, known):
        problems.append(
            f"transition {number} ({item}): target {item.target!r} is not among the states"
        )

    if item.trigger == "state":
        problems.append(
            f"transition {number} ({item}): a trigger cannot be called 'state': rename it"
        )

    return problems


def is_among(state: Any, known: set[Any]) -> bool:
    """Return whether a value is one of a chart's states."""
    # by enum, too: members of two enums with equal texts compare equal
    return isinstance(state, Enum) and type(state) is type(next(iter(known))) and state in known

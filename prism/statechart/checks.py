"""Checking a chart: what must hold before it can be built, and what a lint finds in one that was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, cast

from prism.statechart.states import is_state, state_text
from prism.statechart.transitions import StateT, Transition, is_any_state

TIMEOUT = "timeout"
"""The trigger that `Statechart.tick` fires."""

FindingKind = Literal["unreachable", "no_way_out", "shadowed", "no_timeout"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One flaw of a chart that is well defined but probably not what its author meant.

    Args:
        kind: ``unreachable``, ``no_way_out``, ``shadowed`` or ``no_timeout``.
        state: The state it concerns.
        message: What is wrong and how to mend it.
        transition: The transition it concerns, for ``shadowed``.
    """

    kind: FindingKind
    state: Any
    message: str
    transition: Transition[Any] | None = None

    def __str__(self) -> str:
        """Give the message."""
        return self.message


def in_definition_order(states: Iterable[StateT]) -> tuple[StateT, ...]:
    """Order states as their enum defines them; a set has no order of its own to keep."""
    given = list(states)
    if not all(isinstance(state, Enum) for state in given):
        return tuple(given)
    position = {state: number for enum in {type(state) for state in given} for number, state in enumerate(enum)}
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
            problems.append(f"timeouts[{state_text(state)}] must be a whole number of ticks from 1 on, got {ticks!r}")
    return problems


def _state_set_problems(states: Sequence[Any]) -> list[str]:
    if not states:
        return ["a chart needs at least one state"]
    wrong = [repr(state) for state in states if not is_state(state)]
    if wrong:
        return [f"states must be members of a str-based Enum such as AgentState, got {', '.join(wrong)}"]
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
        problems.append(f"transition {number} ({item}): a trigger cannot be called 'state', rename it")
    return problems


def _within(state: Any, known: set[Any]) -> bool:
    """Tell membership by enum, too: members of two enums with equal texts compare equal."""
    return isinstance(state, Enum) and type(state) is type(next(iter(known))) and state in known


def expand(transitions: Iterable[Transition[Any]], states: Sequence[Any]) -> tuple[Transition[Any], ...]:
    """Replace each ``source="*"`` by one transition for every state, in place."""
    expanded: list[Transition[Any]] = []
    for item in transitions:
        sources = states if is_any_state(item.source) else (item.source,)
        expanded += [Transition(item.trigger, source, item.target, item.guard, item.action) for source in sources]
    return tuple(expanded)


def find_flaws(
    states: Sequence[Any],
    transitions: Sequence[Transition[Any]],
    initial: Any,
    decision_states: frozenset[Any],
    timeouts: Mapping[Any, int],
) -> list[Finding]:
    """List what is probably wrong with a chart: see `Statechart.check`."""
    return [
        *_unreachable(states, transitions, initial),
        *_without_way_out(states, transitions),
        *_shadowed(transitions, decision_states),
        *_without_timeout(states, transitions, initial, timeouts),
    ]


def _unreachable(states: Sequence[Any], transitions: Sequence[Transition[Any]], initial: Any) -> list[Finding]:
    reached, frontier = {initial}, [initial]
    while frontier:
        state = frontier.pop()
        found = {item.target for item in transitions if item.source == state} - reached
        reached |= found
        frontier += found
    return [
        Finding(
            "unreachable",
            state,
            f"state {state_text(state)!r} cannot be reached from {state_text(initial)!r}: "
            "add a transition that leads to it, or remove it",
        )
        for state in states
        if state not in reached
    ]


def _leaving(states: Sequence[Any], transitions: Sequence[Transition[Any]]) -> Counter[Any]:
    return Counter(dict.fromkeys(states, 0)) + Counter(
        item.source for item in transitions if item.source != item.target
    )


def _without_way_out(states: Sequence[Any], transitions: Sequence[Transition[Any]]) -> list[Finding]:
    leaving = _leaving(states, transitions)
    return [
        Finding(
            "no_way_out",
            state,
            f"state {state_text(state)!r} has no way out: add a transition that leaves it",
        )
        for state in states
        if not leaving[state]
    ]


def _shadowed(transitions: Sequence[Transition[Any]], decision_states: frozenset[Any]) -> list[Finding]:
    findings = []
    always: dict[tuple[Any, str], Transition[Any]] = {}
    for item in transitions:
        row = (item.source, item.trigger)
        if item.source in decision_states:
            continue
        if row in always:
            findings.append(
                Finding(
                    "shadowed",
                    item.source,
                    f"transition {item} can never fire: {always[row]} comes earlier and has no guard; "
                    + ("remove it, or give the earlier one a guard" if item.guard is None else "put it first"),
                    item,
                )
            )
        elif item.guard is None:
            always[row] = item
    return findings


def _without_timeout(
    states: Sequence[Any], transitions: Sequence[Transition[Any]], initial: Any, timeouts: Mapping[Any, int]
) -> list[Finding]:
    timed = {item.source for item in transitions if item.trigger == TIMEOUT and item.source != item.target}
    return [
        Finding(
            "no_timeout",
            state,
            f"active state {state_text(state)!r} has no {TIMEOUT!r} transition, so an agent can be stuck in it: "
            "add one with the state to recover to",
        )
        for state in states
        if state not in timed and (state != initial or state in timeouts)
    ]

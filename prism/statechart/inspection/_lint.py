"""What is probably wrong with a chart that is well defined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from prism.statechart._definition import TIMEOUT
from prism.statechart.states import state_text
from prism.statechart.transitions import Transition

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
        """Return the message."""
        return self.message


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


def _unreachable(
    states: Sequence[Any], transitions: Sequence[Transition[Any]], initial: Any
) -> list[Finding]:
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


def _without_way_out(
    states: Sequence[Any], transitions: Sequence[Transition[Any]]
) -> list[Finding]:
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


def _shadowed(
    transitions: Sequence[Transition[Any]], decision_states: frozenset[Any]
) -> list[Finding]:
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
                    + (
                        "remove it, or give the earlier one a guard"
                        if item.guard is None
                        else "put it first"
                    ),
                    item,
                )
            )
        elif item.guard is None:
            always[row] = item

    return findings


def _without_timeout(
    states: Sequence[Any],
    transitions: Sequence[Transition[Any]],
    initial: Any,
    timeouts: Mapping[Any, int],
) -> list[Finding]:
    timed = {
        item.source
        for item in transitions
        if item.trigger == TIMEOUT and item.source != item.target
    }
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

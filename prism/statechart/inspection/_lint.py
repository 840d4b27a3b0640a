"""Probable mistakes in a chart that is well defined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from prism.statechart._definition import TIMEOUT, Definition
from prism.statechart.states import state_text
from prism.statechart.transitions import Transition

FindingKind = Literal["unreachable", "no_way_out", "shadowed", "no_timeout"]

_IF_UNGUARDED = "remove it, or give the earlier one a guard"


@dataclass(frozen=True, slots=True)
class Finding:
    """A probable mistake in a chart.

    Args:
        kind: ``unreachable``, ``no_way_out``, ``shadowed`` or ``no_timeout``.
        state: The state it concerns.
        message: The mistake, and how to correct it.
        transition: The transition it concerns, for ``shadowed``.
    """

    kind: FindingKind
    state: Any
    message: str
    transition: Transition[Any] | None = None

    def __str__(self) -> str:
        """Return the message."""
        return self.message


def find_flaws(chart: Definition[Any]) -> list[Finding]:
    """Return everything that is probably wrong with a chart: see `Statechart.check`."""
    return [
        *_unreachable(chart),
        *_without_way_out(chart),
        *_shadowed(chart),
        *_without_timeout(chart),
    ]


def _unreachable(chart: Definition[Any]) -> list[Finding]:
    reached, frontier = {chart.initial}, [chart.initial]
    while frontier:
        state = frontier.pop()
        found = {item.target for item in chart.transitions if item.source == state} - reached
        reached |= found
        frontier += found

    return [
        Finding(
            "unreachable",
            state,
            f"state {state_text(state)!r} cannot be reached from {state_text(chart.initial)!r}: "
            "add a transition that leads to it, or remove it",
        )
        for state in chart.states
        if state not in reached
    ]


def _without_way_out(chart: Definition[Any]) -> list[Finding]:
    left = {item.source for item in chart.transitions if item.source != item.target}
    return [
        Finding(
            "no_way_out",
            state,
            f"state {state_text(state)!r} has no way out: add a transition that leaves it, or "
            "make it a final state",
        )
        for state in chart.states
        if state not in left | chart.final_states
    ]


def _shadowed(chart: Definition[Any]) -> list[Finding]:
    findings = []
    unguarded: dict[tuple[Any, str], Transition[Any]] = {}
    for item in chart.transitions:
        if item.source in chart.decision_states:
            # a reasoner may choose any of them
            continue

        earlier = unguarded.get((item.source, item.trigger))
        if earlier is not None:
            findings.append(
                Finding(
                    "shadowed",
                    item.source,
                    f"transition {item} can never fire: {earlier} comes earlier and has no guard; "
                    + ("put it first" if item.guard is not None else _IF_UNGUARDED),
                    item,
                )
            )
        elif item.guard is None:
            unguarded[item.source, item.trigger] = item

    return findings


def _without_timeout(chart: Definition[Any]) -> list[Finding]:
    timed = {
        item.source
        for item in chart.transitions
        if item.trigger == TIMEOUT and item.source != item.target
    }
    return [
        Finding(
            "no_timeout",
            state,
            f"active state {state_text(state)!r} has no {TIMEOUT!r} transition, so an agent can be "
            "stuck in it: add one with the state to recover to",
        )
        for state in chart.states
        if state not in timed | chart.final_states
        and (state != chart.initial or state in chart.timeouts)
    ]

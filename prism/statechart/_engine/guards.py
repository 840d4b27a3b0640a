"""Evaluating guards: the one place that calls them, but for the inlined loop of `fire`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from prism.statechart.transitions import Action, Edge, Guard, StateT
from prism.telemetry._instrument import GuardOutcome

ItemT = TypeVar("ItemT")

Candidate = tuple[Guard | None, Action | None, StateT, Edge]
"""One transition of one state: guard, action, target, edge. A plain tuple unpacks fastest."""


class Verdict(NamedTuple):
    """What came of a guard: it passed, it failed, or it raised an error."""

    outcome: GuardOutcome
    error: Exception | None = None


PASSED = Verdict("passed")
FAILED = Verdict("failed")


def evaluate(guard: Guard | None, agent: Any, context: Any) -> Verdict:
    """Evaluate a guard; a transition without one always passes.

    What must stop the program, such as a ``KeyboardInterrupt``, propagates.
    """
    if guard is None:
        return PASSED

    try:
        # the truth of the result may raise, too
        return PASSED if guard(agent, context) else FAILED
    except Exception as error:
        return Verdict("raised", error)


def try_in_order(
    items: Iterable[ItemT], guard_of: Callable[[ItemT], Guard | None], agent: Any, context: Any
) -> Iterator[tuple[ItemT, Verdict]]:
    """Evaluate the guards of transitions one after another, each only when it is asked for."""
    for item in items:
        yield item, evaluate(guard_of(item), agent, context)

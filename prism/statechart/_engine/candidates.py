"""The transitions that an event could cause, and what came of their guards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from prism.errors import ReasonerError
from prism.statechart.states import state_text
from prism.statechart.transitions import Action, Edge, Guard, StateT
from prism.telemetry._instrument import GuardOutcome

ItemT = TypeVar("ItemT")

Candidate = tuple[Guard | None, Action | None, StateT, Edge]
"""One transition of one state: guard, action, target, edge. A plain tuple unpacks fastest."""

Rows = dict[Any, dict[str, tuple[Candidate[StateT], ...]]]
"""Candidates in definition order, by state and then by trigger."""


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


def distinct(items: Iterable[ItemT]) -> list[ItemT]:
    """Return items without repetitions, in their order."""
    return list(dict.fromkeys(items))


def leading_to(target: Any, candidates: list[Candidate[StateT]]) -> Candidate[StateT]:
    """Return the first candidate that leads to a target that a reasoner chose.

    Raises:
        ReasonerError: If there is none.
    """
    for candidate in candidates:
        if candidate[2] == target:
            return candidate

    options = ", ".join(distinct(state_text(found) for _, _, found, _ in candidates))
    raise ReasonerError(
        f"the reasoner chose {target!r}, which is not among the options ({options})"
    )

"""Ending a run whose model fails too often to be worth going on."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from prism.errors import TooManyFallbacksError
from prism.statechart import BaseReasoner, Decision, Question, Reasoner
from prism.statechart.reasoner._by_agent import ReasonerByAgent
from prism.telemetry._loggers import EventLogger

WINDOW = 200
"""How many decisions, the latest ones, are looked at."""


class _Stopping(BaseReasoner):
    """Ends the run when too many decisions of a reasoner fell back.

    Args:
        given: What the reasoner takes.
        stop_at: The share of the last 200 decisions, above 0 and up to 1.
        settings: Everything else that it takes.
    """

    def __init__(self, *given: Any, stop_at: float, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self._stop_at = stop_at
        self._fell_back: deque[bool] = deque(maxlen=WINDOW)

    async def decide_many(
        self, questions: Sequence[Question], *, logger: EventLogger | None = None
    ) -> list[Decision]:
        """Answer several questions.

        Raises:
            TooManyFallbacksError: If with them so many of the last decisions fell back.
        """
        decisions = await super().decide_many(questions, logger=logger)
        for decision in decisions:
            self._count(decision)

        return decisions

    def _count(self, decision: Decision) -> None:
        self._fell_back.append(decision.source == "fallback")
        count = sum(self._fell_back)
        if len(self._fell_back) < WINDOW or count < self._stop_at * WINDOW:
            return

        why = f"; the last one: {decision.reason}" if decision.reason else ""
        raise TooManyFallbacksError(
            f"stopped, as {count} of the last {WINDOW} decisions fell back, and "
            f"{self._stop_at:.4g} of them is the limit{why}"
        )


class StoppingReasoner(_Stopping, Reasoner):
    """A `Reasoner` that ends the run when too many decisions fell back."""


class StoppingByAgent(_Stopping, ReasonerByAgent):
    """A `ReasonerByAgent` that ends the run when too many of all its decisions fell back."""

"""Who answers in a run: a reasoner and a writer, asked at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from prism.errors import ReasonerError
from prism.statechart import BaseWriter, Budget, Decision, Question, TextCall, Wording, Written
from prism.statechart._identity import agent_name
from prism.statechart.reasoner._texts import fallback_text
from prism.statechart.states import state_text
from prism.telemetry._loggers import EventLogger
from prism.worlds._decider import Decider

Asked = Question | TextCall
"""What an agent may wait for."""

Answer = Any
"""A `Decision` on a question, or what was `Written` for a text call."""


class TemplateWriter(BaseWriter):
    """Takes the template of every text, without a model."""

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Return the templates; a failure where there is none."""
        return [
            Written(None, "failed", reason="the run has no writer")
            if call.fallback is None
            else Written(fallback_text(call), "template", call.fallback)
            for call in calls
        ]


class Answerers:
    """Who answers what the agents of a run ask.

    Args:
        reasoner: Who decides.
        writer: Who writes; None if nobody was given.
        wording: Length and language of texts, where a call names none.

    Attributes:
        has_writer: Whether somebody writes.
        concurrency: How much it pays to have under way at once; 0 where answers come at once.
    """

    def __init__(
        self, reasoner: Decider, writer: BaseWriter | None = None, wording: Wording | None = None
    ) -> None:
        self.reasoner = reasoner
        self.wording: Wording = wording or Wording()
        self.has_writer: bool = writer is not None
        self._writer: BaseWriter = writer or TemplateWriter()

    @property
    def concurrency(self) -> int:
        """How much it pays to have under way at once; 0 where answers come at once."""
        return max(getattr(self.reasoner, "concurrency", 0), self._writer.concurrency)

    @property
    def budget(self) -> Budget | None:
        """What a model may spend, which both share; None if none is asked."""
        budgets = (getattr(each, "budget", None) for each in (self.reasoner, self._writer))
        return next((each for each in budgets if isinstance(each, Budget)), None)

    async def answers_to(self, asked: Sequence[Asked], logger: EventLogger | None) -> list[Answer]:
        """Ask for decisions and texts together, and announce them, the decisions first.

        Args:
            asked: Questions and text calls of several agents.
            logger: Where to announce the answers.

        Returns:
            A `Decision` for every question and a `Written` for every text call, in their order.

        Raises:
            ReasonerError: If a decision is for what was not to choose from.
        """
        questions = [each for each in asked if isinstance(each, Question)]
        calls = [each for each in asked if isinstance(each, TextCall)]
        if not calls:
            return await self._decisions(questions, logger)

        # announced only when the decisions are, so that the log does not tell which was faster
        texts = self._writer.answer(calls)
        if questions:
            decisions, written = await _both(self._decisions(questions, logger), texts)
        else:
            decisions, written = [], await texts

        self._writer.announce(calls, written, logger=logger)
        answers = iter(decisions), iter(written)

        return [next(answers[isinstance(each, TextCall)]) for each in asked]

    async def close(self) -> None:
        """Close the connections of both, if they have any."""
        for each in (self.reasoner, self._writer):
            close = getattr(each, "close", None)
            if close is not None:
                await close()

    async def _decisions(
        self, questions: Sequence[Question], logger: EventLogger | None
    ) -> list[Decision]:
        decisions = await self.reasoner.decide_many(questions, logger=logger)
        for question, decision in zip(questions, decisions, strict=True):
            if decision.chosen not in question.options:
                options = ", ".join(map(state_text, question.options))
                raise ReasonerError(
                    f"agent {agent_name(question.agent)!r}: the reasoner chose "
                    f"{decision.chosen!r}, which is not one of {options}"
                )

        return decisions


async def _both(*two: Coroutine[Any, Any, Any]) -> list[Any]:
    """Wait for both; where one raises, the other is cancelled, and over afterwards."""
    tasks = [asyncio.ensure_future(each) for each in two]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""Asking a reasoner and a writer at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from prism.statechart import BaseWriter, Decision, Question, TextCall, Written
from prism.statechart.reasoner._texts import fallback_text
from prism.telemetry._loggers import EventLogger


class Decides(Protocol):
    """Who decides; every reasoner built on `BaseReasoner` can."""

    async def decide_many(
        self, questions: Sequence[Question], *, logger: EventLogger | None = None
    ) -> list[Decision]:
        """Answer several questions, in their order."""


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


async def answers_to(
    asked: Sequence[Question | TextCall],
    reasoner: Decides,
    writer: BaseWriter,
    logger: EventLogger | None,
) -> list[Any]:
    """Ask for decisions and texts together, and announce them: the decisions first.

    Args:
        asked: Questions and text calls.
        reasoner: Who answers the questions.
        writer: Who answers the text calls.
        logger: Where to announce the answers.

    Returns:
        A `Decision` for every question and a `Written` for every text call, in their order.
    """
    questions = [each for each in asked if isinstance(each, Question)]
    calls = [each for each in asked if isinstance(each, TextCall)]
    if not calls:
        return list(await reasoner.decide_many(questions, logger=logger)) if questions else []

    # announced only when the decisions are, so that the log does not tell which was faster
    texts = writer.answer(calls)
    if questions:
        decisions, written = await _both(reasoner.decide_many(questions, logger=logger), texts)
    else:
        decisions, written = [], await texts

    writer.announce(calls, written, logger=logger)
    answers = iter(decisions), iter(written)

    return [next(answers[isinstance(each, TextCall)]) for each in asked]


async def _both(*two: Coroutine[Any, Any, Any]) -> list[Any]:
    """Wait for both; where one raises, the other is cancelled, and over afterwards."""
    tasks = [asyncio.ensure_future(each) for each in two]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

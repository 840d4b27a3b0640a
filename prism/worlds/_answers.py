"""Who decides and who writes in a run, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from prism.errors import ReasonerError
from prism.reasoner._router import all_of
from prism.reasoner._texts import fallback_text
from prism.reasoner._wording import USUAL_WORDING
from prism.statechart import (
    BaseWriter,
    Decision,
    PolicyReasoner,
    Question,
    TextCall,
    Wording,
    Written,
)
from prism.statechart.names import agent_name
from prism.statechart.states import state_text
from prism.telemetry.loggers import EventLogger
from prism.worlds._results import fallback_group


class TemplateWriter(BaseWriter):
    """Returns the template of every text, without a model."""

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Return the templates, or a failure for a call without one."""
        return [
            Written(None, "failed", reason="the run has no writer")
            if call.fallback is None
            else Written(fallback_text(call), "template", call.fallback)
            for call in calls
        ]


class Answers:
    """The reasoner and the writer of a run.

    Args:
        reasoner: Makes the decisions.
        writer: Writes the texts, or None.
        wording: Length and language of texts for calls that do not specify them.

    Attributes:
        has_writer: Whether there is a writer.
        memory: What prompts contain of what agents remember, or None.
        open_questions: Number of questions without an answer. Other threads may read it.
        writer: Writes the texts, or takes their templates.
    """

    def __init__(self, reasoner: Any, writer: BaseWriter | None, wording: Wording | None) -> None:
        self.reasoner, self.wording = reasoner, wording or USUAL_WORDING
        self.has_writer = writer is not None
        self.memory: Any = getattr(reasoner, "memory", None)
        self.open_questions = 0
        self.writer: BaseWriter = writer or TemplateWriter()
        # a derived class may answer in its own way
        self.policy: PolicyReasoner | None = reasoner if type(reasoner) is PolicyReasoner else None
        self.begin_round()

    @property
    def concurrency(self) -> int:
        """How many requests are worth sending at the same time, or 0 if answers come at once."""
        return max(getattr(self.reasoner, "concurrency", 0), self.writer.concurrency)

    def begin_round(self) -> None:
        """Begin the counts of a round."""
        self.decisions_asked = self.decisions_answered = 0
        self.texts: Counter[str] = Counter()
        self.fallbacks: Counter[str] = Counter()
        self.fallback_examples: dict[str, str] = {}

    def count_drawn(self, number: int) -> None:
        """Count decisions that the policy has drawn."""
        self.decisions_asked += number
        self.decisions_answered += number

    async def ask(
        self, questions: Sequence[Question], calls: Sequence[TextCall], logger: EventLogger | None
    ) -> tuple[list[Decision], list[Written]]:
        """Ask for decisions and texts together, and log them, the decisions first.

        Raises:
            ReasonerError: If a decision is none of the options.
        """
        self.open_questions += len(questions) + len(calls)
        try:
            if not calls:
                decisions, texts = await self._decide(questions, logger), []
            elif not questions:
                decisions, texts = [], await self.writer.answer(calls)
            else:
                decisions, texts = await all_of(
                    [self._decide(questions, logger), self.writer.answer(calls)]
                )
        finally:
            self.open_questions -= len(questions) + len(calls)

        # logged only after the decisions, so the log does not depend on which came first
        if calls:
            self.writer.announce(calls, texts, logger=logger)
        self._count(decisions, texts)
        return decisions, texts

    async def close(self) -> None:
        """Close the connections of both."""
        for each in (self.reasoner, self.writer):
            close = getattr(each, "close", None)
            if close is not None:
                await close()

    async def _decide(
        self, questions: Sequence[Question], logger: EventLogger | None
    ) -> list[Decision]:
        decisions: list[Decision] = await self.reasoner.decide_many(questions, logger=logger)
        for question, decision in zip(questions, decisions, strict=True):
            if decision.chosen not in question.options:
                options = ", ".join(map(state_text, question.options))
                raise ReasonerError(
                    f"agent {agent_name(question.agent)!r}: the reasoner chose "
                    f"{decision.chosen!r}, which is not one of {options}"
                )
        return decisions

    def _count(self, decisions: Sequence[Decision], texts: Sequence[Written]) -> None:
        for written in texts:
            self.texts["declined" if written.was_declined else written.source] += 1
        for decision in decisions:
            self.decisions_asked += 1
            if decision.source != "fallback":
                self.decisions_answered += 1
                continue
            server = None if decision.cost is None else decision.cost.host
            group, example = fallback_group(decision.reason, server)
            self.fallbacks[group] += 1
            # answers may come in any order
            known = self.fallback_examples.get(group, example)
            self.fallback_examples[group] = min(known, example)

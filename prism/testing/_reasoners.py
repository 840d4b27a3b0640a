"""Reasoners that answer late, fail, or record what they are asked, around one that answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from prism.statechart import BaseReasoner, Decision, PolicyReasoner, Question


class RecordingReasoner(BaseReasoner):
    """Answers as another reasoner does, and keeps the questions.

    Args:
        reasoner: The one that answers; a `PolicyReasoner` by default.

    Attributes:
        batches: The questions of each call of `answer`, in the order of the calls.
    """

    def __init__(self, reasoner: BaseReasoner | None = None) -> None:
        super().__init__()
        self.reasoner: BaseReasoner = PolicyReasoner() if reasoner is None else reasoner
        self.concurrency: int = self.reasoner.concurrency
        self.batches: list[tuple[Question, ...]] = []

    @property
    def questions(self) -> list[Question]:
        """All questions, in the order in which they were asked."""
        return [question for batch in self.batches for question in batch]

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Record questions, and let the other reasoner answer them."""
        self.batches.append(tuple(questions))

        return await self.reasoner.answer(questions)


class LateReasoner(RecordingReasoner):
    """Answers as another reasoner does, but late, so that answers overtake each other.

    An answer waits for a random number of turns of the event loop, and for no time: a test with it
    is as fast as one without, and repeats itself.

    Args:
        reasoner: The one that answers; a `PolicyReasoner` by default.
        concurrency: How many questions it pays to have under way at once; see `BaseReasoner`.
        most_turns: Most turns that an answer waits for.
        seed: Seed of the waits.

    Attributes:
        under_way: Questions that are being answered now.
        most_at_once: Most questions that were under way at the same time.
        overtaken: How many answers came before that to an earlier question.
    """

    def __init__(
        self,
        reasoner: BaseReasoner | None = None,
        *,
        concurrency: int = 4,
        most_turns: int = 20,
        seed: int = 0,
    ) -> None:
        super().__init__(reasoner)
        self.concurrency = concurrency
        self.under_way: list[Question] = []
        self.most_at_once: int = 0
        self.overtaken: int = 0
        self._most_turns = most_turns
        self._waits = random.Random(seed)

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Answer each question after a wait of its own."""
        self.batches.append(tuple(questions))

        return await asyncio.gather(*map(self._one, questions))

    async def _one(self, question: Question) -> Decision:
        self.under_way.append(question)
        self.most_at_once = max(self.most_at_once, len(self.under_way))

        try:
            for _ in range(self._waits.randint(0, self._most_turns)):
                await asyncio.sleep(0)
        finally:
            self.overtaken += question is not self.under_way[0]
            # by identity, since equal questions may be under way at once
            self.under_way = [other for other in self.under_way if other is not question]

        (decision,) = await self.reasoner.answer([question])
        return decision


class FailingReasoner(RecordingReasoner):
    """Fails at one question, and answers the others as another reasoner does.

    Args:
        failure: Exception to raise, or a decision to give instead, such as one outside the options.
        reasoner: The one that answers the others; a `PolicyReasoner` by default.
        at: Number of the question that fails, counted from 1.
    """

    def __init__(
        self,
        failure: BaseException | Decision,
        reasoner: BaseReasoner | None = None,
        *,
        at: int = 1,
    ) -> None:
        super().__init__(reasoner)
        self.failure = failure
        self.at = at

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Answer questions.

        Raises:
            BaseException: The failure, if its question is among them.
        """
        place = self.at - 1 - len(self.questions)
        if not 0 <= place < len(questions):
            return await super().answer(questions)

        self.batches.append(tuple(questions))
        if isinstance(self.failure, BaseException):
            raise self.failure

        decisions = await self.reasoner.answer(questions)
        decisions[place] = self.failure
        return decisions

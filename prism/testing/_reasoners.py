"""Reasoners for tests: one that answers from a script; others that are late, fail or record."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from prism.reasoner._prompts import chat_prompt
from prism.statechart import BaseReasoner, Decision, PolicyReasoner, Question
from prism.statechart.names import agent_name, id_text
from prism.statechart.states import state_text
from prism.testing._scripts import Maker, Scripted, named_by, rules_of

Answer = Enum | str
"""A state, or its text."""

Matcher = str | int | Enum | Callable[[Question], object]
"""Which questions a rule answers: by agent id, trigger, state or predicate."""

Script = Sequence[Answer] | Mapping[Any, Answer | Sequence[Answer]]
"""Answers in their order, or rules: a `Matcher` and its answer or list of answers."""


class ScriptedReasoner(Scripted[Question, Answer], BaseReasoner):
    """A reasoner that answers from a script, without a model.

    ``left_over()`` lists unused answers and rules; ``assert_used_up()``
    raises an AssertionError if there are any, or a question was not expected.

    Args:
        script: The answers. A list is used in its order. A mapping holds rules, of which the first
            that matches is used: its keys are an agent's id, a trigger, a state, or a predicate on
            the `Question`; its values one answer for every such question, or a list of answers in
            their order.

    Attributes:
        questions: Everything it was asked.
        complaints: Questions that it failed on; the fixture reports them again in case the
            application has swallowed them.
    """

    def __init__(self, script: Script) -> None:
        super().__init__(
            rules_of(script, (str, Enum), "a list of answers or a mapping of rules"),
            ("question", "answers"),
            expects=_expects,
            name_of=_name_of,
            shown=state_text,
        )
        self.questions: list[Question] = self._asked

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Answer questions from the script.

        Raises:
            AssertionError: If no answer is left for one of them, or the answer is not an option.
                The message shows the prompt.
        """
        __tracebackhide__ = True
        return list(map(self._decide, questions))

    def _decide(self, question: Question) -> Decision:
        __tracebackhide__ = True
        self.questions.append(question)
        rule = self._rule_for(question)
        if rule is None:
            raise self._failure(question, "the script has no answer to it")

        answer = state_text(rule.next())
        option = next((option for option in question.options if state_text(option) == answer), None)
        if option is None:
            raise self._failure(
                question, f"the script says {answer!r}, which is not among the options"
            )

        return Decision(option, "policy")

    def _failure(self, question: Question, problem: str) -> AssertionError:
        agent, state = agent_name(question.agent), state_text(question.state)
        options = ", ".join(map(state_text, question.options))
        return self._complain(
            f"question {len(self.questions)}, of agent {agent!r} in {state!r} "
            f"on {question.trigger!r}: {problem}\n"
            f"options: {options}\n"
            f"prompt:\n{chat_prompt(question)}"
        )


def _expects(matcher: Matcher, question: Question) -> bool:
    if callable(matcher):
        return bool(matcher(question))

    name = agent_name(question.agent)
    if isinstance(matcher, str | Enum):
        return state_text(matcher) in (name, question.trigger, state_text(question.state))

    return id_text(matcher) == name


def _name_of(matcher: Matcher) -> str:
    if callable(matcher):
        return named_by(matcher)
    return state_text(matcher) if isinstance(matcher, str | Enum) else id_text(matcher)


class ScriptMaker(Maker[ScriptedReasoner]):
    """Makes scripted reasoners, and checks at the end of a test whether all are used up."""

    def __call__(self, script: Script) -> ScriptedReasoner:
        """Make a reasoner that answers from a script: see `ScriptedReasoner`."""
        self._made.append(ScriptedReasoner(script))
        return self._made[-1]


class RecordingReasoner(BaseReasoner):
    """Returns another reasoner's answers, and records the questions.

    Args:
        reasoner: Answers the questions; a `PolicyReasoner` by default.

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
        """Record the questions, and return the other reasoner's answers."""
        self.batches.append(tuple(questions))

        return await self.reasoner.answer(questions)

    @property
    def chooses_acts(self) -> bool:
        """Whether agents of the feed choose among all acts, as with the other reasoner."""
        return self.reasoner.chooses_acts


class LateReasoner(RecordingReasoner):
    """Returns another reasoner's answers, but late, so that answers overtake each other.

    An answer waits for a random number of turns of the event loop, not for time, so tests stay fast
    and repeatable.

    Args:
        reasoner: Answers the questions; a `PolicyReasoner` by default.
        concurrency: Number of questions to ask at once; see `BaseReasoner`.
        most_turns: Maximum number of turns that an answer waits.
        seed: Seed of the waits.

    Attributes:
        under_way: Number of open questions.
        most_at_once: Maximum number of questions that were open at the same time.
        overtaken: How many answers came before the answer to an earlier question.
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
        """Answer each question after its own wait."""
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
            # by identity, since equal questions may be open at the same time
            self.under_way = [other for other in self.under_way if other is not question]

        (decision,) = await self.reasoner.answer([question])
        return decision


class FailingReasoner(RecordingReasoner):
    """Fails at one question, and passes the others on to another reasoner.

    Args:
        failure: Exception to raise, or a decision to return, such as one outside the options.
        reasoner: Answers the other questions; a `PolicyReasoner` by default.
        at: Number of the failing question, counted from 1.
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

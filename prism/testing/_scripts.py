"""Doubles that follow a script, and fail the test on what the script does not expect."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

from prism.reasoner import BaseReasoner, BaseWriter, Decision, Question, TextCall, Written
from prism.reasoner.prompts import chat_prompt
from prism.reasoner.texts import or_fallback, read_as
from prism.statechart.names import agent_name
from prism.statechart.states import state_text
from prism.testing._stand_ins import id_text

RequestT = TypeVar("RequestT")

Answer = Enum | str
"""A state, or its text."""

Script = Sequence[Answer] | Mapping[Any, Answer | Sequence[Answer]] | Callable[[Question], Answer]
"""Answers in their order; rules, which map an agent's id, a trigger, a state or a predicate to an
answer or a list of answers; or a function."""

Text = str | Mapping[str, Any] | Written
"""A text; an object, which is written as JSON; or a whole answer, such as a failure."""

TextScript = Sequence[Text] | Mapping[Any, Text | Sequence[Text]] | Callable[[TextCall], Text]
"""Texts in their order; rules, which map an agent's id, a key, the part of it behind a colon or a
predicate to a text or a list of texts; or a function."""

_LONGEST = 60


@dataclass(slots=True)
class _Rule:
    """The replies to the calls that match.

    Args:
        matcher: Which calls; None for all.
        replies: One reply for every call, a function that gives one, or several in their order.
        used: Whether any reply was used.
    """

    matcher: Any
    replies: Any
    used: bool = False

    @property
    def is_open(self) -> bool:
        return not isinstance(self.replies, deque) or bool(self.replies)

    def left(self) -> list[Any]:
        if isinstance(self.replies, deque):
            return list(self.replies)
        return [] if self.used or callable(self.replies) else [self.replies]


class Scripted(ABC, Generic[RequestT]):
    """What doubles that follow a script have in common.

    Attributes:
        complaints: Messages about failures; `assert_used_up` reports them again in case the
            application has swallowed them.
    """

    _kinds: ClassVar[tuple[str, str]]
    """What is asked, and what it is given: ``question`` and ``answers``."""

    _single: ClassVar[tuple[type, ...]]
    """The types of a single reply, as opposed to a list of several."""

    def __init__(self, script: Any) -> None:
        super().__init__()
        self.complaints: list[str] = []
        self._requests: list[RequestT] = []
        if isinstance(script, Mapping):
            self._rules = [
                _Rule(key, each if isinstance(each, self._single) else deque(each))
                for key, each in script.items()
            ]
        elif callable(script):
            self._rules = [_Rule(None, script)]
        elif isinstance(script, Sequence) and not isinstance(script, str):
            self._rules = [_Rule(None, deque(script))]
        else:
            raise TypeError(
                f"a script must be a list of {self._kinds[1]}, a mapping of rules or a function, "
                f"got {script!r}"
            )

    def left_over(self) -> list[str]:
        """List the unused replies of the script by rule."""
        return [
            ("" if rule.matcher is None else f"{_name_of(rule.matcher)}: ")
            + ", ".join(map(_reply_text, left))
            for rule in self._rules
            if (left := rule.left())
        ]

    def assert_used_up(self) -> None:
        """Check that the script was followed to its end.

        Raises:
            AssertionError: If there was an unexpected call, or a reply is left over.
        """
        __tracebackhide__ = True
        if self.complaints:
            raise AssertionError("\n\n".join(self.complaints))

        if left := self.left_over():
            calls = f"{len(self._requests)} {self._kinds[0]}{'s' * (len(self._requests) != 1)}"
            raise AssertionError(
                f"after {calls} the script has {self._kinds[1]} left over: {'; '.join(left)}"
            )

    def _next(self, request: RequestT) -> Any:
        """Return the next reply of the first rule that matches a call and has a reply left."""
        __tracebackhide__ = True
        for rule in self._rules:
            if rule.is_open and (rule.matcher is None or self._expects(rule.matcher, request)):
                rule.used = True
                reply = rule.replies.popleft() if isinstance(rule.replies, deque) else rule.replies
                return reply(request) if callable(reply) else reply

        raise self._complaint(request, f"the script has no {self._kinds[1]} for it")

    def _complaint(self, request: RequestT, problem: str) -> AssertionError:
        call, prompt = self._described(request)
        complaint = f"{self._kinds[0]} {len(self._requests)}, {call}: {problem}\n{prompt}"
        self.complaints.append(complaint)
        return AssertionError(complaint)

    def _expects(self, matcher: Any, request: RequestT) -> bool:
        if callable(matcher):
            return bool(matcher(request))
        return _name_of(matcher) in self._names(request)

    @abstractmethod
    def _names(self, request: RequestT) -> tuple[str, ...]:
        """Return the names by which a rule can match a call."""

    @abstractmethod
    def _described(self, request: RequestT) -> tuple[str, str]:
        """Return what a call is, and what its model would have been given."""


def _name_of(matcher: Any) -> str:
    if callable(matcher):
        return getattr(matcher, "__name__", repr(matcher))
    return state_text(matcher) if isinstance(matcher, str | Enum) else id_text(matcher)


def _reply_text(reply: Any) -> str:
    text = state_text(reply) if isinstance(reply, str | Enum) else repr(reply)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


class ScriptedReasoner(Scripted[Question], BaseReasoner):
    """A reasoner that answers from a script, without a model.

    ``left_over()`` lists unused answers and rules; ``assert_used_up()``
    raises an AssertionError if there are any, or a question was not expected.

    Args:
        script: The answers. A list is used in its order. A mapping holds rules, of which the first
            that matches is used: its keys are an agent's id, a trigger, a state, or a predicate on
            the `Question`; its values one answer for every such question, or a list of answers in
            their order. A function is asked for every answer.

    Attributes:
        questions: Everything it was asked.
        complaints: Questions that it failed on; the fixture reports them again in case the
            application has swallowed them.
    """

    _kinds = ("question", "answers")
    _single = (str, Enum)

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.questions: list[Question] = self._requests

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
        answer = state_text(self._next(question))
        for option in question.options:
            if state_text(option) == answer:
                return Decision(option, "policy")

        problem = f"the script says {answer!r}, which is not among the options"
        raise self._complaint(question, problem)

    def _names(self, question: Question) -> tuple[str, ...]:
        return agent_name(question.agent), question.trigger, state_text(question.state)

    def _described(self, question: Question) -> tuple[str, str]:
        agent, state = agent_name(question.agent), state_text(question.state)
        options = ", ".join(map(state_text, question.options))
        return (
            f"of agent {agent!r} in {state!r} on {question.trigger!r}",
            f"options: {options}\nprompt:\n{chat_prompt(question)}",
        )


class ScriptedWriter(Scripted[TextCall], BaseWriter):
    """A writer that writes from a script, without a model.

    ``left_over()`` lists unused texts and rules; ``assert_used_up()``
    raises an AssertionError if there are any, or a call was not expected.

    Each text of the script is the reply to one request. If a call cannot use it and may be
    repeated, the next text is used.

    Args:
        script: The texts, or objects that are written as JSON, or a `Written` to give as it is. A
            list is used in its order. A mapping holds rules, of which the first that matches is
            used: its keys are an agent's id, the key of a call, the part of it behind a colon (of a
            workflow, the step), or a predicate on the `TextCall`; its values one text for every
            such call, or a list of texts in their order. A function is asked for every text.

    Attributes:
        calls: Everything it was asked.
        complaints: Calls that it failed on; ``assert_used_up`` reports them again in case the
            application has swallowed them.
    """

    _kinds = ("call", "texts")
    _single = (str, Mapping, Written)

    def __init__(self, script: TextScript) -> None:
        super().__init__(script)
        self.calls: list[TextCall] = self._requests

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Answer text calls from the script.

        Raises:
            AssertionError: If no text is left for one of them. The message shows the prompt.
        """
        __tracebackhide__ = True
        return list(map(self._written, calls))

    def _written(self, call: TextCall) -> Written:
        __tracebackhide__ = True
        self.calls.append(call)
        for _ in range(call.tries or 1):
            text = self._next(call)
            if isinstance(text, Written):
                return or_fallback(call, text)

            written = read_as(call, text if isinstance(text, str) else json.dumps(text), "script")
            if not written.has_failed:
                break

        return or_fallback(call, written)

    def _names(self, call: TextCall) -> tuple[str, ...]:
        # in a workflow: the part after the turn, which is the step, also if it asks again
        step = call.key.partition(":")[2]
        return call.agent_id, call.key, step, step.removesuffix(":again")

    def _described(self, call: TextCall) -> tuple[str, str]:
        return f"{call.key!r} of agent {call.agent_id!r}", f"prompt:\n{call.prompt}"


ScriptMaker = Callable[[Script], ScriptedReasoner]
"""What the fixture ``scripted_reasoner`` is."""

WriterMaker = Callable[[TextScript], ScriptedWriter]
"""What the fixture ``scripted_writer`` is."""

"""Questions as requests to a model, and what the replies choose.

A model whose server gives log-probabilities is asked for a letter, any other for the name of an
option.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from prism.errors import LLMError, NoProbabilitiesError, ReasonerError, UselessReplyError
from prism.reasoner._calls import MOST_ALTERNATIVES
from prism.reasoner._messages import ChatReply, Reply
from prism.reasoner._prompts import (
    PromptSettings,
    answer_schema,
    chat_prompt,
    letter_form,
    letter_prompt,
    letter_schema,
    prompt_hash,
)
from prism.reasoner._questions import Question
from prism.reasoner._replies import (
    letters_for,
    parse_reasoner_response,
    read_letter,
)
from prism.statechart.states import state_text

Kind = Literal["letter", "name"]

Mode = Literal["auto", "decision", "chat"]
"""``decision`` asks for probabilities, ``chat`` for the name of an option, and ``auto`` for
probabilities if server and model give them."""

Pick = Literal["draw", "argmax"]
"""Whether an option is drawn from the probabilities, or the most likely one is taken."""

Rotations = Literal["none", "drawn", "all"]
"""The order of options: that of the chart, a rotation of it, or all rotations, averaged."""

DECISION_TOKENS = 1024
"""Tokens that the reply to a question may have, thoughts included, unless the user sets others."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    Args:
        kind: How the model is asked.
        question: What it asks, with the options in the chart's order.
        text: The prompt.
        fault: Why it cannot be asked, such as a post that cannot be read.
        asks_reason: Whether a reason is asked for beside the choice.
        rotation: Number of options moved from the beginning of the list to its end in the prompt;
            None for the chart's order.
        hash: The hash of the question's prompt with the options in the chart's order; None if it
            cannot be asked.
        variation: A number added to the seed of the model's sampling. A request for probabilities
            is shared all the same, since the agents draw from these.
    """

    kind: Kind
    question: Question
    text: str
    fault: Exception | None = None
    asks_reason: bool = False
    rotation: int | None = None
    hash: str | None = None
    variation: int = 0

    def identity(self) -> str:
        """Return the question as text; requests with the same identity have the same answer."""
        options = [state_text(option) for option in self.question.options]
        own = [self.variation] if self.kind == "name" and self.variation else []
        return json.dumps([self.kind, self.text, options, *own])

    @property
    def offered(self) -> list[str]:
        """The options' texts in the order of the prompt."""
        return [*map(state_text, _rotated(self.question.options, self.rotation))]

    @property
    def letters(self) -> dict[str, str]:
        """The options' texts by the letters of the prompt."""
        return letters_for(self.offered)

    @property
    def asks_chances(self) -> bool:
        """Whether log-probabilities are asked for."""
        return self.kind == "letter"

    @property
    def most_tokens(self) -> int:
        """Tokens that the reply may have, unless the user sets others."""
        return DECISION_TOKENS

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the reply."""
        if self.kind == "letter":
            return letter_schema(self.letters)
        return answer_schema(self.offered, asks_reason=self.asks_reason)

    def reworded(self, problem: Exception) -> Request:
        """Return a request that says why its last reply was useless, and how to answer.

        It is a single message, since not every client accepts a conversation. It gives a model that
        repeats itself at temperature 0 something new to read.
        """
        if self.kind == "letter":
            how = f"Respond with JSON only:\n{letter_form(list(self.letters))}"
        else:
            listed = ", ".join(self.offered)
            how = f'Choose one of {listed}. Respond with JSON only:\n{{"next_state": "..."}}'
        return replace(self, text=again(self.text, str(problem), how))

    def read(self, said: ChatReply) -> Reply:
        """Return what a conversation's reply says.

        Raises:
            NoProbabilitiesError: If it has no log-probabilities, for which it was asked.
            UselessReplyError: If it names no option.
        """
        # a client of the user's own may know of none
        if self.asks_chances and not getattr(said, "tokens", ()):
            raise NoProbabilitiesError(
                f"{said.model or 'the model'} gives no log-probabilities", host=said.host
            )
        try:
            if self.asks_chances:
                return read_letter(said, self.letters)
            return Reply(said.text, self._named_in(said.text))
        except ReasonerError as error:
            raise UselessReplyError(str(error), host=getattr(said, "host", "")) from error

    def _named_in(self, text: str) -> str:
        """Return the text of the option that a reply names."""
        for option in self.offered:
            # the exact reply of servers that follow the schema needs no careful reader
            if text == f'{{"next_state": "{option}"}}':
                return option
        return state_text(parse_reasoner_response(text, list(self.question.options)))

    def lacks(self, said: ChatReply) -> int:
        """Return 0 for a reply to a conversation that can be used, else 1."""
        try:
            self.read(said)
        except LLMError:
            return 1
        return 0


def request_for(
    kind: Kind, question: Question, settings: PromptSettings, rotation: int | None = None
) -> Request:
    """Make the request for a question.

    Args:
        kind: How the model is asked.
        question: The question.
        settings: The contents of prompts besides the question.
        rotation: The rotation of its options; None for the chart's order.

    Raises:
        ReasonerError: If a prompt of the user's own does not fit the question.
    """
    try:
        return _request(kind, question, settings, rotation)
    except ReasonerError:
        raise
    except Exception as error:
        # an exception of the user's agent or post must not affect the other questions
        return Request(kind, question, "", fault=error)


def _request(
    kind: Kind, question: Question, settings: PromptSettings, rotation: int | None
) -> Request:
    turned = question
    if rotation:
        turned = replace(question, options=_rotated(question.options, rotation))

    same = prompt_hash(question, settings)
    # a server lists so many alternatives for a letter, and no more
    if kind == "name" or len(question.options) > MOST_ALTERNATIVES:
        text, kind = chat_prompt(turned, settings), "name"
        asks = settings.asks_reason
        return Request(kind, question, text, asks_reason=asks, rotation=rotation, hash=same)

    letters = letters_for([state_text(option) for option in turned.options])
    text = letter_prompt(turned, settings, list(letters))
    return Request(kind, question, text, rotation=rotation, hash=same)


def _rotated(options: tuple[Any, ...], rotation: int | None) -> tuple[Any, ...]:
    return (*options[rotation:], *options[:rotation]) if rotation else options


def again(prompt: str, problem: str, how: str) -> str:
    """Return a repeated prompt with the problem of the last reply."""
    return f"{prompt.rstrip()}\n\nYour last reply could not be used: {problem}\n{how}\n"


async def answered(
    request: Request,
    ask: Callable[[Request], Awaitable[Reply]],
    may_repeat: Callable[[], bool] = lambda: True,
) -> Reply:
    """Ask, and once more in other words if the model's reply is useless; return a reply.

    If the second request fails, the problem of the first reply is more informative.

    Args:
        request: The question.
        ask: Sends a request.
        may_repeat: Returns whether another request may be sent.

    Raises:
        LLMError: If there is no reply.
    """
    try:
        return await ask(request)
    except UselessReplyError as problem:
        if may_repeat():
            with suppress(LLMError):
                return await ask(request.reworded(problem))
        raise


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A prompt whose answer is a text.

    Args:
        text: The prompt.
        schema: JSON Schema of the answer, if it must be JSON.
        lacks: Returns 0 for a reply that can be used, else 1.
        variation: A number added to the seed of the sampling.
        most_tokens: Tokens that the reply may have; None leaves it to the server.
        asks_chances: Whether log-probabilities are asked for.
    """

    text: str
    schema: dict[str, Any] | None
    lacks: Callable[[Any], int]
    variation: int = 0
    most_tokens: int | None = None
    asks_chances: bool = False

    def reworded(self, problem: str) -> TextRequest:
        """Return the request with the problem of its last reply, as `Request.reworded` does."""
        how = "Answer again, in another way."
        if self.schema is not None:
            how = f"Respond with JSON only, of this schema:\n{json.dumps(self.schema)}"
        return replace(self, text=again(self.text, problem, how))

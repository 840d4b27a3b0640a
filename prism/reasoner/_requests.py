"""What is asked of a model, and what comes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from prism.errors import LLMError, UselessReplyError
from prism.reasoner._replies import Token

ResultT = TypeVar("ResultT")

USUAL_TRIES = 2
"""How often a model is asked if its replies are useless, each time in other words."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply to a conversation.

    Args:
        text: Its text.
        model: The model.
        host: Server it runs on.
        input_tokens: Tokens that it read, if known.
        output_tokens: Tokens that it wrote, if known.
        tokens: The reply's tokens with their alternatives, if the server gives them.
    """

    text: str
    model: str = ""
    host: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    tokens: Sequence[Token] = field(default=(), repr=False)


def _as_it_is(reply: ChatReply) -> Any:
    return reply


@dataclass(frozen=True, slots=True)
class Request(Generic[ResultT]):
    """A conversation to send, the form of its answer, and how the answer is read.

    Args:
        messages: ``{"role": ..., "content": ...}``, oldest first.
        schema: JSON schema that the reply must follow.
        read: Returns what a reply says; raises UselessReplyError if it cannot be used.
        how: How to respond, in words, for asking again.
        variation: A number added to the seed, so that the same prompt may get another answer.
        most_tokens: Tokens that the reply may have; None for as many as the server's settings say.
        chances: Whether to request the log-probabilities of its tokens.
    """

    messages: Sequence[Mapping[str, Any]]
    schema: dict[str, Any] | None = None
    read: Callable[[ChatReply], ResultT] = _as_it_is
    how: str = ""
    variation: int = 0
    most_tokens: int | None = None
    chances: bool = False

    @property
    def text(self) -> str:
        """The prompt."""
        return str(self.messages[-1]["content"])

    def reworded(self, problem: str) -> Request[ResultT]:
        """Return a request that says why the last reply was useless, and how to respond.

        It is a single message, since not every client accepts a conversation. It gives a model that
        repeats itself at temperature 0 something new to read.
        """
        told = f"Your last reply could not be used: {problem}\n{self.how}"
        return replace(self, messages=prompted(f"{self.text.rstrip()}\n\n{told}\n"))

    def lacks(self, reply: ChatReply) -> bool:
        """Return whether a reply cannot be used."""
        try:
            self.read(reply)
        except LLMError:
            return True
        return False


def prompted(text: str) -> list[dict[str, str]]:
    """Return a prompt as the messages of a conversation."""
    return [{"role": "user", "content": text}]


async def answered(
    request: Request[ResultT],
    ask: Callable[[Request[ResultT]], Awaitable[ResultT]],
    tries: int = USUAL_TRIES,
) -> ResultT:
    """Ask, and again in other words while the model's replies are useless.

    If asking again fails, the problem of the first reply is more informative.

    Args:
        request: The request.
        ask: Sends a request, and reads its reply.
        tries: How often to ask.

    Raises:
        LLMError: If there is no reply that can be used.
    """
    problems: list[UselessReplyError] = []
    wording = request
    while len(problems) < tries:
        try:
            return await ask(wording)
        except UselessReplyError as problem:
            problems.append(problem)
            wording = request.reworded(str(problem))
        except LLMError:
            if not problems:
                raise
            break

    raise problems[0]

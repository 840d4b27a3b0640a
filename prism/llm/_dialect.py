"""What a dialect is: pure functions for requests and replies, and a table of what differs."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism.llm._wire import MOST_REPLY_BYTES

LOOK_SECONDS = 5.0
"""How long to wait for what a server knows without a model: its version and its models."""

_REPLY_SHARE = 4
"""The reply has one part in so many of the window, where nothing else is said."""

OTHER_FORM = "other form"
"""Stands among the parts that were refused for the usual way of saying a schema."""

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is asked, the same on every host.

    Args:
        model: Name of the model, as the server lists it.
        timeout: Seconds to wait for one reply.
        load_timeout: Seconds to wait for the model to be loaded, which can take minutes.
        temperature: Sampling temperature; 0 for the likeliest answer.
        seed: Seed of the sampling; the server's own parallelism still makes replies vary.
        think: Whether a thinking model may think first; some take ``"low"``, ``"medium"`` or
            ``"high"``.
        keep_alive: How long the server keeps the model loaded, for servers that can be told.
        patience: Seconds to wait for a server that has begun to fail, before questions fail at
            once.
        look_timeout: Seconds to wait for what the server knows without a model, if that is less
            than ``timeout``.
        max_reply_bytes: How long a reply may be, decoded.
        window: Tokens of prompt and reply together; None for what the server has.
        reply_tokens: Tokens that a reply may have; None for a quarter of ``window``, or any number
            without a ``window``.
        key: Name of the environment variable that holds the key, if it is another than usual.
    """

    model: str
    timeout: float = 60.0
    load_timeout: float = 600.0
    temperature: float = 0.0
    seed: int = 0
    think: bool | str | None = False
    keep_alive: str = "30m"
    patience: float = 0.0
    look_timeout: float = LOOK_SECONDS
    max_reply_bytes: int = MOST_REPLY_BYTES
    window: int | None = None
    reply_tokens: int | None = None
    key: str | None = None

    @property
    def reply_room(self) -> int | None:
        """Tokens that a reply may have; None for as many as the model writes.

        A quarter of the window, if nothing else is said.
        """
        if self.reply_tokens is not None or self.window is None:
            return self.reply_tokens
        return max(1, self.window // _REPLY_SHARE)


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation to be sent.

    Args:
        messages: ``{"role": ..., "content": ...}``, oldest first.
        schema: JSON schema that the reply must follow.
        most_tokens: Tokens that the reply may have; None for as many as the model writes.
        chances: Whether the log-probabilities of its tokens are asked for.
        variation: What is added to the seed, so that the same prompt may be answered otherwise.
    """

    messages: Messages
    schema: Mapping[str, Any] | None = None
    most_tokens: int | None = None
    chances: bool = False
    variation: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """What is read from the reply to a conversation.

    Args:
        text: What the model wrote; empty if nothing.
        input_tokens: Tokens that it read, where known.
        output_tokens: Tokens that it wrote, where known.
        tokens: Those of the reply that the server gives with their alternatives.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    tokens: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a server that cannot be used.

    Args:
        unreachable: What to see to where nothing answers.
        no_model: What to do where the model is missing; ``{model}`` stands for its name.
        window: What to set where prompts are too long for its window.
    """

    unreachable: str
    no_model: str
    window: str


WindowReader = Callable[..., tuple[int | None, bool]]
"""Reads the window of a ``model`` from a reply, and whether that is final."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How servers of one kind are spoken to. All functions are pure; a `Host` sends and remembers.

    Args:
        advice: What to do about a server that cannot be used.
        key_variable: Variable of the environment with the key that is sent.
        full_address: Returns the address that requests go to, for one as a user may write it.
        chat: Path of a conversation.
        body: Returns the request of a conversation, without the parts that were refused before.
        read: Reads the reply to one.

            Raises ValueError if it is none.
        words: Returns what any reply says of its cost, its end and an error, in Ollama's words.
        refused: Returns the part of a request that the text of a refusal names, if a request may
            leave it out; else None.
        listing: Path of the list of models.
        read_models: Reads it.
        windows: Paths that may tell the model's window, with what reads it there.
        version: Path of the version; None where there is none.
        show: Path of what a model can do; None where only an answer tells.
        load: Path that loads the model; None where a conversation does.
        decision: Path of decision questions; None where they are conversations whose options have
            letters.
        lists_all: Whether the server has no model but those that it lists.
        hidden: What to say where the server has no path for what is looked at.
        hidden_decisions: The same of whether decision questions are taken, if it is otherwise.
    """

    advice: Advice
    key_variable: str
    full_address: Callable[[str], str]
    chat: str
    body: Callable[[ModelSettings, Chat, Container[str]], dict[str, Any]]
    read: Callable[[Any], Completion]
    words: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    refused: Callable[[str, Mapping[str, Any], ModelSettings], str | None]
    listing: str
    read_models: Callable[[Any], list[str]]
    windows: Sequence[tuple[str, WindowReader]]
    version: str | None = None
    show: str | None = None
    load: str | None = None
    decision: str | None = None
    lists_all: bool = True
    hidden: str = "unknown: the server has no path for it; the answer will show"
    hidden_decisions: str | None = None

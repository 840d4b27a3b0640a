"""Dialects of servers: pure functions for requests and replies, and the paths of each."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism.llm._settings import RequestSettings
from prism.reasoner._faults import part_named
from prism.reasoner._model_client import Chat, ChatReply

LOOK_SECONDS = 5.0
"""Most seconds to wait for what a server knows without a model: its version and its models."""

OTHER_FORM = "other form"
"""Among the refused parts, stands for the usual form of a schema."""

_THINKING = ("think", "chat_template_kwargs", "reasoning_effort")
"""The parts of requests that say how much a model may think."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a server that cannot be used.

    Args:
        unreachable: What to check if nothing answers.
        no_model: What to do if the model is missing; ``{model}`` stands for its name.
        window: What to set if prompts are too long for its window.
        key: What to do if it does not accept who asks.
    """

    unreachable: str
    no_model: str
    window: str
    key: str


WindowReader = Callable[..., tuple[int | None, bool]]
"""Reads the window of a ``model`` from a reply, and whether that is final."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The protocol of servers of one kind. All functions are pure; a `Host` sends and remembers.

    Args:
        advice: What to do about a server that cannot be used.
        key_variable: The environment variable with the key.
        full_address: Returns the address for requests, given one as users write it.
        chat: Path of a conversation.
        body: Returns the request of a conversation, besides the model, and without the parts that
            were refused before.
        read: Reads the reply to a conversation, given the JSON schema that it should follow.

            Raises ValueError if it is invalid.
        parts: The parts of a request that servers may refuse, and the words by which they name
            them. A request may do without, unless the user has asked for one.
        listing: Path of the list of models.
        listed: The key of that list in its reply, and those of a model's name.
        counts: The names of the tokens that were read, and of those that were written.
        other_form: Returns what stands for a part in its usual form, given the text of a refusal
            that names another form, and the request.
        windows: Paths that may reveal the model's window, each with its reader.
        version: Path of the version, if any.
        show: Path of a model's capabilities; None if only an answer reveals them.
        load: Path that loads the model; None if a conversation does.
        decision: Path of decision questions; None if they are conversations whose options have
            letters.
        lists_all: Whether the server lists all of its models.
        hidden: The finding if the server has no path for what is examined.
        hidden_decisions: The same for support of decision questions, if different.
    """

    advice: Advice
    key_variable: str
    full_address: Callable[[str], str]
    chat: str
    body: Callable[[RequestSettings, Chat, Container[str]], dict[str, Any]]
    read: Callable[[Any, Mapping[str, Any] | None], ChatReply]
    parts: Mapping[str, tuple[str, ...]]
    listing: str
    listed: tuple[str, tuple[str, ...]]
    counts: tuple[tuple[str, ...], tuple[str, ...]]
    windows: Sequence[tuple[str, WindowReader]]
    other_form: Callable[[str, str, Mapping[str, Any]], str | None] = lambda *_: None
    version: str | None = None
    show: str | None = None
    load: str | None = None
    decision: str | None = None
    lists_all: bool = True
    hidden: str = "unknown: the server has no path for it; the answer will show"
    hidden_decisions: str | None = None

    def refused(self, said: str, body: Mapping[str, Any], settings: RequestSettings) -> str | None:
        """Return the part of a request that the text of a refusal names, if it may be left out.

        Args:
            said: The text.
            body: The request.
            settings: The user's settings.
        """
        part = part_named(said, self.parts, body)
        if part is None:
            return None
        return self.other_form(part, said, body) or (
            None if _is_asked_for(part, settings) else part
        )


def _is_asked_for(part: str, settings: RequestSettings) -> bool:
    """Return True for what the user asked for, as opposed to a default."""
    if part == "temperature":
        return settings["temperature"] != 0

    return part in _THINKING and settings["think"] is not False

"""What is sent to a model, what comes back, and the interface of clients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from prism.reasoner._spending import Cost

KindT = TypeVar("KindT")


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation to send.

    Args:
        messages: ``{"role": ..., "content": ...}``, oldest first.
        schema: JSON schema that the reply must follow.
        variation: A number added to the seed, so that the same prompt may get another answer.
        most_tokens: Tokens that the reply may have; None for as many as the server's settings say.
        chances: Whether to request the log-probabilities of its tokens.
    """

    messages: Sequence[Mapping[str, Any]]
    schema: dict[str, Any] | None = None
    variation: int = 0
    most_tokens: int | None = None
    chances: bool = False


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
    tokens: Sequence[Any] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model's reply says, as it is kept.

    Args:
        text: Its text.
        chosen: The text of the option that it names.
        chances: Probabilities of the options, by their texts, or None.
        option_mass: The probability of all options together.
    """

    text: str = ""
    chosen: str | None = None
    chances: Mapping[str, float] | None = None
    option_mass: float | None = None


class TextReply(Protocol):
    """A reply to a conversation."""

    @property
    def text(self) -> str:
        """The text of the model."""


class ModelClient(Protocol):
    """A client with its own slots, such as `prism.llm.OllamaChatClient`.

    Other clients are adapted to it. It adds every request to the cost (`Cost.began`), and says when
    a question gets a slot (`Cost.has_slot`).

    A method that accepts ``lacks`` gets a function that returns whether a reply is useless, so that
    another server can be asked. One that accepts ``variation`` gets a number to add to its sampling
    seed. A client whose ``temperature`` is 0 does not sample, so equal questions are asked once;
    any other client is asked for each agent.
    """

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        format: dict[str, Any] | None,  # noqa: A002 - as Ollama names it
        cost: Cost,
    ) -> TextReply:
        """Send a conversation; the reply follows a JSON schema, if there is one."""
        ...


# Clients by duck type


def has(client: object, method: str) -> bool:
    """Return whether an object has a method of this name."""
    return callable(getattr(client, method, None))


def of_kind(kind: type[KindT], value: Any) -> KindT | None:
    """Return a value if it is of a type, else None."""
    return value if isinstance(value, kind) else None


def first(thing: Any, *names: str) -> Any:
    """Return the first of these keys or attributes that has a value."""
    for name in names:
        value = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value

    return None


async def awaited(result: Any) -> Any:
    """Return the result of a call, awaited if necessary."""
    return await result if inspect.isawaitable(result) else result


def accepted(method: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that have a value and that a method accepts."""
    names, takes_any = parameters(method)
    return {
        name: value
        for name, value in offered.items()
        if value is not None and (takes_any or name in names)
    }


def parameters(method: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """Return the parameter names of a method, and whether it accepts any other."""
    return _parameters_of(getattr(method, "__func__", method), hasattr(method, "__func__"))


@lru_cache(maxsize=64)
def _parameters_of(function: Callable[..., Any], bound: bool) -> tuple[tuple[str, ...], bool]:
    found = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
    named = [each.name for each in found if each.kind is not inspect.Parameter.VAR_KEYWORD]
    return tuple(named), len(named) < len(found)

"""Speaking to any chat client, by duck type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from prism.errors import BadReplyError, ReasonerError
from prism.statechart.states import state_text

_METHODS = ("chat", "get_response", "run")


def check_client(client: object) -> None:
    """Refuse a client that cannot be asked anything.

    Raises:
        ReasonerError: If it has none of ``chat``, ``get_response`` and ``run``.
    """
    if not any(callable(getattr(client, method, None)) for method in _METHODS):
        raise ReasonerError(
            f"a Reasoner's client needs an async method chat, get_response or run; {type(client).__name__} has none"
        )


async def ask(client: Any, prompt: str, options: Sequence[Any], *, model: str | None = None) -> str:
    """Put a prompt to a client and give the text of its reply.

    Args:
        client: Anything with ``chat`` (given messages and a JSON schema for the reply), ``get_response`` or
            ``run`` (given the prompt); the first that exists is used.
        prompt: The question.
        options: The states to choose from; they become the schema's enum.
        model: Model name, passed on where ``chat`` takes one.

    Raises:
        BadReplyError: If the reply has no text.
    """
    if callable(getattr(client, "chat", None)):
        reply = client.chat(**_chat_arguments(client.chat, prompt, options, model))
    elif callable(getattr(client, "get_response", None)):
        reply = client.get_response(prompt)
    else:
        reply = client.run(prompt)
    return _text_of(await reply if inspect.isawaitable(reply) else reply)


def answer_schema(options: Sequence[Any]) -> dict[str, Any]:
    """Give the JSON schema of a reply: one ``next_state`` among the options."""
    return {
        "type": "object",
        "properties": {"next_state": {"type": "string", "enum": [state_text(option) for option in options]}},
        "required": ["next_state"],
    }


def _chat_arguments(chat: Callable[..., Any], prompt: str, options: Sequence[Any], model: str | None) -> dict[str, Any]:
    offered: dict[str, Any] = {
        "messages": [{"role": "user", "content": prompt}],
        "format": answer_schema(options),
    }
    if model is not None:
        offered["model"] = model
    accepted = inspect.signature(chat).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values()):
        return offered
    if "messages" not in accepted and accepted:
        return {next(iter(accepted)): prompt}
    return {name: value for name, value in offered.items() if name in accepted}


def _text_of(reply: Any) -> str:
    for path in ((), ("message", "content"), ("text",), ("content",)):
        found = reply
        for name in path:
            found = found.get(name) if isinstance(found, dict) else getattr(found, name, None)
        if isinstance(found, str):
            return found
    raise BadReplyError(f"the client's reply of type {type(reply).__name__} has no text")

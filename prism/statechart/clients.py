"""Speaking to any chat client, by duck type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from prism.errors import BadReplyError, ReasonerError
from prism.statechart.states import state_text

KindT = TypeVar("KindT")

_METHODS = ("chat", "get_response", "run")
_INPUT_TOKENS = ("input_tokens", "prompt_eval_count", "input_token_count")
_OUTPUT_TOKENS = ("output_tokens", "eval_count", "output_token_count")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a client answered.

    Args:
        text: Text of a chat reply.
        answers: Probabilities of a decision reply, by question and then by option.
        model: Model that answered, where known.
        host: Server that answered, where known.
        attempts: Requests it took.
        input_tokens: Tokens the model read, where known.
        output_tokens: Tokens it wrote, where known.
    """

    text: str = ""
    answers: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    host: str | None = None
    attempts: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None


def check_client(client: object) -> None:
    """Refuse a client that cannot be asked anything.

    Raises:
        ReasonerError: If it has none of ``chat``, ``get_response`` and ``run``.
    """
    if not any(callable(getattr(client, method, None)) for method in _METHODS):
        raise ReasonerError(
            f"a Reasoner's client needs an async method chat, get_response or run; {type(client).__name__} has none"
        )


async def ask_chat(
    client: Any, prompt: str, options: Sequence[Any], *, model: str | None = None, seed: int | None = None
) -> Reply:
    """Put a prompt to a client.

    Args:
        client: Anything with ``chat`` (given messages and a JSON schema for the reply), ``get_response`` or
            ``run`` (given the prompt); the first that exists is used.
        prompt: The question.
        options: The states to choose from; they become the schema's enum.
        model: Model name, passed on where ``chat`` takes one.
        seed: Sampling seed, passed on inside ``options`` where ``chat`` takes them and a model name.

    Raises:
        BadReplyError: If the reply has no text.
    """
    if callable(getattr(client, "chat", None)):
        given = await _awaited(client.chat(**_chat_arguments(client.chat, prompt, options, model, seed)))
    elif callable(getattr(client, "get_response", None)):
        given = await _awaited(client.get_response(prompt))
    else:
        given = await _awaited(client.run(prompt))
    usage = _first(given, "usage_details") or {}
    return Reply(
        text=_text_of(given),
        input_tokens=_of_kind(int, _first(given, *_INPUT_TOKENS) or _first(usage, *_INPUT_TOKENS)),
        output_tokens=_of_kind(int, _first(given, *_OUTPUT_TOKENS) or _first(usage, *_OUTPUT_TOKENS)),
        **_origin(given, model),
    )


async def ask_decision(
    client: Any, state: str, questions: Mapping[str, Mapping[str, Any]], *, model: str | None = None
) -> Reply:
    """Put choice questions about one state to a decision model.

    Args:
        client: Anything with ``systemone(state=..., questions=...)``.
        state: What the questions are about.
        questions: The questions by name, in the wire format of ``/v1/systemone``.
        model: Model name, passed on where ``systemone`` takes one.

    Raises:
        BadReplyError: If the reply does not answer every question.
    """
    offered = {"state": state, "questions": questions, "model": model}
    given = await _awaited(client.systemone(**_accepted(client.systemone, offered)))
    answers = _first(given, "answers") or {}
    missing = [name for name in questions if name not in answers]
    if missing:
        raise BadReplyError(f"the decision model left {len(missing)} of {len(questions)} questions unanswered")
    usage = _first(given, "usage")
    return Reply(
        answers={name: _first(answers[name], "probabilities") for name in questions},
        input_tokens=_of_kind(int, _first(usage, *_INPUT_TOKENS)),
        output_tokens=_of_kind(int, _first(usage, *_OUTPUT_TOKENS)),
        **_origin(given, model),
    )


async def offers_decisions(client: Any, model: str | None) -> bool:
    """Find out whether a client's server and model take decision questions.

    A client may say so itself (``offers_decisions()``); one like ``ollama.AsyncClient`` is asked for the
    model's capabilities.
    """
    if not callable(getattr(client, "systemone", None)):
        return False
    own = getattr(client, "offers_decisions", None)
    if callable(own):
        return bool(await _awaited(own()))
    show = getattr(client, "show", None)
    if not callable(show) or model is None:
        return False
    return "decision" in (_first(await _awaited(show(model)), "capabilities") or ())


def answer_schema(options: Sequence[Any]) -> dict[str, Any]:
    """Give the JSON schema of a reply: one ``next_state`` among the options."""
    return {
        "type": "object",
        "properties": {"next_state": {"type": "string", "enum": [state_text(option) for option in options]}},
        "required": ["next_state"],
    }


def _chat_arguments(
    chat: Callable[..., Any], prompt: str, options: Sequence[Any], model: str | None, seed: int | None
) -> dict[str, Any]:
    offered: dict[str, Any] = {"messages": [{"role": "user", "content": prompt}], "format": answer_schema(options)}
    if model is not None:
        offered["model"] = model
        if seed is not None:
            offered["options"] = {"seed": seed}
    names, takes_any = _parameters(chat)
    if names and "messages" not in names and not takes_any:
        return {names[0]: prompt}
    return _accepted(chat, offered)


def _accepted(method: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the arguments that a method takes."""
    names, takes_any = _parameters(method)
    return {name: value for name, value in offered.items() if value is not None and (takes_any or name in names)}


def _parameters(method: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """Give the names that a method takes, and whether it takes any other, too."""
    return _parameters_of(getattr(method, "__func__", method), hasattr(method, "__func__"))


@lru_cache(maxsize=64)
def _parameters_of(function: Callable[..., Any], bound: bool) -> tuple[tuple[str, ...], bool]:
    parameters = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    named = [item.name for item in parameters if item.kind is not inspect.Parameter.VAR_KEYWORD]
    return tuple(named), takes_any


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


def _text_of(reply: Any) -> str:
    for path in ((), ("message", "content"), ("text",), ("content",)):
        found = reply
        for name in path:
            found = _first(found, name)
        if isinstance(found, str):
            return found
    raise BadReplyError(f"the client's reply of type {type(reply).__name__} has no text")


def _origin(reply: Any, model: str | None) -> dict[str, Any]:
    return {
        "model": _of_kind(str, _first(reply, "model")) or model,
        "host": _of_kind(str, _first(reply, "host")),
        "attempts": _of_kind(int, _first(reply, "attempts")) or 1,
    }


def _of_kind(kind: type[KindT], value: Any) -> KindT | None:
    return value if isinstance(value, kind) else None


def _first(thing: Any, *names: str) -> Any:
    """Give the first of these keys or attributes that has a value."""
    for name in names:
        value = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value
    return None

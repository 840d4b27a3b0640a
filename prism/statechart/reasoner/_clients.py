"""Speaking to any chat client, by duck type."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar

from prism.errors import BadReplyError, DecisionsUnsupportedError, ReasonerError
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


def check_client(client: object, *, only_decides: bool = False) -> None:
    """Refuse a client that cannot be asked anything.

    Args:
        client: What would be asked.
        only_decides: Whether it would be asked decision questions and nothing else.

    Raises:
        ReasonerError: If it has none of ``chat``, ``get_response`` and ``run``, lacks the
            ``systemone`` that decision questions need, or is Ollama's blocking client.
    """
    kind = type(client).__name__
    if _blocks(client):
        raise ReasonerError(
            f"{kind} stops the event loop while it waits for an answer: use ollama.AsyncClient"
        )

    if only_decides:
        if not _has(client, "systemone"):
            raise ReasonerError(
                f"mode 'decision' needs a client with an async method systemone; {kind} has none"
            )
    elif not any(_has(client, method) for method in _METHODS):
        raise ReasonerError(
            f"a Reasoner's client needs an async method chat, get_response or run; {kind} has none"
        )


def check_model(client: object, model: str | None, *, only_decides: bool = False) -> None:
    """Refuse to ask a client without a model that has to be told one with every call, such as ``ollama.AsyncClient``.

    Args:
        client: What would be asked.
        model: Model name, if one is given.
        only_decides: Whether it would be asked decision questions and nothing else.

    Raises:
        ReasonerError: If there is no name, and the client's method has nothing to ask instead.
    """
    method = "systemone" if only_decides else "chat"
    if model or not _has(client, method):
        return

    told = inspect.signature(getattr(client, method)).parameters.get("model")
    if told is not None and told.default in (inspect.Parameter.empty, ""):
        kind = type(client).__name__
        raise ReasonerError(
            f"{kind}.{method} has to be told a model: give one, such as Reasoner(client, model='...')"
        )


async def ask_chat(
    client: Any,
    prompt: str,
    options: Sequence[Any],
    *,
    model: str | None = None,
    seed: int | None = None,
    refused: set[str] | None = None,
) -> Reply:
    """Put a prompt to a client.

    Args:
        client: Anything with ``chat`` (given messages and a JSON schema for the reply),
            ``get_response`` or ``run`` (given the prompt); the first that exists is used. Where the
            latter two take ``messages`` and ``options``, as agent-framework's do, the options hold
            schema and seed.
        prompt: The question.
        options: The states to choose from; they become the schema's enum.
        model: Model name, passed on where ``chat`` takes one.
        seed: Sampling seed, passed on inside ``options`` where ``chat`` takes them and a model
            name.
        refused: Arguments of ``chat`` that the model is known to refuse; one that it refuses now is
            added. A ``chat`` with a ``think`` is given False, as thinking models think otherwise,
            unless the model refuses to be told.

    Raises:
        BadReplyError: If the reply has no text.
    """
    more = 0
    if _has(client, "chat"):
        refused = set() if refused is None else refused
        arguments = _chat_arguments(client.chat, prompt, options, model, seed, refused)
        given, more = await _chat(client.chat, arguments, refused)
    else:
        ask = client.get_response if _has(client, "get_response") else client.run
        given = await _awaited(ask(prompt, **_framework_arguments(ask, options, seed)))

    usage = _first(given, "usage_details")
    reply = Reply(
        _text_of(given), **_origin(given, model), **_tokens(given if usage is None else usage)
    )

    return replace(reply, attempts=reply.attempts + more) if more else reply


async def ask_decision(
    client: Any, state: str, questions: Mapping[str, Mapping[str, Any]], *, model: str | None = None
) -> Reply:
    """Put choice questions about one state to a decision model.

    Args:
        client: Anything with ``systemone(state=..., questions=...)``.
        state: What the questions are about.
        questions: The questions by name, in the wire format of ``/v1/systemone``.
        model: Model name, passed on where ``systemone`` takes one.

    Returns:
        The reply; where the model left a question unanswered, its probabilities are None.

    Raises:
        DecisionsUnsupportedError: If the server is too old, or the model not made for such
            questions.
        BadReplyError: If the reply has no answers.
    """
    offered = {"state": state, "questions": questions, "model": model}
    try:
        given = await _awaited(client.systemone(**_accepted(client.systemone, offered)))
    except Exception as error:
        if _refuses_decisions(error):
            raise DecisionsUnsupportedError(f"no decision questions are taken ({error})") from error
        raise

    answers = _first(given, "answers")
    if not isinstance(answers, Mapping):
        raise BadReplyError(f"the client's reply of type {type(given).__name__} has no answers")

    chances = {name: _first(answers.get(name), "probabilities") for name in questions}

    return Reply(answers=chances, **_origin(given, model), **_tokens(_first(given, "usage")))


async def offers_decisions(client: Any, model: str | None) -> bool:
    """Find out whether a client's server and model take decision questions, or may, as only a question can tell.

    A client may say so itself (``offers_decisions()``); one like ``ollama.AsyncClient`` is asked
    for the model's capabilities. A server that does not know ``/api/show`` is none of Ollama's, but
    may take such questions.
    """
    if not _has(client, "systemone"):
        return False
    if _has(client, "offers_decisions"):
        return bool(await _awaited(client.offers_decisions()))
    if model is None or not _has(client, "show"):
        return False

    try:
        shown = await _awaited(client.show(model))
    except Exception as error:
        if _lacks_path(error):
            return True
        raise

    return "decision" in (_first(shown, "capabilities") or ())


def answer_schema(options: Sequence[Any]) -> dict[str, Any]:
    """Return the JSON schema of a reply: one ``next_state`` among the options."""
    return {
        "type": "object",
        "properties": {
            "next_state": {"type": "string", "enum": [state_text(option) for option in options]}
        },
        "required": ["next_state"],
    }


def _chat_arguments(
    chat: Callable[..., Any],
    prompt: str,
    options: Sequence[Any],
    model: str | None,
    seed: int | None,
    refused: Collection[str],
) -> dict[str, Any]:
    offered: dict[str, Any] = {
        "messages": [{"role": "user", "content": prompt}],
        "format": answer_schema(options),
    }
    if model is not None:
        offered["model"] = model
        if seed is not None:
            offered["options"] = {"seed": seed}

    names, takes_any = _parameters(chat)
    if names and "messages" not in names and not takes_any:
        return {names[0]: prompt}
    if "think" in names and "think" not in refused:
        offered["think"] = False

    return _accepted(chat, offered)


async def _chat(
    chat: Callable[..., Any], arguments: dict[str, Any], refused: set[str]
) -> tuple[Any, int]:
    """Return the answer of a chat, and how often it was asked in vain because it was told not to think."""
    try:
        return await _awaited(chat(**arguments)), 0
    except Exception as error:
        if "think" not in arguments or not _refuses_to_be_told(error):
            raise

    refused.add("think")
    del arguments["think"]

    return await _awaited(chat(**arguments)), 1


def _framework_arguments(
    ask: Callable[..., Any], options: Sequence[Any], seed: int | None
) -> dict[str, Any]:
    """Return what agent-framework's clients and agents take besides the prompt; nothing to anything else."""
    names, _ = _parameters(ask)
    if not {"messages", "options"} <= set(names):
        return {}

    wanted: dict[str, Any] = {"response_format": answer_schema(options)}
    if seed is not None:
        wanted["seed"] = seed

    return {"options": wanted}


def _refuses_decisions(error: Exception) -> bool:
    """Return whether a client like ``ollama.AsyncClient`` was told that there are no decisions, or no such path."""
    status, said = getattr(error, "status_code", None), str(error).lower()
    return _lacks_path(error) or (status == 400 and "support" in said)


def _lacks_path(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    return status in (405, 501) or (status == 404 and "model" not in str(error).lower())


def _refuses_to_be_told(error: Exception) -> bool:
    """Return whether a server or model refused a request because of what it said of thinking."""
    return getattr(error, "status_code", None) in (400, 422) and "think" in str(error).lower()


def _blocks(client: object) -> bool:
    """Return whether a client is Ollama's own, and not the asynchronous one."""
    is_ollamas = any(base.__module__.partition(".")[0] == "ollama" for base in type(client).__mro__)
    return is_ollamas and not inspect.iscoroutinefunction(getattr(client, "chat", None))


def _has(client: object, method: str) -> bool:
    return callable(getattr(client, method, None))


def _accepted(method: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the arguments that a method takes."""
    names, takes_any = _parameters(method)
    return {
        name: value
        for name, value in offered.items()
        if value is not None and (takes_any or name in names)
    }


def _parameters(method: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """Return the names that a method takes, and whether it takes any other, too."""
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
    """Return a reply's text; an answer that is no text but data, as agents with typed results give it, is made one."""
    for path in ((), ("message", "content"), ("text",), ("content",), ("output",)):
        found = reply
        for name in path:
            found = _first(found, name)

        if isinstance(found, str):
            return found

        chosen = _first(found, "next_state")
        if chosen is not None:
            return json.dumps({"next_state": state_text(chosen)})

    raise BadReplyError(f"the client's reply of type {type(reply).__name__} has no text")


def _origin(reply: Any, model: str | None) -> dict[str, Any]:
    return {
        "model": _of_kind(str, _first(reply, "model")) or model,
        "host": _of_kind(str, _first(reply, "host")),
        "attempts": _of_kind(int, _first(reply, "attempts")) or 1,
    }


def _tokens(usage: Any) -> dict[str, Any]:
    return {
        "input_tokens": _of_kind(int, _first(usage, *_INPUT_TOKENS)),
        "output_tokens": _of_kind(int, _first(usage, *_OUTPUT_TOKENS)),
    }


def _of_kind(kind: type[KindT], value: Any) -> KindT | None:
    return value if isinstance(value, kind) else None


def _first(thing: Any, *names: str) -> Any:
    """Return the first of these keys or attributes that has a value."""
    for name in names:
        value = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value

    return None

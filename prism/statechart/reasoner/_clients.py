"""Choosing, once, how a client is spoken to.

Clients that take a prompt (agent-framework's clients and agents, and anything like them) are spoken
to here; those with the call shape of ``ollama.AsyncClient`` in `_bare_ollama`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from prism.errors import ReasonerError
from prism.statechart.reasoner._bare_ollama import BareOllama, text_reply
from prism.statechart.reasoner._cost import Cost
from prism.statechart.reasoner._model_client import ModelClient, Reply, has, parameters


class PromptClient(BareOllama):
    """Adapts a client with ``get_response`` or ``run``, or with a ``chat`` that takes a prompt.

    Where the method takes ``messages`` and ``options``, as agent-framework's do, the options hold
    schema and seed. Decision questions are put as to any other client.

    Args:
        client: The client.
        model: Model name, for decision questions.
        seed: Seed of the sampling.
        attempts: Requests for one question while its failures pass, at most.
    """

    def __init__(self, client: Any, model: str | None, seed: int | None, attempts: int = 1) -> None:
        super().__init__(client, model, seed, attempts)
        self._ask = _method_of(client)
        names = set(parameters(self._ask)[0]) if self._ask is not None else set()
        self._takes_options = {"messages", "options"} <= names and not has(client, "chat")

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        format: dict[str, Any] | None,  # noqa: A002 - as Ollama names it
        cost: Cost,
    ) -> Reply:
        """Put the prompt, which is the one message of a conversation.

        Raises:
            BadReplyError: If the reply has no text.
        """
        ask = self._ask
        assert ask is not None
        options: dict[str, Any] = {} if format is None else {"response_format": format}
        if self._seed is not None:
            options["seed"] = self._seed

        (message,) = messages
        more = {"options": options} if self._takes_options else {}
        reply = await self._sent(lambda: ask(message["content"], **more), cost)

        return text_reply(reply, cost)


def _method_of(client: Any) -> Callable[..., Any] | None:
    """Return the method that takes the prompt; None for a client that only decides."""
    for name in ("chat", "get_response", "run"):
        if has(client, name):
            method: Callable[..., Any] = getattr(client, name)
            return method

    return None


_METHODS = ("chat", "get_response", "run")


def adapt(client: Any, model: str | None, seed: int | None, attempts: int = 1) -> ModelClient:
    """Return the client itself if it is a `ModelClient`, else an adapter for it.

    Args:
        client: A client that passed `check_client`.
        model: Model name, for a client that needs one with every call.
        seed: Seed of the sampling, where the client takes one.
        attempts: Requests for one question, at most, where the client has no retries of its own.
    """
    if has_slots(client):
        return cast("ModelClient", client)
    if not has(client, "chat"):
        return PromptClient(client, model, seed, attempts)

    names, takes_any = parameters(client.chat)
    takes_messages = "messages" in names or takes_any or not names

    return (BareOllama if takes_messages else PromptClient)(client, model, seed, attempts)


def has_slots(client: Any) -> bool:
    """Return True if a client hands out slots itself: it has a limit, and tells a cost of it."""
    if not getattr(client, "concurrency", None):
        return False

    methods = [getattr(client, name, None) for name in ("chat", "systemone")]
    return all(callable(method) and "cost" in parameters(method)[0] for method in methods)


def takes_check(method: Callable[..., Any]) -> bool:
    """Return True if a client's method may ask elsewhere for what a reply lacks."""
    return "lacks" in parameters(method)[0]


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
        if not has(client, "systemone"):
            raise ReasonerError(
                f"mode 'decision' needs a client with an async method systemone; {kind} has none"
            )
    elif not any(has(client, method) for method in _METHODS):
        raise ReasonerError(
            f"a Reasoner's client needs an async method chat, get_response or run; {kind} has none"
        )


def check_model(client: object, model: str | None, *, only_decides: bool = False) -> None:
    """Refuse a client that needs a model with every call if there is none.

    Args:
        client: What would be asked.
        model: Model name, if one is given.
        only_decides: Whether it would be asked decision questions and nothing else.

    Raises:
        ReasonerError: If there is no name, and the client's method has nothing to ask instead.
    """
    method = "systemone" if only_decides else "chat"
    if model or not has(client, method):
        return

    parameter = inspect.signature(getattr(client, method)).parameters.get("model")
    if parameter is not None and parameter.default in (inspect.Parameter.empty, ""):
        kind = type(client).__name__
        raise ReasonerError(
            f"{kind}.{method} needs the name of a model: give one, "
            "such as Reasoner(client, model='...')"
        )


def require_model(client: object, model: str | None) -> None:
    """Refuse to keep answers whose model is unknown."""
    if model is None and not isinstance(getattr(client, "model", None), str):
        raise ReasonerError(
            f"a cache keeps answers by model, and {type(client).__name__} names none: "
            "give Reasoner a model, any name that stands for the model and for what else the "
            "answers depend on"
        )


def depends_on(client: Any, model: str | None, seed: int) -> list[Any]:
    """Return what a reply depends on besides the question, as far as the client says."""
    settings = [getattr(client, name, None) for name in ("model", "temperature", "seed", "think")]
    return [
        model,
        seed,
        *(value if isinstance(value, (str, int, float)) else None for value in settings),
    ]


def _blocks(client: object) -> bool:
    """Return True if a client is Ollama's own, and not the asynchronous one."""
    is_ollamas = any(base.__module__.partition(".")[0] == "ollama" for base in type(client).__mro__)
    return is_ollamas and not inspect.iscoroutinefunction(getattr(client, "chat", None))

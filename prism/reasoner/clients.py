"""Clients of other libraries: which can be asked, and how each takes a request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from prism.errors import LLMError, ReasonerError
from prism.reasoner.requests import Request, without_none
from prism.reasoner.servers import Call, ClientServer

PROMPTED = ("chat", "get_response", "run")
"""The methods that take a prompt; the first that a client has is called."""


class ForeignServer(ClientServer):
    """A client of another library: Ollama's, OpenAI's, or one with a method that takes a prompt.

    Args:
        client: The client.
        model: Model name, for a client that needs one with every call.
        seed: Seed of the sampling, if the client takes one.
        limit: Simultaneous questions.
        patience: Seconds to wait for it when it fails.
    """

    def __init__(
        self, client: Any, model: str | None, seed: int | None, limit: int, patience: float
    ) -> None:
        super().__init__(type(client).__name__, model or "the model", limit, patience)
        self._client, self._model, self._seed = client, model, seed
        self.model_and_host: tuple[str | None, str | None] = model, None

    def failure(self, error: Exception, seconds: float = 0.0) -> LLMError:
        """Return the error for an exception, without the key that a client such as OpenAI's has."""
        failure, key = super().failure(error, seconds), getattr(self._client, "api_key", None)
        if isinstance(key, str) and key in str(failure) and len(key) > 2:
            failure.args = (str(failure).replace(key, "[key]"),)
        return failure

    def call(self, request: Request[Any]) -> Call:
        """Return the call in the form that the client takes."""
        seed = None if self._seed is None else self._seed + request.variation
        if (completions := completions_of(self._client)) is not None:
            return self._of_openai(completions.create, request, seed)

        name = next(each for each in PROMPTED if has(self._client, each))
        ask = getattr(self._client, name)
        names, takes_any = parameters(ask)
        if name == "chat" and ("messages" in names or takes_any or not names):
            return self._of_ollama(ask, request, seed)

        # as agent-framework's clients and agents take them
        options = without_none(response_format=request.schema, seed=seed)
        takes_options = name != "chat" and {"messages", "options"} <= set(names)
        (message,) = request.messages
        return Call(ask, (message["content"],), {"options": options} if takes_options else {})

    def _of_openai(
        self, create: Callable[..., Any], request: Request[Any], seed: int | None
    ) -> Call:
        schema = {"name": "answer", "schema": request.schema}
        # the only limit of sampling that OpenAI's client has
        self.sampling: dict[str, Any] = {"top_p": 1}
        offered = {
            "model": self._model,
            "messages": list(request.messages),
            "seed": seed,
            **self.sampling,
            "response_format": request.schema and {"type": "json_schema", "json_schema": schema},
            **self.chances_of(request),
        }
        return Call(create, (), without_none(**offered))

    def _of_ollama(self, ask: Callable[..., Any], request: Request[Any], seed: int | None) -> Call:
        options = without_none(**self.sampling_of(request, None), seed=seed)
        offered = {
            "messages": request.messages,
            "format": request.schema,
            "model": self._model,
            "options": options if self._model else None,
            **self.chances_of(request),
        }
        return Call(ask, (), accepted(ask, offered))


def gives_chances(client: Any) -> bool:
    """Return whether a client can be asked for log-probabilities."""
    method = _chat_of(client)
    return callable(method) and "logprobs" in parameters(method)[0]


def _chat_of(client: Any) -> Any:
    """Return the method that takes a conversation, if a client has one."""
    completions = completions_of(client)
    return getattr(client, "chat", None) if completions is None else completions.create


def completions_of(client: Any) -> Any:
    """Return the completions of a client like ``openai.AsyncOpenAI``; None for others."""
    completions = getattr(getattr(client, "chat", None), "completions", None)
    return completions if has(completions, "create") else None


def check_client(client: object) -> None:
    """Refuse a client that cannot be asked.

    Raises:
        ReasonerError: If it has none of the methods, or blocks the event loop.
    """
    kind = type(client).__name__
    if instead := _async_twin(client):
        raise ReasonerError(f"{kind} stops the event loop while it waits for an answer: {instead}")
    if completions_of(client) is None and not any(has(client, name) for name in PROMPTED):
        raise ReasonerError(
            f"a Reasoner's client needs an async method chat, get_response or run; {kind} has none"
        )


def _async_twin(client: object) -> str | None:
    """Return what to use instead of a blocking client of Ollama or OpenAI."""
    bases = type(client).__mro__
    makers = {base.__module__.partition(".")[0] for base in bases} & {"ollama", "openai"}
    is_async = inspect.iscoroutinefunction(getattr(client, "chat", None))
    if not makers or is_async or any(base.__name__.startswith("Async") for base in bases):
        return None
    return f"use {'ollama.AsyncClient' if 'ollama' in makers else 'openai.AsyncOpenAI'}"


def check_model(client: object, model: str | None) -> None:
    """Refuse a client that needs a model name with every call if there is none.

    Raises:
        ReasonerError: If there is no name, and the client's method needs one.
    """
    method = _chat_of(client)
    if model or not callable(method):
        return

    parameter = inspect.signature(method).parameters.get("model")
    if parameter is not None and parameter.default in (inspect.Parameter.empty, ""):
        problem = f"{type(client).__name__}.chat needs the name of a model: give one"
        raise ReasonerError(f"{problem}, such as Reasoner(client, model='...')")


# Clients by duck type


def has(client: object, method: str) -> bool:
    """Return whether an object has a method of this name."""
    return callable(getattr(client, method, None))


def accepted(method: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that have a value and that a method accepts."""
    (names, takes_any), values = parameters(method), without_none(**offered)
    return {name: values[name] for name in values if takes_any or name in names}


def parameters(method: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """Return the parameter names of a method, and whether it accepts any other."""
    accepted = inspect.signature(method).parameters.values()
    named = [each.name for each in accepted if each.kind is not inspect.Parameter.VAR_KEYWORD]
    return tuple(named), len(named) < len(accepted)

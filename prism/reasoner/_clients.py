"""Clients of other libraries: which can be asked, and how."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

from prism.errors import FieldValueError, LLMError, ReasonerError
from prism.reasoner._calls import Call, ClientServer
from prism.reasoner._messages import (
    Chat,
    ModelClient,
    accepted,
    has,
    of_kind,
    parameters,
)
from prism.reasoner._slots import Pool
from prism.telemetry.loggers import describe

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
        self.model_and_host = model, None

    def call(self, chat: Chat) -> Call:
        """Return the call in the form that the client takes."""
        seed = None if self._seed is None else self._seed + chat.variation
        if (completions := completions_of(self._client)) is not None:
            return self._of_openai(completions.create, chat, seed)

        name = next(each for each in PROMPTED if has(self._client, each))
        ask = getattr(self._client, name)
        names, takes_any = parameters(ask)
        if name == "chat" and ("messages" in names or takes_any or not names):
            return self._of_ollama(ask, chat, seed)

        # as agent-framework's clients and agents take them
        options = {"response_format": chat.schema, "seed": seed}
        known = {key: value for key, value in options.items() if value is not None}
        takes_options = name != "chat" and {"messages", "options"} <= set(names)
        (message,) = chat.messages
        return Call(ask, (message["content"],), {"options": known} if takes_options else {})

    def _of_openai(self, create: Callable[..., Any], chat: Chat, seed: int | None) -> Call:
        schema = {"name": "answer", "schema": chat.schema}
        offered = {
            "model": self._model,
            "messages": list(chat.messages),
            "seed": seed,
            "response_format": chat.schema and {"type": "json_schema", "json_schema": schema},
            **self.chances_of(chat),
        }
        return Call(create, (), {key: part for key, part in offered.items() if part is not None})

    def _of_ollama(self, ask: Callable[..., Any], chat: Chat, seed: int | None) -> Call:
        offered = {
            "messages": chat.messages,
            "format": chat.schema,
            "model": self._model,
            "options": {"seed": seed} if self._model and seed is not None else None,
            **self.chances_of(chat),
        }
        return Call(ask, (), accepted(ask, offered))

    def failure(self, error: Exception, seconds: float = 0.0) -> LLMError:
        """Return the error of prism's tree for an exception of the client."""
        if isinstance(error, LLMError):
            # of one of prism's own clients inside of another, which has tried again already
            return LLMError(describe(error), host=error.host)
        return super().failure(error, seconds)


def gives_chances(client: Any) -> bool:
    """Return whether a client takes a request for log-probabilities, by name."""
    completions = completions_of(client)
    method = getattr(client, "chat", None) if completions is None else completions.create
    if not callable(method):
        return False
    names, _ = parameters(method)
    return "logprobs" in names or "chances" in names


def completions_of(client: Any) -> Any:
    """Return the completions of a client like ``openai.AsyncOpenAI``; None for others."""
    completions = getattr(getattr(client, "chat", None), "completions", None)
    return completions if has(completions, "create") else None


def adapt(
    client: Any,
    model: str | None,
    seed: int | None,
    attempts: int = 1,
    concurrency: int = 1,
    patience: float = 0.0,
) -> ModelClient:
    """Return the client itself if it is a `ModelClient`, or else a pool with it as the only server.

    Args:
        client: A client that passed `check_client`.
        model: Model name, for a client that needs one with every call.
        seed: Seed of the sampling, if the client takes one.
        attempts: Requests for one question, if the client does not try again by itself.
        concurrency: Simultaneous questions.
        patience: Seconds to wait for it when it fails.
    """
    if has_slots(client):
        return cast("ModelClient", client)

    tries_again = of_kind(int, getattr(client, "max_retries", None))
    server = ForeignServer(client, model, seed, concurrency, patience)
    return cast("ModelClient", Pool([server], model or "", attempts=1 if tries_again else attempts))


def has_slots(client: Any) -> bool:
    """Return whether a client manages slots itself: it has a limit, and accepts a cost."""
    if not getattr(client, "concurrency", None):
        return False
    chat = getattr(client, "chat", None)
    return callable(chat) and "cost" in parameters(chat)[0]


def refuse_own_limits(client: Any, kind: str, **given: Any) -> None:
    """Refuse limits for a client that has its own and would ignore them.

    Raises:
        FieldValueError: If ``concurrency`` or ``attempts`` is given for such a client.
    """
    own, concurrency = getattr(client, "concurrency", None), given["concurrency"]
    if own and concurrency is not None:
        raise FieldValueError(
            f"concurrency must be omitted, got {concurrency!r}: {kind} has its own, {own!r}"
        )
    if given["attempts"] is not None and has_slots(client):
        raise FieldValueError(
            f"attempts must be omitted, got {given['attempts']!r}: {kind} retries by itself"
        )


def check_client(client: object, *, only_decides: bool = False) -> None:
    """Refuse a client that cannot be asked.

    Args:
        client: The client.
        only_decides: Whether it would be asked for probabilities and nothing else.

    Raises:
        ReasonerError: If it has none of the methods, or blocks the event loop.
    """
    kind = type(client).__name__
    if instead := _async_twin(client):
        raise ReasonerError(f"{kind} stops the event loop while it waits for an answer: {instead}")
    if only_decides:
        if not gives_chances(client):
            raise ReasonerError(
                f"mode 'decision' needs a client whose chat takes logprobs; that of {kind} does not"
            )
    elif completions_of(client) is None and not any(has(client, name) for name in PROMPTED):
        raise ReasonerError(
            f"a Reasoner's client needs an async method chat, get_response or run; {kind} has none"
        )


def _async_twin(client: object) -> str | None:
    """Return what to use instead of a blocking client of Ollama or OpenAI."""
    bases = type(client).__mro__
    makers = {base.__module__.partition(".")[0] for base in bases} & {"ollama", "openai"}
    if not makers or any(base.__name__.startswith("Async") for base in bases):
        return None
    if inspect.iscoroutinefunction(getattr(client, "chat", None)):
        return None
    return f"use {'ollama.AsyncClient' if 'ollama' in makers else 'openai.AsyncOpenAI'}"


def check_model(client: object, model: str | None) -> None:
    """Refuse a client that needs a model name with every call if there is none.

    Raises:
        ReasonerError: If there is no name, and the client's method needs one.
    """
    completions = completions_of(client)
    method = getattr(client, "chat", None) if completions is None else completions.create
    if model or not callable(method):
        return

    parameter = inspect.signature(method).parameters.get("model")
    if parameter is not None and parameter.default in (inspect.Parameter.empty, ""):
        raise ReasonerError(
            f"{type(client).__name__}.chat needs the name of a model: give one, "
            "such as Reasoner(client, model='...')"
        )

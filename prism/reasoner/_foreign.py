"""Clients of other libraries: their calls, replies and exceptions."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, cast

from prism.errors import (
    BadReplyError,
    DecisionsUnsupportedError,
    DeclinedError,
    ReasonerError,
    TimedOutError,
)
from prism.reasoner._faults import (
    is_malformed,
    lacks_decisions,
    lacks_path,
    part_named,
    translated,
)
from prism.reasoner._model_client import (
    Chat,
    ChatReply,
    Choices,
    DecisionReply,
    ModelClient,
    accepted,
    awaited,
    declined_in,
    has,
    of_kind,
    parameters,
    text_with_calls,
)
from prism.reasoner._pool import Pool, SingleFlight
from prism.reasoner._prompts import Kind, Mode
from prism.reasoner._slots import Host
from prism.reasoner._spending import Cost, choice_in, first, loop_time
from prism.statechart.states import state_text
from prism.telemetry.events import MODE_UNKNOWN
from prism.telemetry.loggers import EventLogger, describe, report

PROMPTED = ("chat", "get_response", "run")
"""The methods that take a prompt; the first that a client has is called."""

_COUNTS = (
    ("input_tokens", "prompt_eval_count", "input_token_count", "prompt_tokens"),
    ("output_tokens", "eval_count", "output_token_count", "completion_tokens"),
)

_DROPPABLE = {"think": ("think",), "response_format": ("response_format", "schema", "grammar")}
"""Parts that a request may leave out if a model refuses them, and the words that name them."""

_MOST_RECORDED = 1024 * 1024


class _Call(NamedTuple):
    """A call of a client: its method and its arguments."""

    method: Callable[..., Any]
    given: tuple[Any, ...]
    named: dict[str, Any]


class ForeignHost(Host):
    """A client of another library.

    Three forms of calls are supported: that of ``ollama.AsyncClient`` (a ``chat`` that takes
    messages), that of ``openai.AsyncOpenAI`` (``chat.completions.create``), and a method that
    takes a prompt (``chat``, ``get_response`` or ``run``), as in agent-framework's clients and
    agents. Each gets those of model, schema, seed and ``think=False`` that it accepts, until
    its model refuses them.

    Args:
        client: The client.
        model: Model name, for a client that needs one with every call.
        seed: Seed of the sampling.
        concurrency: Simultaneous questions.
        patience: Seconds to wait for it when it fails.
    """

    def __init__(
        self, client: Any, model: str | None, seed: int | None, concurrency: int, patience: float
    ) -> None:
        kind = type(client).__name__
        super().__init__(kind, model or "the model", concurrency, patience)
        self._client = client
        self._model = model
        self._seed = seed
        self._dropped: set[str] = set()
        self._shape = self._shape_of(client)

    async def chat(self, chat: Chat, cost: Cost) -> ChatReply:
        """Send a conversation, and again without each part that the model refuses.

        Raises:
            BadReplyError: If the reply has no text, or the model declined to give one.
        """
        seed = None if self._seed is None else self._seed + chat.variation
        while True:
            call = self._shape(chat, seed)
            for part in self._dropped:
                call.named.pop(part, None)
            try:
                reply = await self._sent(call, cost)
            except Exception as error:
                refused = _part_refused(error, call.named)
                if refused is None:
                    self._fail(error)
                self._dropped.add(refused)
                cost.allowance.admitted()
            else:
                text = read_text(reply, cost, chat.schema)
                return ChatReply(text, cost.model or "", cost.host or "")

    def _shape_of(self, client: Any) -> Callable[..., _Call]:
        """Return the form in which a client takes a conversation."""
        if completions_of(client) is not None:
            return self._as_openai
        if has(client, "chat"):
            names, takes_any = parameters(client.chat)
            if "messages" in names or takes_any or not names:
                return self._as_ollama

        return self._as_prompt

    def _as_ollama(self, chat: Chat, seed: int | None) -> _Call:
        ask = self._client.chat
        seeded = self._model is not None and seed is not None
        offered = {
            "messages": chat.messages,
            "format": chat.schema,
            "model": self._model,
            "options": {"seed": seed} if seeded else None,
            # only if it is a named parameter, since a chat with **arguments may not expect it
            "think": False if "think" in parameters(ask)[0] else None,
        }
        return _Call(ask, (), accepted(ask, offered))

    def _as_openai(self, chat: Chat, seed: int | None) -> _Call:
        named: dict[str, Any] = {"model": self._model, "messages": list(chat.messages)}
        if seed is not None:
            named["seed"] = seed
        if chat.schema is not None:
            said = {"name": "answer", "schema": chat.schema}
            named["response_format"] = {"type": "json_schema", "json_schema": said}

        return _Call(completions_of(self._client).create, (), named)

    def _as_prompt(self, chat: Chat, seed: int | None) -> _Call:
        name = next(name for name in PROMPTED if has(self._client, name))
        ask = getattr(self._client, name)
        (message,) = chat.messages
        # the form in which agent-framework's clients and agents take schema and seed
        takes_options = name != "chat" and {"messages", "options"} <= set(parameters(ask)[0])
        options = {"response_format": chat.schema, "seed": seed}
        known = {name: value for name, value in options.items() if value is not None}

        return _Call(ask, (message["content"],), {"options": known} if takes_options else {})

    async def systemone(self, asked: Choices, cost: Cost) -> DecisionReply:
        """Ask a decision model choice questions about one state.

        Returns:
            The reply. The probabilities of unanswered questions are None.

        Raises:
            DecisionsUnsupportedError: If the server is too old, or the model is not made for such
                questions.
            BadReplyError: If the reply has no answers.
        """
        offered = {"state": asked.state, "questions": asked.questions, "model": self._model}
        ask = self._client.systemone
        try:
            reply = await self._sent(_Call(ask, (), accepted(ask, offered)), cost)
        except Exception as error:
            if lacks_decisions(error):
                why = f"no decision questions are taken ({error})"
                raise DecisionsUnsupportedError(why) from error
            self._fail(error)

        _note_all(reply, cost)
        answers = first(reply, "answers")
        if not isinstance(answers, Mapping):
            raise BadReplyError(f"the client's reply of type {type(reply).__name__} has no answers")

        found = {name: first(answers.get(name), "probabilities") for name in asked.questions}
        return DecisionReply({name: {"probabilities": chances} for name, chances in found.items()})

    async def decides(self) -> bool:
        """Return True if server and model support decision questions, or only an attempt can tell.

        A client may say so itself; one like ``ollama.AsyncClient`` is asked for the model's
        capabilities.
        """
        if not has(self._client, "systemone"):
            return False
        if has(self._client, "offers_decisions"):
            return bool(await awaited(self._client.offers_decisions()))
        if self._model is None or not has(self._client, "show"):
            return False

        try:
            shown = await awaited(self._client.show(self._model))
        except Exception as error:
            # a server that cannot show a model is not Ollama, but may support decision questions
            if lacks_path(error):
                return True
            raise

        return "decision" in (first(shown, "capabilities") or ())

    async def _sent(self, call: _Call, cost: Cost) -> Any:
        """Return the result of a call."""
        cost.request_began()
        try:
            reply = await awaited(call.method(*call.given, **call.named))
            if cost.trail is not None:
                cost.request_replied(_shown(reply))
            return reply
        except Exception as error:
            cost.request_failed(describe(error))
            raise
        finally:
            cost.request_ended()

    def _fail(self, error: Exception) -> NoReturn:
        """Raise the equivalent of a client's exception, or the same exception."""
        failure = translated(error)
        if failure is error:
            raise error
        raise failure from error


def completions_of(client: Any) -> Any:
    """Return the completions of a client like ``openai.AsyncOpenAI``; None for others."""
    completions = getattr(getattr(client, "chat", None), "completions", None)
    return completions if has(completions, "create") else None


def read_text(reply: Any, cost: Cost, schema: Mapping[str, Any] | None = None) -> str:
    """Return a reply's text, and add the reported usage to its cost.

    Args:
        reply: The reply.
        cost: The cost.
        schema: JSON Schema of what was asked for, which tells whether a tool call may be it.

    Raises:
        BadReplyError: If there is no text in it.
        DeclinedError: If the model declined to answer.
    """
    if type(reply) is str:
        # it reports nothing about itself
        cost.note_reply({})
        return reply

    _note_all(reply, cost)
    if declined := declined_in(reply):
        raise DeclinedError(f"{cost.model or 'the model'} {declined}")

    message = first(choice_in(reply), "message")
    content = first(message, "content") or ""
    calls = first(message, "tool_calls")
    told = text_with_calls(content, calls, schema) if isinstance(content, str) else ""
    return told or _text_of(reply)


def _text_of(reply: Any) -> str:
    for path in ((), ("message", "content"), ("text",), ("content",), ("output",)):
        found = choice_in(reply)
        for name in path:
            found = first(found, name)

        if isinstance(found, str):
            return found

        # agents with typed results return data instead of text
        chosen = first(found, "next_state")
        if chosen is not None:
            return json.dumps({"next_state": state_text(chosen)})

    raise BadReplyError(f"the client's reply of type {type(reply).__name__} has no text")


def _note_all(reply: Any, cost: Cost) -> None:
    cost.model = of_kind(str, first(reply, "model")) or cost.model
    cost.host = of_kind(str, first(reply, "host")) or cost.host
    cost.note_reply(reply, _COUNTS)


def _shown(reply: Any) -> str:
    """Return a client's reply for the record, as JSON if it supports that."""
    if isinstance(reply, str):
        return reply

    as_json = getattr(reply, "model_dump_json", None)
    try:
        text = as_json() if callable(as_json) else json.dumps(reply, default=str)
    except Exception:  # of the user's client, whose repr is enough
        text = repr(reply)

    return str(text)[:_MOST_RECORDED]


def _part_refused(error: Exception, sent: Mapping[str, Any]) -> str | None:
    """Return the part of a request that a refusal names, if it may be left out."""
    return part_named(str(error), _DROPPABLE, sent) if is_malformed(error) else None


def adapt(
    client: Any,
    model: str | None,
    seed: int | None,
    attempts: int = 1,
    concurrency: int = 1,
    patience: float = 0.0,
) -> ModelClient:
    """Return the client itself if it is a `ModelClient`, or else a pool with it as the only host.

    Args:
        client: A client that passed `check_client`.
        model: Model name, for a client that needs one with every call.
        seed: Seed of the sampling, if the client takes one.
        attempts: Maximum number of requests for one question, if the client has no retries of its
            own.
        concurrency: Simultaneous questions, if it has no slots of its own.
        patience: Seconds to wait for it when it fails, if it has no slots of its own.
    """
    if has_slots(client):
        return cast("ModelClient", client)

    asks_again = of_kind(int, getattr(client, "max_retries", None))
    host = ForeignHost(client, model, seed, concurrency, patience)
    return Pool([host], model or "", attempts=1 if asks_again else attempts)


def has_slots(client: Any) -> bool:
    """Return True if a client manages slots itself: it has a limit, and accepts a cost."""
    if not getattr(client, "concurrency", None):
        return False

    methods = [getattr(client, name, None) for name in ("chat", "systemone")]
    return all(callable(method) and "cost" in parameters(method)[0] for method in methods)


def check_client(client: object, *, only_decides: bool = False) -> None:
    """Refuse a client that cannot be asked.

    Args:
        client: The client.
        only_decides: Whether it would be asked decision questions and nothing else.

    Raises:
        ReasonerError: If it has none of ``chat``, ``get_response`` and ``run``, lacks the
            ``systemone`` that decision questions need, or is Ollama's blocking client.
    """
    kind = type(client).__name__
    if _blocks(client):
        raise ReasonerError(
            f"{kind} stops the event loop while it waits for an answer: use {_blocks(client)}"
        )

    if only_decides:
        if not has(client, "systemone"):
            raise ReasonerError(
                f"mode 'decision' needs a client with an async method systemone; {kind} has none"
            )
    elif completions_of(client) is None and not any(has(client, name) for name in PROMPTED):
        raise ReasonerError(
            f"a Reasoner's client needs an async method chat, get_response or run; {kind} has none"
        )


def check_model(client: object, model: str | None, *, only_decides: bool = False) -> None:
    """Refuse a client that needs a model name with every call if there is none.

    Args:
        client: The client.
        model: Model name, if one is given.
        only_decides: Whether it would be asked decision questions and nothing else.

    Raises:
        ReasonerError: If there is no name, and the client's method needs one.
    """
    name = "systemone" if only_decides else "chat"
    completions = None if only_decides else completions_of(client)
    method = getattr(client, name, None) if completions is None else completions.create
    if model or not callable(method):
        return

    parameter = inspect.signature(method).parameters.get("model")
    if parameter is not None and parameter.default in (inspect.Parameter.empty, ""):
        kind = type(client).__name__
        raise ReasonerError(
            f"{kind}.{name} needs the name of a model: give one, "
            "such as Reasoner(client, model='...')"
        )


def require_model(client: object, model: str | None) -> None:
    """Refuse to keep answers whose model is unknown."""
    if model is None and not isinstance(getattr(client, "model", None), str):
        raise ReasonerError(
            f"a cache keeps answers by model, but {type(client).__name__} names none: give "
            "Reasoner a model, any name that stands for the model and all else that the answers "
            "depend on"
        )


def depends_on(client: Any, model: str | None, seed: int) -> list[Any]:
    """Return what a reply depends on besides the question, if the client reveals it."""
    settings = [getattr(client, name, None) for name in ("model", "temperature", "seed", "think")]
    return [
        model,
        seed,
        *(value if isinstance(value, (str, int, float)) else None for value in settings),
    ]


def _blocks(client: object) -> str:
    """Return the asynchronous client to use instead of a blocking one; empty if it is not."""
    makers = {base.__module__.partition(".")[0] for base in type(client).__mro__}
    is_async = any(base.__name__.startswith("Async") for base in type(client).__mro__)
    if is_async or inspect.iscoroutinefunction(getattr(client, "chat", None)):
        return ""

    asynchronous = {"ollama": "ollama.AsyncClient", "openai": "openai.AsyncOpenAI"}
    return next((asynchronous[maker] for maker in makers if maker in asynchronous), "")


# Decisions or chats

LONGEST_LOOK_SECONDS = 10.0
"""Seconds to wait for a server to say whether it supports decisions, which needs no model."""

_REST_AFTER_LOOK = 10
"""Factor from the duration of a failed look to the wait before the next one."""


def kind_by(mode: Mode, client: Any) -> Kind | None:
    """Return the kind of request in a mode, or None if the server decides."""
    if mode != "auto":
        return mode
    return None if callable(getattr(client, "systemone", None)) else "chat"


class ModeFinder:
    """Finds out what a client's server and model support, once for all callers.

    Args:
        client: The client.
        logger: Where to report the first failure.
    """

    def __init__(self, client: ModelClient, logger: EventLogger | None) -> None:
        self._client = client
        self._logger = logger
        self._looks: SingleFlight[Kind] = SingleFlight()
        self._next_look = 0.0
        self._has_reported = False

    async def find(self, seconds: float) -> Kind | None:
        """Return the kind of request, or None if it cannot be found out now.

        Args:
            seconds: The time limit.
        """
        if loop_time() < self._next_look:
            return None

        began = loop_time()
        look = await self._looks.do("kind", lambda _cost: self._look(seconds))
        if look.error is None:
            return look.result

        # a server that hangs must not delay every decision
        ended = loop_time()
        self._next_look = max(self._next_look, ended + _REST_AFTER_LOOK * (ended - began))
        if not self._has_reported:
            self._has_reported = True
            report(self._logger, "warning", MODE_UNKNOWN, error=describe(look.error))

        return None

    async def _look(self, seconds: float) -> Kind:
        limit = min(seconds, LONGEST_LOOK_SECONDS)
        try:
            async with asyncio.timeout(limit) as timer:
                return "decision" if await self._client.offers_decisions() else "chat"
        except Exception as error:
            if timer.expired():
                raise TimedOutError(f"no answer within {limit:g} s") from error
            raise

"""Asking a client within limits, as a `Reasoner` and a `Writer` do; clients of other libraries."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, TypedDict

from prism.errors import (
    BudgetSpentError,
    FieldTypeError,
    FieldValueError,
    LLMError,
    ReasonerError,
    TimedOutError,
)
from prism.reasoner._calls import Call, ClientServer, accepted, has, of_kind, parameters
from prism.reasoner._replies import USUAL_TRIES, ChatReply, Request, ResultT, answered
from prism.reasoner._slots import Pool
from prism.reasoner._spending import Budget, Cost, PriceOf, loop_time, require_positive
from prism.reasoner._words import count_tokens
from prism.telemetry.loggers import EventLogger

DEFAULT_CONCURRENCY = 16
DEFAULT_ATTEMPTS = 3


@dataclass(slots=True)
class Outcome(Generic[ResultT]):
    """The result of a call: a result or the exception that was raised, and the cost.

    Args:
        cost: The cost.
        result: The result, if there is one.
        error: The exception, if any.
    """

    cost: Cost
    result: ResultT | None = None
    error: Exception | None = None
    _is_charged: bool = False

    def charge(self) -> Cost:
        """Return the cost to the first caller; to all others the cost without its charges."""
        if self._is_charged:
            return self.cost.without_charges()

        self._is_charged = True
        return self.cost


class SingleFlight(Generic[ResultT]):
    """Open calls by their questions: equal ones are made once, and end with the last who waits."""

    def __init__(self) -> None:
        self._open: dict[Hashable, asyncio.Task[Outcome[ResultT]]] = {}
        self._waiting: Counter[asyncio.Task[Outcome[ResultT]]] = Counter()

    async def do(
        self, key: Hashable, make: Callable[[Cost], Coroutine[Any, Any, ResultT]]
    ) -> Outcome[ResultT]:
        """Return the outcome of a call, which is made unless an equal one is open."""
        task = self._open.get(key)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._open[key] = asyncio.create_task(_outcome_of(make))
        self._waiting[task] += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting[task] -= 1
            if not self._waiting[task]:
                del self._waiting[task]
                if self._open.get(key) is task:
                    del self._open[key]
                # whoever is cancelled waits until the call has ended, too
                if not task.done():
                    task.cancel()
                    await asyncio.wait([task])


async def _outcome_of(make: Callable[[Cost], Coroutine[Any, Any, ResultT]]) -> Outcome[ResultT]:
    cost = Cost()
    try:
        return Outcome(cost, await make(cost))
    except Exception as error:
        return Outcome(cost, error=error)
    except asyncio.CancelledError as error:
        failure = LLMError("the client cancelled its own call")
        failure.__cause__ = error
        return Outcome(cost, error=failure)


# Limits


class Limits(TypedDict, total=False):
    """The limits for asking a client; see `Reasoner`."""

    model: str | None
    timeout: float
    concurrency: int | None
    attempts: int | None
    patience: float | None
    seed: int
    budget: Budget | None
    logger: EventLogger | None


class AsksModel:
    """Asks a client within limits; see `Reasoner` for the arguments.

    Attributes:
        client: The client that is asked.
        pool: The servers: the client's own, or the client as the only one.
        concurrency: Number of simultaneous requests that are worthwhile.
        budget: The budget.
        named: The model name given for the client.
        price_of: Returns the money that tokens cost; None without a `Model`, which has prices.
    """

    def __init__(
        self,
        client: Any,
        *,
        model: str | None = None,
        timeout: float = 120.0,
        concurrency: int | None = None,
        attempts: int | None = None,
        patience: float | None = None,
        seed: int = 0,
        budget: Budget | None = None,
        logger: EventLogger | None = None,
    ) -> None:
        require_positive(timeout=timeout, concurrency=concurrency, attempts=attempts)
        self.price_of: PriceOf | None = None
        # of its class, since a mock of a client has a method of any name
        if has(client.__class__, "as_client"):
            # a Model
            model = model or client.model or None
            patience = client.patience if patience is None else patience
            self.price_of = client.price_of
            client = client.as_client()
        if isinstance(client, Pool):
            _refuse_limits(client, concurrency=concurrency, attempts=attempts)
            self.pool: Pool = client
        else:
            check_client(client)
            check_model(client, model)
            tries_again = of_kind(int, getattr(client, "max_retries", None))
            limit = concurrency or DEFAULT_CONCURRENCY
            server = ForeignServer(client, model, seed, limit, patience or 0.0)
            tries = 1 if tries_again else attempts or DEFAULT_ATTEMPTS
            self.pool = Pool([server], model or "", attempts=tries)

        self.client: Any = client
        self.concurrency: int = self.pool.concurrency
        if not isinstance(budget, Budget | None):
            raise FieldTypeError(f"budget must be a Budget(max_calls=...), got {budget!r}")
        self.budget: Budget = budget or Budget()
        self.named: str | None = model
        # a server samples by default
        self._samples: bool = getattr(client, "temperature", None) != 0
        self._timeout, self._seed = timeout, seed
        self._model: str | None = model or of_kind(str, getattr(client, "model", None))
        self._logger = logger

    async def close(self) -> None:
        """Close the connections of a model's servers; the next question makes new ones."""
        if isinstance(self.client, Pool):
            await self.client.close()

    async def ask(self, request: Request[ResultT], cost: Cost, tries: int = USUAL_TRIES) -> ResultT:
        """Return what a model's reply says; a useless one is asked for again in other words.

        Args:
            request: The request.
            cost: Collects the cost, however the request ends.
            tries: How often to ask.

        Raises:
            LLMError: If there is no reply that can be used.
        """
        began = perf_counter()
        cost.model, cost.budget = self._model, self.budget
        last_reply = ""

        async def ask(wording: Request[ResultT]) -> ResultT:
            nonlocal last_reply
            asked_before = cost.attempts
            if request.attempts is not None and asked_before >= request.attempts:
                raise LLMError("no request is left")
            try:
                reply = await self._sent(wording, cost)
            finally:
                if wording is not request and cost.attempts > asked_before:
                    cost.repaired = True
                    cost.repairs.append({"reply": last_reply, "prompt": wording.text})
            last_reply = reply.text
            if cost.input_tokens is None:
                # its server reports no tokens, so those that it has read are estimated
                self.budget.add(tokens=count_tokens(wording.text))
            return wording.read(reply)

        try:
            return await answered(request, ask, tries)
        except LLMError as error:
            cost.host = cost.host or error.host or None
            raise
        finally:
            cost.settle(perf_counter() - began)
            cost.price(self.price_of)

    async def _sent(self, request: Request[Any], cost: Cost) -> ChatReply:
        """Return the reply to a request within its time, which counts from its slot on."""
        if (spent := self.budget.spent()) is not None:
            raise BudgetSpentError(spent)

        timer = asyncio.timeout(self.budget.seconds_left())

        def start() -> None:
            # a retry gets another slot within the same time
            cost.on_slot = None
            left = self.budget.seconds_left()
            limit = self._timeout if left is None else min(left, self._timeout)
            timer.reschedule(loop_time() + limit)

        cost.on_slot = start
        try:
            async with timer:
                return await self.pool.ask(request, cost)
        except TimeoutError as error:
            if not timer.expired():
                raise
            if (spent := self.budget.spent()) is not None:
                raise BudgetSpentError(spent) from error
            if cost.attempts < (request.attempts or 0):
                return await self._sent(request, cost)
            why = f": {self.pool.trouble}" if self.pool.trouble else ""
            raise TimedOutError(f"no answer within {self._timeout:g} s{why}") from error


def _refuse_limits(pool: Pool, **limits: int | None) -> None:
    """Refuse limits for servers that have their own and would ignore them.

    Raises:
        FieldValueError: If one is given.
    """
    for name, value in limits.items():
        if value is not None:
            problem = f"{name} must be omitted, got {value!r}: set it on the Model"
            raise FieldValueError(f"{problem}, {type(pool).__name__} has its own")


# Clients of other libraries

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
        options = {"response_format": request.schema, "seed": seed}
        present = {key: value for key, value in options.items() if value is not None}
        takes_options = name != "chat" and {"messages", "options"} <= set(names)
        (message,) = request.messages
        return Call(ask, (message["content"],), {"options": present} if takes_options else {})

    def _of_openai(
        self, create: Callable[..., Any], request: Request[Any], seed: int | None
    ) -> Call:
        schema = {"name": "answer", "schema": request.schema}
        offered = {
            "model": self._model,
            "messages": list(request.messages),
            "seed": seed,
            "response_format": request.schema and {"type": "json_schema", "json_schema": schema},
            **self.chances_of(request),
        }
        return Call(create, (), {key: part for key, part in offered.items() if part is not None})

    def _of_ollama(self, ask: Callable[..., Any], request: Request[Any], seed: int | None) -> Call:
        offered = {
            "messages": request.messages,
            "format": request.schema,
            "model": self._model,
            "options": {"seed": seed} if self._model and seed is not None else None,
            **self.chances_of(request),
        }
        return Call(ask, (), accepted(ask, offered))


def gives_chances(client: Any) -> bool:
    """Return whether a client can be asked for log-probabilities."""
    method = _chat_of(client)
    takes_them = callable(method) and "logprobs" in parameters(method)[0]
    return takes_them or isinstance(client, Pool)


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
    method = _chat_of(client)
    if model or not callable(method):
        return

    parameter = inspect.signature(method).parameters.get("model")
    if parameter is not None and parameter.default in (inspect.Parameter.empty, ""):
        raise ReasonerError(
            f"{type(client).__name__}.chat needs the name of a model: give one, "
            "such as Reasoner(client, model='...')"
        )

"""Asking a client within limits: what a `Reasoner` and a `Writer` have in common."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, TypedDict

from prism.errors import (
    BudgetSpentError,
    FieldValueError,
    LLMError,
    ReasonerError,
)
from prism.reasoner._calls import has, of_kind
from prism.reasoner._clients import ForeignServer, check_client, check_model
from prism.reasoner._requests import USUAL_TRIES, ChatReply, Request, ResultT, answered
from prism.reasoner._slots import Pool
from prism.reasoner._spending import Budget, Clock, Cost, loop_time, require_positive
from prism.telemetry.loggers import EventLogger

DEFAULT_CONCURRENCY = 16
DEFAULT_ATTEMPTS = 3

BUDGET_LOGGER: logging.Logger = logging.getLogger("prism.statechart.budget")
"""The logger for warnings of a budget that are given once and change no log."""


# Equal requests


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


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request that has no reply yet.

    Args:
        text: The prompt.
        model: Name of the model, if it is known.
        since: When it was sent, on the clock of the event loop.
    """

    text: str
    model: str | None
    since: float


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
        records: Whether the cost of an answer has its separate requests.
        trial: The cost of trying its servers before a run, which no decision or text has.
        open: The open requests; other threads may copy it.
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
        client, model, patience = _opened(client, model, patience)
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
        self.budget: Budget = budget or Budget()
        self.named: str | None = model
        self.records = False
        self.trial: Cost = Cost()
        self.open: dict[int, OpenRequest] = {}
        # a server samples by default
        self._samples: bool = getattr(client, "temperature", None) != 0
        self._timeout, self._seed = timeout, seed
        self._model: str | None = model or of_kind(str, getattr(client, "model", None))
        self._has_warned = False
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
        if self.records:
            cost.trail = []
        self.open[id(cost)] = OpenRequest(request.text, self._model, loop_time())

        async def ask(wording: Request[ResultT]) -> ResultT:
            asked_before = cost.attempts
            try:
                return wording.read(await self._sent(wording, cost))
            finally:
                if wording is not request and cost.attempts > asked_before:
                    cost.repaired = True

        try:
            return await answered(request, ask, tries)
        except LLMError as error:
            cost.host = cost.host or error.host
            raise
        finally:
            del self.open[id(cost)]
            cost.settle(perf_counter() - began)
            self._look_for_tokens(cost)

    async def _sent(self, request: Request[Any], cost: Cost) -> ChatReply:
        """Return the reply to a request, within the time that one has."""
        if (spent := self.budget.spent()) is not None:
            raise BudgetSpentError(spent)

        clock = Clock(self._timeout, self.budget, lambda: self.pool.trouble)
        cost.on_slot = clock.start
        async with clock:
            return await self.pool.ask(request, cost)

    def _look_for_tokens(self, cost: Cost) -> None:
        """Warn once that a limit on tokens has no effect if the server does not report them."""
        limit = self.budget.max_tokens
        is_told = (cost.input_tokens, cost.output_tokens) != (None, None)
        if limit is None or self._has_warned or is_told or not cost.attempts:
            return

        self._has_warned = True
        BUDGET_LOGGER.warning(
            "%s%s reports no token counts, so the limit of %d tokens has no effect on it: "
            "set a limit on calls",
            cost.model or type(self.client).__name__,
            f" at {cost.host}" if cost.host else "",
            limit,
        )


def _opened(
    client: Any, model: str | None, patience: float | None
) -> tuple[Any, str | None, float | None]:
    """Return the client to ask, the name of its model if it needs one, and the patience.

    Raises:
        ReasonerError: If it is the text of a model.
    """
    if isinstance(client, str):
        raise ReasonerError("a text is not a model: pass prism.llm.Model.of(text)")
    # of its class, since a mock of a client has a method of any name
    if not has(client.__class__, "as_client"):
        return client, model, patience

    # a Model, whose own servers know their model and their patience
    opened = client.as_client()
    if isinstance(opened, Pool):
        return opened, model, patience
    return opened, model or client.model or None, client.patience if patience is None else patience


def _refuse_limits(pool: Pool, **limits: int | None) -> None:
    """Refuse limits for servers that have their own and would ignore them.

    Raises:
        FieldValueError: If one is given.
    """
    for name, value in limits.items():
        if value is not None:
            problem = f"{name} must be omitted, got {value!r}: set it on the Model"
            raise FieldValueError(f"{problem}, {type(pool).__name__} has its own")

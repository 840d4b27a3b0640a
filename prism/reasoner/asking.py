"""Asking a model within limits, as a `Reasoner` and a `Writer` do; equal requests are made once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, TypedDict, TypeVar

from prism.errors import BudgetSpentError, FieldTypeError, FieldValueError, LLMError, TimedOutError
from prism.reasoner.clients import ForeignServer, check_client, check_model, has
from prism.reasoner.pool import Pool
from prism.reasoner.requests import (
    USUAL_TRIES,
    Budget,
    ChatReply,
    Cost,
    Prices,
    Request,
    answered,
    count_tokens,
    loop_time,
    of_kind,
    require_positive,
)
from prism.telemetry.loggers import EventLogger, synchronous

ResultT = TypeVar("ResultT")

DEFAULT_SECONDS = 120.0

DEFAULT_CONCURRENCY = 16

DEFAULT_ATTEMPTS = 3


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
        model_name: The name of the model, if the client needs one.
        prices: The prices of tokens, of which only a `Model` has some.
    """

    def __init__(
        self,
        client: Any,
        *,
        model: str | None = None,
        timeout: float | None = None,
        concurrency: int | None = None,
        attempts: int | None = None,
        patience: float | None = None,
        seed: int = 0,
        budget: Budget | None = None,
        logger: EventLogger | None = None,
    ) -> None:
        require_positive(timeout=timeout, concurrency=concurrency, attempts=attempts)
        self.prices: Prices = (None, None)
        # a method of its class, since a mock has a method of any name
        if has(client.__class__, "as_client"):
            # a Model
            model = model or client.model or None
            patience = client.patience if patience is None else patience
            self.prices = client.prices
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
        self.model_name: str | None = model
        # a server samples by default
        self._samples: bool = getattr(client, "temperature", None) != 0
        self._timeout: float = timeout or max(DEFAULT_SECONDS, 2 * self.pool.reply_seconds)
        self._seed = seed
        self._model: str | None = model or of_kind(str, getattr(client, "model", None))
        self._logger = synchronous(logger)

    async def ask(self, request: Request[ResultT], cost: Cost, tries: int = USUAL_TRIES) -> ResultT:
        """Ask a model, and again in other words if its reply is useless; return the reply's value.

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
            attempts_before = cost.attempts
            if request.attempts is not None and attempts_before >= request.attempts:
                raise LLMError("no request is left")
            try:
                reply = await self._sent(wording, cost)
            finally:
                if wording is not request and cost.attempts > attempts_before:
                    cost.repaired = True
                    cost.repairs.append({"reply": last_reply, "prompt": wording.text})
            last_reply = reply.text
            if cost.input_tokens is None:
                # the server reports no tokens: estimate those of the prompt
                self.budget.add(tokens=count_tokens(wording.text))
            return wording.read(reply)

        try:
            return await answered(request, ask, tries)
        except LLMError as error:
            cost.host = cost.host or error.host or None
            raise
        finally:
            cost.settle(perf_counter() - began)
            cost.price(self.prices)

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


class AskedOnce(Generic[ResultT]):
    """Equal calls by key: those that are open share one, whose result may be kept for later ones.

    A call is cancelled when nobody waits for it.

    Args:
        keeps: Whether results are kept, as those of a model that does not sample.
    """

    def __init__(self, *, keeps: bool = False) -> None:
        self.keeps: bool = keeps
        self._kept: dict[Hashable, ResultT] = {}
        self._open: dict[Hashable, asyncio.Task[Outcome[ResultT]]] = {}
        self._waiting: Counter[asyncio.Task[Outcome[ResultT]]] = Counter()

    def kept(self, key: Hashable) -> ResultT | None:
        """Return the kept result of an equal call, if there is one."""
        return self._kept.get(key)

    def keep(self, key: Hashable, result: ResultT) -> None:
        """Keep a result for equal calls, if results are kept at all."""
        if self.keeps:
            self._kept[key] = result

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
                # the last waiter, when cancelled, waits for the end of the call
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


async def all_of(awaitables: Iterable[Awaitable[Any]]) -> list[Any]:
    """Await several things at once; if one raises, the others are cancelled and awaited."""
    several = [*awaitables]
    if len(several) == 1:
        return [await several[0]]

    tasks = [asyncio.ensure_future(each) for each in several]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise

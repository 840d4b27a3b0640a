"""Asking a model on its servers within limits; equal requests are made once.

A pool is a queue of slots: a question takes one, and gives it back with its answer.

A server has a slot for each question that it answers at once. After a failure its slot stays away
for a pause, and pauses grow, so that a failing server is asked less and less until it answers
again; a busy server says itself how long. A server that does not answer in time loses half of its
slots. There is no other limit, balance or circuit breaker.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import Counter
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from operator import itemgetter
from time import perf_counter
from typing import Any, ClassVar, Generic, TypedDict, TypeVar

from prism.errors import (
    BudgetSpentError,
    CircuitOpenError,
    FieldTypeError,
    FieldValueError,
    LLMError,
    ModelMissingError,
    TimedOutError,
)
from prism.reasoner.clients import ForeignServer, check_client, check_model, has
from prism.reasoner.faults import OtherLoopError, is_retryable, may_be_an_outage
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
from prism.reasoner.servers import Server
from prism.telemetry.loggers import EventLogger, synchronous

ResultT = TypeVar("ResultT")

DEFAULT_SECONDS = 120.0

DEFAULT_CONCURRENCY = 16

DEFAULT_ATTEMPTS = 3


# Slots


class Slots:
    """The slots of some servers, and the questions that wait for one.

    Attributes:
        waiting: The questions that wait, in order.
    """

    def __init__(self) -> None:
        self._tickets = count()
        self.waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def take(self, able: Collection[Server], cost: Cost) -> Server:
        """Take a slot of the least failing, least busy of these servers, as soon as one is free.

        Raises:
            CircuitOpenError: If all of them are given up.
        """
        ticket = next(self._tickets)
        while not (free := [each for each in able if each.has_room]):
            if all(each.is_given_up for each in able):
                why = "; ".join(each.trouble for each in able)
                raise CircuitOpenError(f"circuit open after repeated failures: {why}")
            await self._wait(ticket)

        # the least failing, then one that has answered, then the least busy
        server = min(
            free, key=lambda each: (each.failures, not each.answers, each.open / each.limit)
        )
        server.open += 1
        if cost.on_slot is not None:
            cost.on_slot()
        return server

    async def _wait(self, ticket: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # a question that was woken in vain returns to its position in the queue
        insort(self.waiting, (ticket, turn), key=itemgetter(0))
        try:
            await turn
        except asyncio.CancelledError:
            self.waiting = [each for each in self.waiting if each[1] is not turn]
            # pass the turn on
            self.wake(1 if turn.done() and not turn.cancelled() else 0)
            raise

    def give_back(self, server: Server, pause: float = 0.0) -> None:
        """Give a slot back, free after a pause."""
        server.open -= 1
        if not pause:
            # several, if the server has just begun to answer again
            self.wake(server.limit - server.open - server.pausing)
            return

        self.pause(server, pause)

    def pause(self, server: Server, seconds: float) -> None:
        """Keep a slot of a server back for some seconds."""
        loop = asyncio.get_running_loop()
        server.pausing += 1
        loop.call_later(seconds, self._end_pause, server)
        # questions fail once there is nothing left to wait for: now, or after the patience
        if server.is_given_up:
            self.wake(len(self.waiting))
        elif server.is_gone:
            left = server.failing_since + server.patience - loop_time()
            loop.call_later(left, lambda: self.wake(len(self.waiting)))

    def _end_pause(self, server: Server) -> None:
        server.pausing -= 1
        self.wake(server.limit)

    def wake(self, number: int) -> None:
        """Let the first questions in the queue look for a slot again."""
        while number > 0 and self.waiting:
            _, turn = self.waiting.pop(0)
            if not turn.done():
                turn.set_result(None)
                number -= 1


class Pool:
    """One model on some servers.

    After a temporary failure a question is asked again, on another server if there is one. When its
    attempts are used up, it goes on waiting while the server answers nobody, within its patience;
    if the server has answered another question meanwhile, this one fails. A question that a server
    refuses, or answers uselessly, is sent to one other server; if that one answers it, the first
    server has failed.

    Args:
        servers: The servers.
        model: Name of the model.
        attempts: Requests for one question in case of temporary failures.

    Attributes:
        concurrency: Questions that all servers together answer at once.
        reply_seconds: Seconds that a server may take for one reply; 0 if it has no such limit.
    """

    reply_seconds: float = 0.0
    sends_schemas: ClassVar[bool] = False
    """Whether the schema of a request goes to the servers, which follow it."""

    def __init__(self, servers: Iterable[Server], model: str, *, attempts: int = 3) -> None:
        self.servers: tuple[Any, ...] = tuple(servers)
        self.model: str = model
        self.concurrency: int = sum(each.limit for each in self.servers)
        self._attempts = attempts
        self._slots = Slots()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open = 0

    @property
    def waiting(self) -> int:
        """Number of questions that wait for a slot."""
        return len(self._slots.waiting)

    @property
    def trouble(self) -> str:
        """The last failure of each server that is failing."""
        return "; ".join(each.trouble for each in self.servers if each.failures)

    async def chat(
        self,
        messages: Any,
        *,
        format: dict[str, Any] | None = None,  # noqa: A002 - as Ollama names it
        cost: Cost | None = None,
    ) -> ChatReply:
        """Send a conversation.

        Args:
            messages: ``{"role": ..., "content": ...}``, oldest first.
            format: JSON schema that the reply must follow.
            cost: Collects the cost.

        Raises:
            LLMError: If no server answers.
        """
        return await self.ask(Request(messages, format), cost or Cost())

    async def ask(self, request: Request[Any], cost: Cost) -> ChatReply:
        """Send a request, to another server too if the reply of the first is useless.

        Args:
            request: The request.
            cost: Collects the cost.

        Raises:
            LLMError: If no server answers.
        """
        with self.entered():
            return await _Asking(self._slots, self._attempts, request, cost).answer(self.servers)

    @property
    def sampling(self) -> dict[str, Any]:
        """The parameters of sampling that the servers accept."""
        sent = ((each.dropped, *item) for each in self.servers for item in each.sampling.items())
        return {name: value for dropped, name, value in sent if name not in dropped}

    async def smallest_window(self) -> int | None:
        """Return the smallest window that questions have on any server; None if unknown."""
        return None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count a question of this event loop inside the block.

        Raises:
            OtherLoopError: If another loop has open questions.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._open and self._loop is not None and not self._loop.is_closed():
                cure = "make one client for each event loop"
                raise OtherLoopError(f"the client is in use by another event loop: {cure}")
            self._loop, self._open, self._slots = loop, 0, Slots()
            for server in self.servers:
                server.open = server.pausing = 0
                server.busy_until = 0.0

        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


class _Asking:
    """One question on its way through the servers of a pool."""

    def __init__(self, slots: Slots, attempts: int, request: Request[Any], cost: Cost) -> None:
        self._slots = slots
        limit = request.attempts
        self._attempts = attempts if limit is None else limit - cost.attempts
        self._request, self._cost = request, cost
        self._tries = 0
        self._answers_before: dict[Server, int] = {}

    async def answer(self, servers: Sequence[Server]) -> ChatReply:
        """Return the first good answer of a server, or else the first useless one."""
        left, doubted = list(servers), None
        has_others, lacks = len(servers) > 1, self._request.lacks
        while True:
            try:
                server, outcome = await self._outcome(left)
            except LLMError as error:
                if doubted is None or isinstance(error, BudgetSpentError):
                    raise
                return _result(doubted[1])

            if not isinstance(outcome, LLMError) and not (has_others and lacks(outcome)):
                server.answered()
                if doubted is not None:
                    # its answer was useless, and another server's is not
                    useless = of_kind(LLMError, doubted[1]) or LLMError("gave no valid answer")
                    doubted[0].failed(useless, loop_time())
                return outcome

            others = [each for each in left if each is not server]
            # prefer one that has given a good answer
            left = [each for each in others if each.answers] or others
            if isinstance(outcome, ModelMissingError) and left and doubted is None:
                server.failed(outcome, loop_time())
            elif doubted is not None or not left:
                return _result(outcome if doubted is None else doubted[1])
            else:
                doubted = server, outcome
            self._slots.pause(server, server.backoff(server.failures + 1))

    async def _outcome(self, able: Sequence[Server]) -> tuple[Server, ChatReply | LLMError]:
        """Return the reply or the refusal of a server, after retries of temporary failures.

        Raises:
            LLMError: If it fails too often.
        """
        pause = 0.0
        while True:
            # another server is asked at once
            if pause and len(able) == 1:
                await asyncio.sleep(pause)
            server = await self._slots.take(able, self._cost)
            pause, sent_at = 0.0, loop_time()
            answers_before = self._answers_before.setdefault(server, server.answers)
            try:
                return server, await server.chat(self._request, self._cost)
            except BudgetSpentError:
                raise
            except LLMError as error:
                # a server that has never answered refuses the question: it is not down
                is_down = server.patience and server.answers and may_be_an_outage(error)
                # a request that says how often to ask means it of any failure
                is_wanted = self._request.attempts and type(error) is LLMError and not error.status
                if not (is_retryable(error) or is_down or is_wanted):
                    return server, error
                pause = server.failed(error, sent_at)
                self._tries += 1
                is_the_questions = server.answers > answers_before
                may_wait = not is_the_questions and any(each.is_waited_for for each in able)
                is_over = self._tries >= self._attempts and not may_wait
                if is_over or all(each.is_given_up for each in able):
                    raise
            finally:
                self._slots.give_back(server, pause)


def _result(outcome: ChatReply | LLMError) -> ChatReply:
    if isinstance(outcome, LLMError):
        raise outcome
    return outcome


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
                # the server reports no tokens: estimate them
                self.budget.add(tokens=count_tokens(wording.text + reply.text))
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

"""Putting requests to a client, within the limits of time and budget; equal ones are put once.

In mode ``auto``, whether the client takes decisions or chats is found out with the first request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping
from dataclasses import dataclass
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from prism.errors import BudgetSpentError, LLMError, ReasonerError, TimedOutError
from prism.statechart.reasoner._clients import takes_check
from prism.statechart.reasoner._cost import Budget, Cost
from prism.statechart.reasoner._model_client import ChoiceReply, ModelClient, Reply, TextReply
from prism.statechart.reasoner._prompts import (
    MOST_DECISION_BYTES,
    MOST_REASON_CHARACTERS,
    Kind,
    Request,
    answer_schema,
)
from prism.statechart.reasoner._replies import (
    parse_reasoner_response,
    read_probabilities,
    read_reason,
)
from prism.telemetry._loggers import EventLogger, describe, report_warning
from prism.telemetry.events import MODE_UNKNOWN

if TYPE_CHECKING:
    from asyncio import Semaphore, Task, Timeout


ResultT = TypeVar("ResultT")

BUDGET_LOGGER: logging.Logger = logging.getLogger("prism.statechart.budget")
"""Where a budget's warnings go that are given once; no log is other for them."""


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A prompt to be answered by a text.

    Args:
        text: The prompt.
        schema: JSON Schema of the answer, if it is to be JSON.
        lacks: Returns 0 for a reply that can be used, else 1.
    """

    text: str
    schema: dict[str, Any] | None
    lacks: Callable[[TextReply], int]

    @property
    def size(self) -> int:
        """No server refuses a prompt by its length: what a model cannot read it cuts off."""
        return 0


class Dispatcher:
    """Puts requests to a client; a request that is under way is not put again, but waited for.

    Args:
        client: What to ask.
        concurrency: Requests under way at once; None for a client with slots of its own.
        timeout: Seconds that an answer may take, retries included, from getting a slot.
        budget: What may be spent.
        model: Model asked, where known.

    Attributes:
        is_recorded: Whether the requests are kept one by one, in `Cost.trail`.
    """

    def __init__(
        self,
        client: ModelClient,
        concurrency: int | None,
        timeout: float,
        budget: Budget,
        *,
        model: str | None,
    ) -> None:
        self._client = client
        self._checks_chats = takes_check(client.chat)
        self._checks_decisions = takes_check(client.systemone)
        self._concurrency = concurrency
        self._timeout = timeout
        self._budget = budget
        self._model = model
        self._flights: SingleFlight[Reply] = SingleFlight()
        self._slots: tuple[Any, Semaphore] | None = None
        self._is_told = False
        self.is_recorded: bool = False

    def put(self, request: Request, identity: str) -> Flight[Reply]:
        """Put a request, or join an equal one that is under way; `leave` it in the end.

        Args:
            request: What to ask.
            identity: What it asks; equal requests at the same time have the same outcome.
        """
        return self._flights.join(identity, lambda cost: self._reply(request, cost))

    async def ask(self, request: TextRequest, cost: Cost) -> str:
        """Put a prompt that nobody else shares, and return what is said.

        Args:
            request: What to ask.
            cost: Where to add what it costs, however it ends.
        """
        return (await self._reply(request, cost)).text

    async def leave(self, flights: Iterable[Flight[Reply]]) -> None:
        """Note that the outcomes of some requests are not waited for any more."""
        await self._flights.leave(flights)

    def seconds_allowed(self) -> float:
        """Return the seconds that an answer may take now."""
        left = self._budget.seconds_left()
        return self._timeout if left is None else min(left, self._timeout)

    async def _reply(self, request: Request | TextRequest, cost: Cost) -> Reply:
        # costs a third of importing the engine, and is loaded already where this runs
        import asyncio

        cost.model = self._model
        if self.is_recorded:
            cost.trail = []

        if request.size > MOST_DECISION_BYTES:
            raise ReasonerError(
                f"not asked: {request.size} bytes, of {MOST_DECISION_BYTES} that a request may have"
            )

        spent = self._budget.spent()
        if spent is not None:
            raise BudgetSpentError(spent)

        timer = asyncio.timeout(None)
        cost.limits = limits = _Limits(timer, self._timeout, self._budget)
        try:
            async with timer:
                limits.stalled(False)
                await limits.reserve(len(request.text))
                reply = await self._put_in_turn(request, cost)
                self._look_for_tokens(cost)
                return reply
        except Exception as error:
            if isinstance(error, LLMError):
                cost.host = cost.host or error.host
            if timer.expired():
                raise limits.exceeded() from error
            raise
        finally:
            cost.limits = None
            limits.settle(cost)

    async def _put_in_turn(self, request: Request | TextRequest, cost: Cost) -> Reply:
        # a client with slots of its own says itself when the request has one
        if self._concurrency is None:
            return await self._put(request, cost)

        async with self._slot(self._concurrency):
            cost.admitted()
            return await self._put(request, cost)

    async def _put(self, request: Request | TextRequest, cost: Cost) -> Reply:
        if isinstance(request, TextRequest):
            return await self._chat(request.text, request.schema, request.lacks, cost)
        if request.kind == "decision":
            return await self._decide(request, cost)

        def lacks(said: TextReply) -> int:
            return lacking_in(text_of(said), request)

        options, asks_reason = request.questions[0].options, request.asks_reason
        schema = answer_schema(options, asks_reason=asks_reason)
        return await self._chat(request.text, schema, lacks, cost)

    async def _chat(
        self,
        prompt: str,
        schema: dict[str, Any] | None,
        lacks: Callable[[TextReply], int],
        cost: Cost,
    ) -> Reply:
        messages = [{"role": "user", "content": prompt}]
        check = {"lacks": lacks} if self._checks_chats else {}
        said = await self._client.chat(messages, format=schema, cost=cost, **check)

        return text_of(said)

    async def _decide(self, request: Request, cost: Cost) -> Reply:
        def lacks(decided: ChoiceReply) -> int:
            return lacking_in(chances_of(request, decided), request)

        check = {"lacks": lacks} if self._checks_decisions else {}
        decided = await self._client.systemone(request.text, request.choices, cost=cost, **check)

        return chances_of(request, decided)

    def _look_for_tokens(self, cost: Cost) -> None:
        """Say once that a limit on tokens is of no use with a server that does not report them."""
        limit = self._budget.max_tokens
        if (
            limit is None
            or self._is_told
            or (cost.input_tokens, cost.output_tokens) != (None, None)
        ):
            return

        self._is_told = True
        BUDGET_LOGGER.warning(
            "%s at %s reports no tokens, so a limit of %d tokens cannot end its questions: "
            "set a limit on calls",
            cost.model or "the model",
            cost.host or "its server",
            limit,
        )

    def _slot(self, concurrency: int) -> Semaphore:
        """Return this event loop's limit on requests under way."""
        import asyncio

        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = (loop, asyncio.Semaphore(concurrency))

        return self._slots[1]


class _Limits:
    """The time and the budget of one request.

    A request that waits for a slot while others are served has all the time that the budget has;
    the time for its answer begins with the slot, or when no request is served at all, so that a
    request does not wait forever for a server that is gone.
    """

    __slots__ = (
        "_admissions",
        "_budget",
        "_is_by_budget",
        "_put_at",
        "_reserved",
        "_seconds",
        "_slot_at",
        "_timer",
    )

    def __init__(self, timer: Timeout, seconds: float, budget: Budget) -> None:
        self._timer = timer
        self._seconds = seconds
        self._budget = budget
        self._put_at = self._slot_at = perf_counter()
        self._admissions = 0
        self._reserved: int | None = None
        self._is_by_budget = False

    async def reserve(self, prompt_bytes: int) -> None:
        """Reserve the tokens that the request may cost, as soon as there are enough.

        Raises:
            BudgetSpentError: If the budget was spent meanwhile.
        """
        await self._budget.reserve(prompt_bytes)
        self._reserved = prompt_bytes

        spent = self._budget.spent()
        if spent is not None:
            raise BudgetSpentError(spent)

    def admitted(self) -> None:
        spent = self._budget.take()
        if spent is not None:
            raise BudgetSpentError(spent)

        self._slot_at = perf_counter()
        self._admissions += 1
        # a retry has a slot again, within the same time
        if self._admissions == 1:
            self._allow(self._seconds)

    def stalled(self, is_stalled: bool) -> None:
        if not self._admissions:
            self._allow(self._seconds if is_stalled else None)

    def exceeded(self) -> LLMError:
        """Return the error that says which limit has ended the request."""
        if self._is_by_budget:
            return BudgetSpentError(self._budget.spent() or "budget spent")
        return TimedOutError(f"no answer within {self._seconds:g} s")

    def settle(self, cost: Cost) -> None:
        """Note how long the request took, and count what it has cost beyond the call it took."""
        now = perf_counter()
        # a client that does not time its requests has sent the last one when it had a slot
        if cost.attempts and cost.request_seconds is None:
            cost.request_seconds = round(now - self._slot_at, 6)

        cost.settle(now - self._put_at)
        # also those of a client that said nothing of a slot; one that was not sent is given back
        tokens = (cost.input_tokens or 0) + (cost.output_tokens or 0)
        self._budget.add(retries=cost.attempts - self._admissions, tokens=tokens)
        if self._reserved is not None:
            self._budget.release(self._reserved)

    def _allow(self, seconds: float | None) -> None:
        """Let the request end after so many seconds, or with the budget."""
        import asyncio

        left = self._budget.seconds_left()
        self._is_by_budget = left is not None and (seconds is None or left < seconds)
        limit = left if self._is_by_budget else seconds
        self._timer.reschedule(None if limit is None else asyncio.get_running_loop().time() + limit)


@dataclass(slots=True)
class Outcome(Generic[ResultT]):
    """What became of a call: a result or the exception that was raised, and the cost.

    Args:
        cost: What it took.
        result: The result, if there is one.
        error: What was raised, if something was.
        record_id: Under which id its requests are recorded, if they are.
    """

    cost: Cost
    result: ResultT | None = None
    error: Exception | None = None
    record_id: str | None = None
    _is_charged: bool = False

    def charge(self) -> Cost:
        """Return the cost to the first caller; to all others the cost without its charges."""
        if self._is_charged:
            return self.cost.without_charges()

        self._is_charged = True
        return self.cost


class Flight(Generic[ResultT]):
    """A call under way, and the number of those who wait for it."""

    __slots__ = ("key", "task", "waiting")

    def __init__(self, key: Hashable, make: Callable[[Cost], Coroutine[Any, Any, ResultT]]) -> None:
        import asyncio

        self.key = key
        self.waiting = 0
        self.task: Task[Outcome[ResultT]] = asyncio.create_task(_outcome_of(make))

    async def outcome(self) -> Outcome[ResultT]:
        """Wait for the outcome; cancelling this leaves the call running."""
        if self.task.done():
            return self.task.result()

        import asyncio

        return await asyncio.shield(self.task)


class SingleFlight(Generic[ResultT]):
    """Calls under way, by what they ask: the same call is made once, for all who want it.

    A call ends with the last of those who wait for it: cancelling one of two leaves it running,
    cancelling both cancels it, and waits until it has closed its connection. A call that is
    cancelled in any other way, such as by the client itself, has failed. Each event loop makes
    calls of its own.
    """

    def __init__(self) -> None:
        self._under_way: dict[Hashable, Flight[ResultT]] = {}

    def join(
        self, key: Hashable, make: Callable[[Cost], Coroutine[Any, Any, ResultT]]
    ) -> Flight[ResultT]:
        """Start a call, or join the one under way; `leave` it in the end.

        Args:
            key: What is asked.
            make: Starts the call, if nobody has; it adds to the cost it is given.
        """
        import asyncio

        flight = self._under_way.get(key)
        if (
            flight is None
            or flight.task.done()
            or flight.task.get_loop() is not asyncio.get_running_loop()
        ):
            flight = self._under_way[key] = Flight(key, make)

        flight.waiting += 1

        return flight

    async def leave(self, flights: Iterable[Flight[ResultT]]) -> None:
        """Leave calls; those for which nobody waits are cancelled, and over afterwards."""
        ending = [flight.task for flight in flights if self._is_last(flight)]
        if not ending:
            return

        import asyncio

        for task in ending:
            task.cancel()

        await asyncio.wait(ending)

    async def do(
        self, key: Hashable, make: Callable[[Cost], Coroutine[Any, Any, ResultT]]
    ) -> Outcome[ResultT]:
        """Return the outcome of a call: `join` it, wait, and `leave` it."""
        flight = self.join(key, make)
        try:
            return await flight.outcome()
        finally:
            await self.leave([flight])

    def __len__(self) -> int:
        """Return the number of calls under way."""
        return len(self._under_way)

    def _is_last(self, flight: Flight[ResultT]) -> bool:
        """Leave one call; return True if it is still running, and nobody waits for it."""
        flight.waiting -= 1
        if flight.waiting:
            return False
        if self._under_way.get(flight.key) is flight:
            del self._under_way[flight.key]

        return not flight.task.done() and not flight.task.get_loop().is_closed()


async def _outcome_of(
    make: Callable[[Cost], Coroutine[Any, Any, ResultT]],
) -> Outcome[ResultT]:
    import asyncio

    cost = Cost()
    try:
        return Outcome(cost, await make(cost))
    except Exception as error:
        return Outcome(cost, error=error)
    except asyncio.CancelledError as error:
        # by the client, from within; if by the last who waited, nobody sees this
        failure = LLMError("the client cancelled its own call")
        failure.__cause__ = error
        return Outcome(cost, error=failure)


def text_of(said: TextReply) -> Reply:
    """Keep of a chat's reply what answers are read from."""
    return Reply(said.text)


def chances_of(request: Request, decided: ChoiceReply) -> Reply:
    """Keep of a decision's reply what answers are read from."""
    answers = decided.answers
    return Reply(
        answers={name: (answers.get(name) or {}).get("probabilities") for name in request.choices}
    )


def chosen_in(reply: Reply, request: Request, number: int) -> Any:
    """Return the option that a chat's reply names.

    Raises:
        ReasonerError: If it names none.
    """
    return parse_reasoner_response(reply.text, list(request.questions[number].options))


def reason_in(reply: Reply) -> str | None:
    """Return the reason that a chat's reply gives beside its choice, if it gives one."""
    return read_reason(reply.text, MOST_REASON_CHARACTERS)


def chances_in(reply: Reply, request: Request, number: int) -> Mapping[str, float]:
    """Return the probabilities that a decision's reply gives the options of one question.

    Raises:
        ReasonerError: If they are not valid.
    """
    options = list(request.questions[number].options)
    return read_probabilities(reply.answers.get(f"q{number}"), options)


def lacking_in(reply: Reply, request: Request) -> int:
    """Return to how many questions of a request a reply has no valid answer."""
    read = chosen_in if request.kind == "chat" else chances_in
    lacking = 0
    for number in range(len(request.questions)):
        try:
            read(reply, request, number)
        except ReasonerError:
            lacking += 1

    return lacking


LONGEST_LOOK_SECONDS = 10.0
"""How long to wait until a server says whether it takes decisions, for which it needs no model."""

_REST_AFTER_LOOK = 10
"""How many times as long as a failed look took to wait before the next."""


def kind_by(mode: Literal["auto", "decision", "chat"], client: Any) -> Kind | None:
    """Return what is asked in a mode, or None if the server has to say."""
    if mode != "auto":
        return mode
    return None if callable(getattr(client, "systemone", None)) else "chat"


class ModeFinder:
    """Looks at what a client's server and model offer, once for all who want to know.

    Args:
        client: The client.
        logger: Where to report, once, that a look failed.
    """

    def __init__(self, client: ModelClient, logger: EventLogger | None) -> None:
        self._client = client
        self._logger = logger
        self._looks: SingleFlight[Kind] = SingleFlight()
        self._next_look = 0.0
        self._has_reported = False

    async def find(self, seconds: float) -> Kind | None:
        """Return how to ask, or None if that cannot be found out now.

        Args:
            seconds: How long it may take at most.
        """
        if monotonic() < self._next_look:
            return None

        began = monotonic()
        look = await self._looks.do("kind", lambda _cost: self._look(seconds))
        if look.error is None:
            return look.result

        # a server that hangs must not delay every decision
        ended = monotonic()
        self._next_look = max(self._next_look, ended + _REST_AFTER_LOOK * (ended - began))
        if not self._has_reported:
            self._has_reported = True
            report_warning(self._logger, MODE_UNKNOWN, error=describe(look.error))

        return None

    async def _look(self, seconds: float) -> Kind:
        import asyncio

        limit = min(seconds, LONGEST_LOOK_SECONDS)
        try:
            async with asyncio.timeout(limit) as timer:
                return "decision" if await self._client.offers_decisions() else "chat"
        except Exception as error:
            if timer.expired():
                raise TimedOutError(f"no answer within {limit:g} s") from error
            raise

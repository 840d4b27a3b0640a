"""The time, requests and tokens that an answer may use, and those that it has used.

Retries are included.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from numbers import Real
from random import uniform
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from prism.errors import BudgetSpentError, FieldValueError, ReasonerError, TimedOutError

if TYPE_CHECKING:
    from asyncio import Timeout

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0

ResultT = TypeVar("ResultT")


class Allowance:
    """The time, requests and share of a budget that one question may use; no limit by default.

    A question that waits for a slot while others are served is limited only by the
    budget's deadline. The time for its answer begins with the slot, or when no question is served
    at all, so it does not wait forever for a server that is gone.

    Args:
        budget: The shared budget of all questions; None for no limit.
        seconds: Seconds that an answer may take, including retries.
        most_attempts: Maximum number of requests; None leaves it to the client.

    Attributes:
        trouble: The error of the last failing server, for the message of a time-out.
        most_attempts: Maximum number of requests.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        seconds: float = inf,
        most_attempts: int | None = None,
    ) -> None:
        self.trouble: str = ""
        self.most_attempts: int | None = most_attempts
        self._budget = budget
        self._seconds = seconds
        self._timer: Timeout | None = None
        self._put_at = self._slot_at = 0.0
        self._admissions = 0
        self._is_by_budget = False

    def allows(self, attempts: int) -> bool:
        """Return True if a further request may be sent."""
        return self.most_attempts is None or attempts < self.most_attempts

    def admitted(self) -> None:
        """Record that the question has a slot, or uses it for another request.

        A request is deducted before it is sent.

        Raises:
            BudgetSpentError: If the budget no longer allows it.
        """
        if self._budget is not None:
            self._require(self._budget.take())

        self._slot_at = perf_counter()
        self._admissions += 1
        # a retry gets another slot within the same time
        if self._admissions == 1:
            self._limit_to(self._seconds)

    def stalled(self, is_stalled: bool) -> None:
        """Record whether the question waits while no other is served; that time counts."""
        if not self._admissions:
            self._limit_to(self._seconds if is_stalled else inf)

    def require_some(self) -> None:
        """Refuse a question once the budget is spent.

        Raises:
            BudgetSpentError: If it is spent.
        """
        if self._budget is not None:
            self._require(self._budget.spent())

    @asynccontextmanager
    async def lease(self, spent: Callable[[], tuple[int, int]]) -> AsyncIterator[None]:
        """Ask the question inside the block, up to its time limit, and count what it spent.

        Args:
            spent: Returns the sent requests and their tokens at the end. A request that was
                admitted but not sent is given back.

        Raises:
            BudgetSpentError: If the budget is spent, or its deadline ended the question.
            TimedOutError: If the question took too long.
        """
        # costs a third of importing the engine, and is loaded already where this runs
        import asyncio

        budget = self._budget or Budget()
        self._put_at = self._slot_at = perf_counter()
        timer = self._timer = asyncio.timeout(None)
        try:
            async with timer:
                self._limit_to(inf)
                self._require(budget.spent())
                yield
        except Exception as error:
            if not timer.expired():
                raise
            if self._is_by_budget:
                raise BudgetSpentError(budget.spent() or "budget spent") from error
            why = f": {self.trouble}" if self.trouble else ""
            raise TimedOutError(f"no answer within {self._seconds:g} s{why}") from error
        finally:
            self._timer = None
            attempts, tokens = spent()
            # including those of a client that did not report a slot
            budget.add(retries=attempts - self._admissions, tokens=tokens)

    def seconds_left(self) -> float:
        """Return the seconds that the answer may still take."""
        ends = None if self._timer is None else self._timer.when()
        return self._seconds if ends is None else ends - loop_time()

    def seconds_gone(self) -> tuple[float, float]:
        """Return the seconds since the question was asked, and since it got its last slot."""
        now = perf_counter()
        return now - self._put_at, now - self._slot_at

    def _require(self, spent: str | None) -> None:
        if spent is not None:
            raise BudgetSpentError(spent)

    def _limit_to(self, seconds: float) -> None:
        """End the question after some seconds, or with the budget."""
        timer = self._timer
        if timer is None:
            return

        left = None if self._budget is None else self._budget.seconds_left()
        self._is_by_budget = left is not None and left < seconds
        limit = left if self._is_by_budget and left is not None else seconds
        timer.reschedule(None if limit == inf else loop_time() + limit)


@dataclass(slots=True)
class Spent:
    """The spending of a budget.

    Args:
        calls: Requests made.
        tokens: Tokens read and written.
        began: When the first question was asked, by the budget's clock; None before it.
        before: Seconds from before it was last resumed.
    """

    calls: int = 0
    tokens: int = 0
    began: float | None = None
    before: float = 0.0

    def seconds(self, now: float) -> float:
        """Return the seconds since the first question, including those before an interruption."""
        return self.before + (0.0 if self.began is None else now - self.began)


class Budget:
    """Limits on calls, tokens and time. Once one is spent, decisions fall back.

    Every request is counted before it is sent, its tokens when it has ended: those of open requests
    may exceed the limit. Only the deadline cuts off a request.

    Args:
        max_calls: Requests to the model, including retries.
        max_tokens: Tokens read and written, including useless replies.
        deadline: Seconds from the first question.

    Raises:
        FieldValueError: If a limit is not above 0.

    Attributes:
        calls: Requests made.
        tokens: Tokens read and written.
        max_tokens: The limit of tokens; None for no limit.
        note: Called with calls and tokens before each request is sent and after it has ended, for
            instance to keep them in a file; None calls nothing.
    """

    _whose = ""
    """The end of a message, if the limits are not those of a single run."""

    def __init__(
        self,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        deadline: float | None = None,
    ) -> None:
        require_positive(max_calls=max_calls, max_tokens=max_tokens, deadline=deadline)
        self.calls: int = 0
        self.tokens: int = 0
        self.max_tokens: int | None = max_tokens
        self._max_calls = max_calls
        self._deadline = deadline
        # a test may set another
        self.clock: Callable[[], float] = loop_time
        self._book = Spent()
        self.note: Callable[[int, int], object] | None = None

    def _changing(self) -> AbstractContextManager[Spent]:
        """Return the spending, for a block that reads and changes it."""
        return nullcontext(self._book)

    def take(self) -> str | None:
        """Take one call out of the budget.

        Returns:
            None if a call was left, otherwise the limit that is spent.
        """
        with self._changing() as book:
            limit = self._limit(book)
            if limit is None:
                book.calls += 1
                self.calls += 1

        if limit is None:
            self._noted()
        return limit

    def add(self, *, retries: int = 0, tokens: int = 0) -> None:
        """Count the tokens of a call."""
        if not retries and not tokens:
            return

        with self._changing() as book:
            book.calls += retries
            book.tokens += tokens

        self.calls += retries
        self.tokens += tokens
        self._noted()

    def _noted(self) -> None:
        if self.note is not None:
            self.note(self.calls, self.tokens)

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline, or None without one; starts the clock."""
        if self._deadline is None:
            return None

        with self._changing() as book:
            return self._seconds_left(book)

    def to_dict(self) -> dict[str, float]:
        """Return what was spent so far: calls, tokens, and seconds since the first question.

        Time is counted only for a deadline: without one, the seconds are 0.0.
        """
        deadline = self._deadline
        seconds = 0.0 if deadline is None else min(deadline, self._book.seconds(self.clock()))
        return {"calls": self.calls, "tokens": self.tokens, "seconds": round(seconds, 3)}

    def restore(self, calls: int, tokens: int, seconds: float) -> None:
        """Count what an interrupted run had spent, from `to_dict`; the clock continues."""
        self.calls += calls
        self.tokens += tokens
        book = self._book
        book.calls += calls
        book.tokens += tokens
        if self._deadline is not None and seconds > 0:
            book.before, book.began = seconds, self.clock()

    def spent(self) -> str | None:
        """Return which limit is spent, or None while everything is left."""
        with self._changing() as book:
            return self._limit(book)

    def _limit(self, book: Spent) -> str | None:
        if self._max_calls is not None and book.calls >= self._max_calls:
            return f"budget spent: {self._max_calls} calls{self._whose}"
        if self.max_tokens is not None and book.tokens >= self.max_tokens:
            return f"budget spent: {self.max_tokens} tokens{self._whose}"
        if self._deadline is not None and self._seconds_left(book) == 0.0:
            return f"budget spent: {self._deadline:g} seconds{self._whose}"

        return None

    def _seconds_left(self, book: Spent) -> float:
        assert self._deadline is not None
        now = self.clock()
        if book.began is None:
            book.began = now

        return max(0.0, self._deadline - book.seconds(now))


# Asking again


def random_backoff(attempt: int) -> float:
    """Return a random pause after a failure; its bound doubles with every attempt."""
    longest = _FIRST_PAUSE_SECONDS * 2.0 ** min(attempt - 1, 30)
    return uniform(0, min(longest, _LONGEST_PAUSE_SECONDS))


# Clocks and checks


def require_loop() -> None:
    """Refuse to ask a model outside of asyncio.

    Raises:
        ReasonerError: If none of its event loops is running here.
    """
    # costs a third of importing the engine, and is loaded already where a model is asked
    from asyncio import get_running_loop

    try:
        get_running_loop()
    except RuntimeError:
        raise ReasonerError(
            "a model is asked in an event loop of asyncio, and none is running here: call it from "
            "asyncio.run(...), also where the rest of the application uses trio"
        ) from None


def loop_time() -> float:
    """Return the time of the running event loop in seconds; outside a loop, that of the machine.

    All waiting uses this clock, as asyncio's own timers do, so a test that sets the time of its
    loop moves time-outs, pauses and circuit breakers together.
    """
    # costs a third of importing the engine, and is loaded already where something is waited for
    import asyncio

    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        # the clock of asyncio's own loops
        return monotonic()


def require_positive(**limits: float | None) -> None:
    """Raise FieldValueError for the first limit that is given and not above 0."""
    for name, value in limits.items():
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if value is not None and not (is_number and value > 0):
            raise FieldValueError(f"{name} must be above 0, got {value!r}")


def require_one_of(name: str, value: str, known: Sequence[str]) -> None:
    """Raise FieldValueError for an unknown value."""
    if value not in known:
        raise FieldValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")


GIVEN_UP = "cancelled before an answer came"
"""The fault of a cancelled request, such as one whose time was up."""


@dataclass(slots=True)
class Attempt:
    """One request, and its reply.

    Args:
        request: The body that was sent, if known.
        began: When it was sent, in UTC as ISO 8601.
        seconds: How long it took.
        model: The model, if known.
        host: The server, without credentials, if known.
        reply: The decoded body of the reply, or None.
        fault: The failure, if any.
        input_tokens: Tokens that the model read, if known.
        output_tokens: Tokens that it wrote, if known.
    """

    request: str | None = None
    began: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    seconds: float | None = None
    model: str | None = None
    host: str | None = None
    reply: str | None = None
    fault: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the known parts as plain data."""
        known = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in known.items() if value is not None}


Trail = list[Attempt]
"""The requests of one question in order; simultaneous ones by when they ended."""


_MOST_NANOSECONDS = 10**16
"""Longer durations, above four months, are ignored."""

MOST_TOKENS = 10_000_000
"""Larger token counts are ignored, since no model reads or writes so many at once."""

_MOST_REASON = 40


@dataclass(slots=True)
class Cost:
    """The cost of an answer from a model.

    A `Reasoner` makes one for each request and passes it to the client, which adds to it as it
    sends requests, so the cost is known however the call ends. One decision has the cost of a
    request. Other decisions that used the same answer have no attempts and no tokens, so that costs
    can be added up.

    Args:
        latency: Seconds from question to answer: ``queue_seconds`` plus ``request_seconds``.
        model: The model that was asked, if known.
        host: The server that was asked last, if known.
        attempts: Requests sent; 0 if none could be sent.
        input_tokens: Tokens that the model read, if known.
        output_tokens: Tokens that it wrote, if known.
        queue_seconds: Seconds of the latency before and after the last request: waiting for a slot
            and for the budget, pauses between attempts, and earlier requests that failed. None if
            no question was asked.
        request_seconds: Seconds of the last request; 0 if none was sent, None if no question was
            asked.
        total_duration: Nanoseconds of the last reply, as reported by Ollama.
        done_reason: Why the model ended its last reply, such as ``"stop"``, or ``"length"`` if it
            ran out of tokens.
        repaired: True if the question was asked again in other words because its reply was useless;
            otherwise None.
        allowance: The time that the question may take. A client with its own slots tells it when
            the question gets one (``Allowance.admitted``), and when it waits while nothing is
            served.
        trail: The separate requests, if they are recorded.
    """

    latency: float = 0.0
    model: str | None = None
    host: str | None = None
    attempts: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    queue_seconds: float | None = None
    request_seconds: float | None = None
    total_duration: int | None = None
    done_reason: str | None = None
    repaired: bool | None = None
    allowance: Allowance = field(default_factory=Allowance, repr=False, compare=False)
    trail: Trail | None = field(default=None, repr=False, compare=False)
    _sent_at: float | None = field(default=None, init=False, repr=False, compare=False)
    _has_left: bool = field(default=False, init=False, repr=False, compare=False)

    @property
    def cut_short(self) -> str:
        """The end of a sentence about a reply that ran out of tokens; otherwise empty."""
        if self.done_reason != "length":
            return ""

        wrote = "" if self.output_tokens is None else f", after {self.output_tokens} tokens"
        return (
            f"; it ran out of tokens{wrote}, including those for its thoughts: allow more "
            "(--reply-tokens, --window), or less thinking"
        )

    @property
    def has_begun(self) -> bool:
        """Whether a request is under way."""
        return self._sent_at is not None

    def request_began(self, request: str | None = None) -> None:
        """Note that a request is being sent; its time counts until `request_ended`.

        Args:
            request: The body of the request, if known.
        """
        self.attempts += 1
        self._sent_at, self._has_left = perf_counter(), False
        if self.trail is not None:
            self.trail.append(Attempt(request))

    def request_left(self) -> None:
        """Note that the first bytes of the open request have been sent."""
        self._has_left = True

    def request_replied(self, reply: str) -> None:
        """Note the reply, for recording."""
        if self.trail:
            self.trail[-1].reply = reply

    def request_failed(self, fault: str) -> None:
        """Note the failure of the open request, for recording."""
        if self.trail and self.has_begun:
            self.trail[-1].fault = fault

    def request_cancelled(self) -> None:
        """Note that the open request was cancelled; it does not count if nothing was sent."""
        if self._sent_at is None or self._has_left:
            return

        self.attempts -= 1
        self._sent_at = None
        if self.trail:
            self.trail.pop()

    def request_ended(self) -> None:
        """Note that the open request has ended, with or without a reply."""
        if self._sent_at is None:
            return

        self.request_seconds = round(perf_counter() - self._sent_at, 6)
        self._sent_at = None
        if self.trail:
            last = self.trail[-1]
            last.seconds, last.model, last.host = self.request_seconds, self.model, self.host
            if last.reply is None and last.fault is None:
                last.fault = GIVEN_UP

    def another(self) -> Cost:
        """Return the cost of one of several simultaneous requests, to `add` at the end."""
        return Cost(allowance=self.allowance, trail=None if self.trail is None else [])

    def add_tokens(self, read: int | None, written: int | None) -> None:
        """Add the tokens of one reply; None leaves a count as it is.

        So does an impossible count, below 0 or above 10 million, which some servers report.
        """
        read, written = count_of(read), count_of(written)
        _count(self, read, written)
        if self.trail:
            _count(self.trail[-1], read, written)

    def note_reply(self, reply: Any, counts: Iterable[Sequence[str]] = ((), ())) -> None:
        """Note what a reply of any kind tells of its tokens and its end.

        Args:
            reply: The reply.
            counts: The names of the tokens that were read, and of those that were written.
        """
        usage = first(reply, "usage_details", "usage")
        told = ((first(usage, *names), first(reply, *names)) for names in counts)
        self.add_tokens(*(own if count is None else count for count, own in told))
        self.total_duration = _whole_number(first(reply, "total_duration"), _MOST_NANOSECONDS)
        reason = first(choice_in(reply), "done_reason", "finish_reason")
        self.done_reason = reason[:_MOST_REASON] if isinstance(reason, str) else None

    def add(self, request: Cost) -> None:
        """Add the cost of a request, which becomes the last one."""
        if not request.attempts:
            return

        self.attempts += request.attempts
        _count(self, request.input_tokens, request.output_tokens)
        if self.trail is not None:
            self.trail.extend(request.trail or ())

        self.model, self.host = request.model or self.model, request.host or self.host
        self.request_seconds, self.done_reason = request.request_seconds, request.done_reason
        self.total_duration = request.total_duration

    def follow(self, request: Cost) -> None:
        """Add a further request for the same question, sent after the first had ended."""
        latency = self.latency + request.latency
        self.model, self.host = request.model or self.model, request.host or self.host
        if request.trail is not None and self.trail is None:
            self.trail = []
        self.add(request)
        self.repaired = self.repaired or request.repaired

        self.latency = round(latency, 6)
        self.request_seconds = self.request_seconds or 0.0
        self.queue_seconds = round(self.latency - self.request_seconds, 6)

    def precede(self, request: Cost) -> None:
        """Add an earlier request for the same question in another way."""
        self.attempts += request.attempts
        _count(self, request.input_tokens, request.output_tokens)
        self.latency = round(self.latency + request.latency, 6)
        self.queue_seconds = round((self.queue_seconds or 0.0) + request.latency, 6)

    @property
    def tokens(self) -> int:
        """Tokens read and written, if known."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def settle(self, latency: float, since_slot: float | None = None) -> None:
        """Record the whole latency, from which the waiting time follows.

        Args:
            latency: Seconds from asking until now.
            since_slot: Seconds since it got its slot, for a client that does not time its requests.
        """
        self.request_ended()
        if self.attempts and self.request_seconds is None and since_slot is not None:
            self.request_seconds = round(since_slot, 6)
        self.latency = round(latency, 6)
        self.request_seconds = min(self.request_seconds or 0.0, self.latency)
        self.queue_seconds = round(self.latency - self.request_seconds, 6)

    def without_charges(self) -> Cost:
        """Return the cost of another decision with the same answer."""
        return Cost(
            self.latency,
            self.model,
            self.host,
            attempts=0,
            input_tokens=0,
            output_tokens=0,
            queue_seconds=self.queue_seconds,
            request_seconds=self.request_seconds,
            done_reason=self.done_reason,
        )


def _count(counts: Attempt | Cost, read: int | None, written: int | None) -> None:
    """Add the tokens of a reply; None leaves a count as it is."""
    if read is not None:
        counts.input_tokens = (counts.input_tokens or 0) + read
    if written is not None:
        counts.output_tokens = (counts.output_tokens or 0) + written


def first(thing: Any, *names: str) -> Any:
    """Return the first of these keys or attributes that has a value."""
    for name in names:
        value = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value

    return None


def choice_in(reply: Any) -> Any:
    """Return the first of several choices, as in OpenAI's replies, or else the reply."""
    choices = first(reply, "choices")
    return choices[0] if isinstance(choices, list) and choices else reply


COST_KEYS = ("latency", "model", "host", "attempts", "input_tokens", "output_tokens")
"""Keys of the cost that a decision's event always has."""

KNOWN_COST_KEYS = ("queue_seconds", "request_seconds", "total_duration", "done_reason", "repaired")
"""Keys of the cost that it has if known."""


def count_of(value: Any) -> int | None:
    """Return a token count that a server reports, or None if it is impossible."""
    return _whole_number(value, MOST_TOKENS)


def _whole_number(value: Any, most: int) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= most else None


@dataclass(slots=True)
class Outcome(Generic[ResultT]):
    """The result of a call: a result or the exception that was raised, and the cost.

    Args:
        cost: The cost.
        result: The result, if there is one.
        error: The exception, if any.
        record_id: The id under which its requests are recorded, if any.
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

"""The calls, tokens and time that a run may spend, and those that an answer has cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from numbers import Real
from time import monotonic, perf_counter
from typing import Any

from prism.errors import BudgetSpentError, FieldValueError, ReasonerError, TimedOutError


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
        clock: Returns the time in seconds.
    """

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
        self.clock: Callable[[], float] = loop_time
        self._max_calls = max_calls
        self._deadline = deadline
        self._ends_at: float | None = None

    def take(self) -> str | None:
        """Take one call out of the budget.

        Returns:
            None if a call was left, otherwise the limit that is spent.
        """
        limit = self.spent()
        if limit is None:
            self.calls += 1
        return limit

    def add(self, *, retries: int = 0, tokens: int = 0) -> None:
        """Count calls, and the tokens of calls."""
        self.calls += retries
        self.tokens += tokens

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline, or None without one; starts the clock."""
        if self._deadline is None:
            return None
        if self._ends_at is None:
            self._ends_at = self.clock() + self._deadline

        return max(0.0, self._ends_at - self.clock())

    def spent(self) -> str | None:
        """Return which limit is spent, or None while everything is left."""
        if self._max_calls is not None and self.calls >= self._max_calls:
            return f"budget spent: {self._max_calls} calls"
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            return f"budget spent: {self.max_tokens} tokens"
        if self.seconds_left() == 0.0:
            return f"budget spent: {self._deadline:g} seconds"

        return None


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
    loop moves time-outs and pauses together.
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


# What answers cost

MOST_TOKENS = 10_000_000
"""Larger token counts are ignored, since no model reads or writes so many at once."""

COST_KEYS = ("latency", "model", "host", "attempts", "input_tokens", "output_tokens")
"""Keys of the cost that a decision's event always has."""

KNOWN_COST_KEYS = ("queue_seconds", "request_seconds", "done_reason", "repaired")
"""Keys of the cost that it has if known."""


@dataclass(slots=True)
class Attempt:
    """One request, and its reply.

    Args:
        request: The body that was sent, if known.
        began: When it was sent, in UTC as ISO 8601.
        seconds: How long it took.
        model: The model, if known.
        host: The server, without credentials, if known.
        reply: The body of the reply, or None.
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


@dataclass(slots=True)
class Cost:
    """The cost of an answer from a model.

    A `Reasoner` makes one for each question and passes it to the client, which adds every request
    that it sends, so the cost is known however the call ends::

        attempt = cost.began(model, address, request)
        ...
        cost.replied(attempt, reply, tokens_read, tokens_written)
        cost.ended(attempt)

    One decision has the cost of a request. Other decisions that used the same answer have no
    attempts and no tokens, so that costs can be added up.

    Args:
        latency: Seconds from question to answer: ``queue_seconds`` plus ``request_seconds``.
        model: The model that was asked, if known.
        host: The server that was asked last, if known.
        attempts: Requests sent; 0 if none could be sent.
        input_tokens: Tokens that the model read, if known.
        output_tokens: Tokens that it wrote, if known.
        queue_seconds: Seconds of the latency before and after the last request: waiting for a slot,
            pauses between attempts, and earlier requests that failed.
        request_seconds: Seconds of the last request; 0 if none was sent.
        done_reason: Why the model ended its last reply, such as ``"stop"``, or ``"length"`` if it
            ran out of tokens.
        repaired: True if the question was asked again in other words because its reply was useless;
            otherwise None.
        budget: Pays for the requests.
        on_slot: Called when the question gets a slot, from which on its time counts.
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
    done_reason: str | None = None
    repaired: bool | None = None
    budget: Budget | None = field(default=None, repr=False, compare=False)
    on_slot: Callable[[], object] | None = field(default=None, repr=False, compare=False)
    trail: list[Attempt] | None = field(default=None, repr=False, compare=False)

    def has_slot(self) -> None:
        """Note that the question got a slot."""
        if self.on_slot is not None:
            self.on_slot()

    def began(self, model: str | None, host: str | None, request: str | None = None) -> Attempt:
        """Note that a request is being sent.

        Raises:
            BudgetSpentError: If the budget does not allow it.
        """
        if self.budget is not None and (spent := self.budget.take()) is not None:
            raise BudgetSpentError(spent)

        self.attempts += 1
        self.model, self.host = model or self.model, host or self.host
        attempt = Attempt(request, model=self.model, host=self.host)
        attempt.seconds = -perf_counter()
        if self.trail is not None:
            self.trail.append(attempt)
        return attempt

    def replied(
        self, attempt: Attempt, reply: str | None = None, read: Any = None, written: Any = None
    ) -> None:
        """Note a reply, and the tokens that its server reports; impossible counts are ignored."""
        attempt.reply = reply
        attempt.input_tokens, attempt.output_tokens = count_of(read), count_of(written)
        _count(self, attempt.input_tokens, attempt.output_tokens)
        if self.budget is not None:
            self.budget.add(tokens=(attempt.input_tokens or 0) + (attempt.output_tokens or 0))

    def ended(self, attempt: Attempt, fault: str | None = None) -> None:
        """Note that a request has ended."""
        attempt.seconds = round(perf_counter() + (attempt.seconds or 0.0), 6)
        attempt.fault = fault
        self.request_seconds = attempt.seconds

    def settle(self, latency: float) -> None:
        """Record the whole latency, from which the waiting time follows."""
        self.latency = round(latency, 6)
        self.request_seconds = min(self.request_seconds or 0.0, self.latency)
        self.queue_seconds = round(self.latency - self.request_seconds, 6)

    def follow(self, later: Cost) -> None:
        """Add the cost of a further request for the same question."""
        self.attempts += later.attempts
        _count(self, later.input_tokens, later.output_tokens)
        if later.trail is not None:
            self.trail = [*(self.trail or ()), *later.trail]
        self.model, self.host = later.model or self.model, later.host or self.host
        self.done_reason = later.done_reason
        self.repaired = self.repaired or later.repaired
        self.request_seconds = later.request_seconds
        self.settle(self.latency + later.latency)

    @property
    def tokens(self) -> int:
        """Tokens read and written, if known."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    @property
    def cut_short(self) -> str:
        """The end of a sentence about a reply that ran out of tokens; otherwise empty."""
        if self.done_reason != "length":
            return ""

        wrote = "" if self.output_tokens is None else f" after {self.output_tokens} tokens"
        return (
            f"; the model was still writing{wrote}: allow more (reply_tokens, window), or less "
            "thinking"
        )

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


def _count(cost: Cost, read: int | None, written: int | None) -> None:
    """Add the tokens of a reply; None leaves a count as it is."""
    if read is not None:
        cost.input_tokens = (cost.input_tokens or 0) + read
    if written is not None:
        cost.output_tokens = (cost.output_tokens or 0) + written


def count_of(value: Any) -> int | None:
    """Return a token count that a server reports, or None if it is impossible."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= MOST_TOKENS else None


class Clock:
    """The time limit of one answer, which counts from its slot on; the budget's counts always.

    Args:
        seconds: Seconds for the answer, including retries.
        budget: The budget, which may have a deadline.
        trouble: Returns what the servers have failed with, for the message of a time-out.
    """

    def __init__(self, seconds: float, budget: Budget, trouble: Callable[[], str] = str) -> None:
        # costs a third of importing the engine, and is loaded already where a model is asked
        from asyncio import timeout

        self._seconds, self._budget, self._trouble = seconds, budget, trouble
        self._put_at = perf_counter()
        self._has_slot = False
        self._timer = timeout(budget.seconds_left())

    def start(self) -> None:
        """Let the time count; a retry gets another slot within the same time."""
        if not self._has_slot:
            self._has_slot = True
            left = self._budget.seconds_left()
            limit = self._seconds if left is None else min(left, self._seconds)
            self._timer.reschedule(loop_time() + limit)

    @property
    def latency(self) -> float:
        """The seconds since the question was put."""
        return perf_counter() - self._put_at

    async def __aenter__(self) -> Clock:
        """Begin to wait for a slot."""
        await self._timer.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        """Stop the time.

        Raises:
            BudgetSpentError: If the budget's deadline has ended the question.
            TimedOutError: If the question took too long.
        """
        try:
            await self._timer.__aexit__(*raised)
        except TimeoutError as error:
            if spent := self._budget.spent():
                raise BudgetSpentError(spent) from error
            why = f": {trouble}" if (trouble := self._trouble()) else ""
            raise TimedOutError(f"no answer within {self._seconds:g} s{why}") from error

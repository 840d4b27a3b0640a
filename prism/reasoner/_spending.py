"""The calls, tokens and time that a run may spend, and those that an answer has cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from numbers import Real
from time import monotonic
from typing import Any

from prism.errors import BudgetSpentError, FieldValueError


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
        on_call: Called with every request that is counted, before it is sent.
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
        self.on_call: Callable[[], object] | None = None
        self._max_calls = max_calls
        self._deadline = deadline
        self._began_at: float | None = None
        self._seconds_before = 0.0

    def take(self) -> str | None:
        """Take one call out of the budget.

        Returns:
            None if a call was left, otherwise the limit that is spent.
        """
        limit = self.spent()
        if limit is None:
            self.calls += 1
            if self.on_call is not None:
                self.on_call()
        return limit

    def add(self, *, retries: int = 0, tokens: int = 0, seconds: float = 0.0) -> None:
        """Count calls, the tokens of calls, and seconds that an earlier process took."""
        self.calls += retries
        self.tokens += tokens
        self._seconds_before += seconds

    @property
    def seconds(self) -> float:
        """Seconds since the first question, of which only a deadline takes note."""
        since = 0.0 if self._began_at is None else self.clock() - self._began_at
        return self._seconds_before + since

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline, or None without one; starts the clock."""
        if self._deadline is None:
            return None
        if self._began_at is None:
            self._began_at = self.clock()

        return max(0.0, self._deadline - self.seconds)

    def spent(self) -> str | None:
        """Return which limit is spent, or None while everything is left."""
        if self._max_calls is not None and self.calls >= self._max_calls:
            return f"budget spent: {self._max_calls} calls"
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            return f"budget spent: {self.max_tokens} tokens"
        if self._deadline is not None and self.seconds >= self._deadline:
            return f"budget spent: {self._deadline:g} seconds"

        return None


# Clocks and checks


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
            raise FieldValueError(f"{name} must be a number above 0, got {value!r}")


def require_one_of(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise FieldValueError for an unknown value."""
    if value not in choices:
        raise FieldValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


# What answers cost

MOST_TOKENS = 10_000_000
"""Larger token counts are ignored, since no model reads or writes so many at once."""

COST_KEYS = ("latency", "model", "host", "attempts", "input_tokens", "output_tokens")
"""Keys of the cost that a decision's event always has."""

KNOWN_COST_KEYS = ("queue_seconds", "request_seconds", "done_reason", "repaired", "money")
"""Keys of the cost that it has if known."""


PriceOf = Callable[[int, int], float | None]
"""Returns the money that tokens read and written cost; None if that is unknown."""


@dataclass(slots=True)
class Cost:
    """The cost of an answer from a model.

    A `Reasoner` makes one for each question and passes it to the client, which adds every request
    that it sends, so the cost is known however the call ends.

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
        money: Its price: as the servers report it, or else by the prices of the model; None if
            unknown.
        done_reason: Why the model ended its last reply, such as ``"stop"``, or ``"length"`` if it
            ran out of tokens.
        repaired: True if the question was asked again in other words because its reply was useless;
            otherwise None.
        repairs: Each useless reply, and the prompt with which the question was asked again.
        budget: Pays for the requests.
        on_slot: Called when the question gets a slot, from which on its time counts.
    """

    latency: float = 0.0
    model: str | None = None
    host: str | None = None
    attempts: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    queue_seconds: float | None = None
    request_seconds: float | None = None
    money: float | None = None
    done_reason: str | None = None
    repaired: bool | None = None
    repairs: list[dict[str, str]] = field(default_factory=list, repr=False, compare=False)
    budget: Budget | None = field(default=None, repr=False, compare=False)
    on_slot: Callable[[], object] | None = field(default=None, repr=False, compare=False)

    def has_slot(self) -> None:
        """Note that the question got a slot."""
        if self.on_slot is not None:
            self.on_slot()

    def began(self, model: str | None, host: str | None) -> None:
        """Count a request that is being sent.

        Raises:
            BudgetSpentError: If the budget does not allow it.
        """
        if self.budget is not None and (spent := self.budget.take()) is not None:
            raise BudgetSpentError(spent)

        self.attempts += 1
        self.model, self.host = model or self.model, host or self.host

    def replied(self, read: Any, written: Any, money: Any = None) -> None:
        """Count the tokens and the money that a server reports; what is impossible is ignored."""
        input_tokens, output_tokens = count_of(read), count_of(written)
        _count(self, input_tokens, output_tokens)
        self._pay(money if isinstance(money, (int, float)) and 0 <= money < inf else None)
        if self.budget is not None:
            self.budget.add(tokens=(input_tokens or 0) + (output_tokens or 0))

    def price(self, price_of: PriceOf | None) -> None:
        """Set the money by the price of the tokens, if they are known and no server reports it."""
        is_counted = (self.input_tokens, self.output_tokens) != (None, None)
        if price_of is not None and self.money is None and is_counted:
            self._pay(price_of(self.input_tokens or 0, self.output_tokens or 0))

    def _pay(self, money: float | None) -> None:
        if money is not None:
            self.money = round((self.money or 0.0) + money, 9)

    def settle(self, latency: float) -> None:
        """Record the whole latency, from which the waiting time follows."""
        self.latency = round(latency, 6)
        self.request_seconds = round(min(self.request_seconds or 0.0, self.latency), 6)
        self.queue_seconds = round(self.latency - self.request_seconds, 6)

    def follow(self, later: Cost) -> None:
        """Add the cost of a further request for the same question."""
        self.attempts += later.attempts
        _count(self, later.input_tokens, later.output_tokens)
        self._pay(later.money)
        self.model, self.host = later.model or self.model, later.host or self.host
        self.done_reason = later.done_reason
        self.repaired = self.repaired or later.repaired
        self.repairs += later.repairs
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
        later = replace(self, attempts=0, input_tokens=0, output_tokens=0, on_slot=None)
        later.money, later.repaired, later.repairs = None, None, []
        return later


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

"""What a model's answers cost, and how much a run may spend on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from prism.errors import FieldValueError

if TYPE_CHECKING:
    from asyncio import Future


GIVEN_UP = "given up before an answer came"
"""The fault of a request that was cancelled: time was over, or another one answered first."""


@dataclass(slots=True)
class Attempt:
    """One request, as it was sent, and what came back.

    Args:
        request: The body that was sent, where it is known.
        began: When it was sent, in UTC as ISO 8601.
        seconds: How long it took.
        model: Model that was asked, where known.
        host: Server that was asked, without credentials, where known.
        reply: The body that came back, decoded; None if none came.
        fault: What went wrong.
        input_tokens: Tokens that the model read, where known.
        output_tokens: Tokens that it wrote, where known.
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

    def add_tokens(self, read: int | None, written: int | None) -> None:
        """Add what a reply says it took; None leaves a count as it is."""
        if read is not None:
            self.input_tokens = (self.input_tokens or 0) + read
        if written is not None:
            self.output_tokens = (self.output_tokens or 0) + written

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of it."""
        known = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in known.items() if value is not None}


Trail = list[Attempt]
"""The requests of one question, in their order; those at the same time by when they ended."""


ItemT = TypeVar("ItemT")

MOST_TOKENS = 10_000_000
"""A count of tokens above this is none: no model reads or writes so many at once."""

_MOST_NANOSECONDS = 10**16
"""A duration above this, four months, is none."""

_MOST_REASON = 40
_SAID_OF_THE_LAST = ("total_duration", "load_duration", "eval_duration", "done_reason")
_BYTES_PER_TOKEN = 4
"""Of an English prompt, as a rule of thumb."""


class Limits(Protocol):
    """Bounds a question, by what the one that hands out slots says of it."""

    def admitted(self) -> None:
        """Note that the question has a slot.

        Raises:
            BudgetSpentError: If the budget does not allow it any more.
        """

    def stalled(self, is_stalled: bool) -> None:
        """Note whether the question waits while no other is being served."""


@dataclass(slots=True)
class Cost:
    """What it took to get an answer from a model.

    A `Reasoner` makes one for each request and hands it to the client, which adds to it as it
    sends requests: however the call ends, the cost is known. What a request cost stands with one
    decision, the first of those it answered; with the others, and with those that used the answer
    to the same question of another agent, attempts and tokens are 0 and the server's durations
    None, so that they can be added up.

    Args:
        latency: Seconds from asking to the answer: ``queue_seconds`` and ``request_seconds``.
        model: Model asked, where known.
        host: Server asked last, where known.
        attempts: Requests sent; 0 where nothing could be asked.
        input_tokens: Tokens the model read, where known.
        output_tokens: Tokens it wrote, where known.
        queue_seconds: Seconds of the latency before and after the last request: waiting for a slot
            and for the budget, pauses between attempts, requests that failed before, and a
            straggler that lost to its hedge. None where no question was put.
        request_seconds: Seconds that the last request took, of a straggler and its hedge the one
            that answered; 0 if none was sent. None where no question was put.
        total_duration: Nanoseconds that the server says the last reply took it.
        load_duration: Of these, nanoseconds of loading the model.
        eval_duration: Of these, nanoseconds of writing the reply.
        done_reason: Why the model ended its last reply, such as ``"stop"``, or ``"length"`` where
            it ran out of tokens.
        most_attempts: Requests that may be sent in all; None leaves it to the client.
        limits: Bounds the question while it is asked; for clients with slots of their own.
        trail: The requests one by one, if somebody records them.
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
    load_duration: int | None = None
    eval_duration: int | None = None
    done_reason: str | None = None
    most_attempts: int | None = field(default=None, repr=False, compare=False)
    limits: Limits | None = field(default=None, repr=False, compare=False)
    trail: Trail | None = field(default=None, repr=False, compare=False)
    _sent_at: float | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def is_exhausted(self) -> bool:
        """Whether as many requests were sent as may be."""
        return self.most_attempts is not None and self.attempts >= self.most_attempts

    @property
    def allows_hedge(self) -> bool:
        """Whether two more requests may be sent: one, and another if it straggles."""
        return self.most_attempts is None or self.most_attempts - self.attempts > 1

    def admitted(self) -> None:
        """Note that the question has a slot: from now on its time and its requests count.

        Raises:
            BudgetSpentError: If a budget does not allow it any more.
        """
        if self.limits is not None:
            self.limits.admitted()

    def stalled(self, is_stalled: bool) -> None:
        """Note whether the question waits while no other is being served: that time counts."""
        if self.limits is not None:
            self.limits.stalled(is_stalled)

    def request_began(self, request: str | None = None) -> None:
        """Note that a request is sent; its time counts until `request_ended`.

        Args:
            request: The body that is sent, where it is known.
        """
        self._sent_at = perf_counter()
        if self.trail is not None:
            self.trail.append(Attempt(request))

    def request_ended(self) -> None:
        """Note that the request under way has ended, with a reply or without."""
        if self._sent_at is not None:
            self.request_seconds = round(perf_counter() - self._sent_at, 6)
            self._sent_at = None
            if self.trail:
                last = self.trail[-1]
                last.seconds, last.model, last.host = self.request_seconds, self.model, self.host
                if last.reply is None and last.fault is None:
                    last.fault = GIVEN_UP

    def request_replied(self, reply: str) -> None:
        """Note what came back, for those who record it."""
        if self.trail:
            self.trail[-1].reply = reply

    def request_failed(self, fault: str) -> None:
        """Note what went wrong with the request under way, for those who record it."""
        if self.trail:
            self.trail[-1].fault = fault

    def another(self) -> Cost:
        """Return the cost of one of several requests at the same time, to `add` in the end."""
        return Cost(trail=None if self.trail is None else [])

    def add_tokens(self, read: int | None, written: int | None) -> None:
        """Add the tokens of one reply; None leaves a count as it is.

        So does what is no count: a number below 0 or above 10 million, which some servers report.
        """
        read, written = count_of(read), count_of(written)
        self._count(read, written)
        if self.trail:
            self.trail[-1].add_tokens(read, written)

    def note_reply(self, reply: Mapping[str, Any]) -> None:
        """Note what a server says of one reply in Ollama's words: durations, and why it ended."""
        self.total_duration = duration_of(reply.get("total_duration"))
        self.load_duration = duration_of(reply.get("load_duration"))
        self.eval_duration = duration_of(reply.get("eval_duration"))
        reason = reply.get("done_reason")
        self.done_reason = reason[:_MOST_REASON] if isinstance(reason, str) else None

    def add(self, request: Cost) -> None:
        """Add what a request cost; it becomes the last one."""
        if not request.attempts:
            return

        self.attempts += request.attempts
        self._count(request.input_tokens, request.output_tokens)
        if self.trail is not None:
            self.trail.extend(request.trail or ())

        self.model, self.host = request.model or self.model, request.host or self.host
        for name in ("request_seconds", *_SAID_OF_THE_LAST):
            setattr(self, name, getattr(request, name))

    def _count(self, read: int | None, written: int | None) -> None:
        if read is not None:
            self.input_tokens = (self.input_tokens or 0) + read
        if written is not None:
            self.output_tokens = (self.output_tokens or 0) + written

    def settle(self, latency: float) -> None:
        """Note how long all took, and with it how long the question waited.

        Args:
            latency: Seconds from asking until now.
        """
        self.request_ended()
        self.latency = round(latency, 6)
        self.request_seconds = min(self.request_seconds or 0.0, self.latency)
        self.queue_seconds = round(self.latency - self.request_seconds, 6)

    def without_charges(self) -> Cost:
        """Return the cost of another decision that the same request answered."""
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


COST_KEYS = ("latency", "model", "host", "attempts", "input_tokens", "output_tokens")
"""What a decision's event says of its cost, always."""

KNOWN_COST_KEYS = ("queue_seconds", "request_seconds", *_SAID_OF_THE_LAST)
"""What it says where it is known; logs of earlier versions have none of these."""


def count_of(value: Any) -> int | None:
    """Return a count of tokens as a server reports it, None if it cannot be one."""
    return _whole_number(value, MOST_TOKENS)


def duration_of(value: Any) -> int | None:
    """Return a number of nanoseconds as a server reports it, None if it cannot be one."""
    return _whole_number(value, _MOST_NANOSECONDS)


def _whole_number(value: Any, most: int) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= most else None


class Budget:
    """Limits on calls, tokens and time; when one is spent, decisions fall back and the run goes on.

    Every request is taken out of the budget before it is sent. What its reply costs in tokens is
    known only when it ends, so an estimate is reserved for each under way: the mean of the replies
    so far, before the first one a token for four bytes of the prompt. A question for which too few
    tokens are left waits until others have ended. So a run may exceed its tokens by what the
    requests under way cost beyond that. Only the deadline cuts off a request.

    Args:
        max_calls: Requests to the model, retries included.
        max_tokens: Tokens read and written, also those of replies that were of no use.
        deadline: Seconds from the first question.

    Raises:
        FieldValueError: If a limit is not above 0.

    Attributes:
        calls: Requests made.
        tokens: Tokens read and written.
        max_tokens: How many tokens there may be; None without a limit.
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
        self._max_calls = max_calls
        self._deadline = deadline
        self._ends: float | None = None
        # a test may set another
        self.clock: Callable[[], float] = monotonic
        self._replies = 0
        self._under_way = 0
        self._bytes_under_way = 0
        self._waiting: deque[tuple[int, Future[None]]] = deque()

    def take(self) -> str | None:
        """Take one call out of the budget.

        Returns:
            None if there was one left, else which limit is spent.
        """
        spent = self.spent()
        if spent is None:
            self.calls += 1
        return spent

    def add(self, *, retries: int = 0, tokens: int = 0) -> None:
        """Count what a call has cost beyond itself."""
        self.calls += retries
        self.tokens += tokens
        self._replies += tokens > 0

    async def reserve(self, prompt_bytes: int) -> None:
        """Reserve what a request may cost, waiting for others under way if too little is left.

        Whoever waits is served in turn. Nobody waits once the budget is spent, or while nothing is
        under way: one request is always allowed. `release` it when it has ended.

        Args:
            prompt_bytes: The size of the prompt, from which its tokens are guessed at first.
        """
        if self.max_tokens is not None and (self._waiting or not self._has_room(prompt_bytes)):
            await self._turn(prompt_bytes)
        else:
            self._hold(prompt_bytes)

    def release(self, prompt_bytes: int) -> None:
        """Give back what was reserved; what was spent of it is added with `add` before."""
        self._under_way -= 1
        self._bytes_under_way -= prompt_bytes
        self._serve()

    def _hold(self, prompt_bytes: int) -> None:
        self._under_way += 1
        self._bytes_under_way += prompt_bytes

    async def _turn(self, prompt_bytes: int) -> None:
        # costs a third of importing the engine, and is loaded already where this runs
        import asyncio

        turn: Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((prompt_bytes, turn))
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.release(prompt_bytes)
            raise

    def _serve(self) -> None:
        """Let those go on who wait, in their turn, as far as there is room for them."""
        while self._waiting:
            prompt_bytes, turn = self._waiting[0]
            if not turn.done() and not self._has_room(prompt_bytes):
                return

            self._waiting.popleft()
            if not turn.done():
                self._hold(prompt_bytes)
                turn.set_result(None)

    def _has_room(self, prompt_bytes: int) -> bool:
        assert self.max_tokens is not None
        # a budget that is spent refuses whoever asks
        if not self._under_way or self.spent() is not None:
            return True

        # what is under way is estimated anew, as its first guess may have been far off
        if self._replies:
            estimate = (self._under_way + 1) * self.tokens / self._replies
        else:
            estimate = (self._bytes_under_way + prompt_bytes) / _BYTES_PER_TOKEN

        return self.tokens + estimate <= self.max_tokens

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline, or None without one; starts the clock."""
        if self._deadline is None:
            return None
        if self._ends is None:
            self._ends = self.clock() + self._deadline

        return max(0.0, self._ends - self.clock())

    def to_dict(self) -> dict[str, float]:
        """Return what was spent so far: calls, tokens, and seconds since the first question."""
        left = self.seconds_left() if self._ends is not None else self._deadline
        seconds = 0.0 if self._deadline is None or left is None else self._deadline - left
        return {"calls": self.calls, "tokens": self.tokens, "seconds": round(seconds, 3)}

    def restore(self, calls: int, tokens: int, seconds: float) -> None:
        """Count what an interrupted run had spent, as `to_dict` returned it; the clock goes on."""
        self.calls += calls
        self.tokens += tokens
        self._replies += calls
        if self._deadline is not None and seconds > 0:
            self._ends = self.clock() + self._deadline - seconds

    def spent(self) -> str | None:
        """Return which limit is spent, or None while everything is left."""
        if self._max_calls is not None and self.calls >= self._max_calls:
            return f"budget spent: {self._max_calls} calls"
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            return f"budget spent: {self.max_tokens} tokens"
        if self.seconds_left() == 0.0:
            return f"budget spent: {self._deadline:g} seconds"

        return None


def require_positive(**limits: float | None) -> None:
    """Raise FieldValueError for the first limit that is given and not above 0."""
    for name, value in limits.items():
        if value is not None and not value > 0:
            raise FieldValueError(f"{name} must be above 0, got {value!r}")


def require_one_of(name: str, value: str, known: Sequence[str]) -> None:
    """Raise FieldValueError for a value that is none of those that are known."""
    if value not in known:
        raise FieldValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def costs_of(asked: Sequence[ItemT], cost: Cost | None) -> Iterator[tuple[ItemT, Cost | None]]:
    """Yield what was asked together, each with its cost; the charges stand with the first."""
    for number, each in enumerate(asked):
        yield each, cost if cost is None or number == 0 else cost.without_charges()

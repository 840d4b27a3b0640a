"""A request to a model, its reply, and the calls, tokens and time that it costs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from numbers import Real
from time import monotonic
from typing import Any, Generic, TypeVar

from prism.errors import BudgetSpentError, FieldValueError, LLMError, UselessReplyError

_ResultT = TypeVar("_ResultT")

Token = tuple[str, Sequence[Any]]
"""A token of a reply without what wraps a letter, and its alternatives as the server lists them."""

USUAL_TRIES = 2
"""How often a model is asked if its replies are useless, each time in other words."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply to a conversation.

    Args:
        text: Its text.
        model: The model.
        host: Server it runs on.
        tokens: The reply's tokens with their alternatives, if the server gives them.
    """

    text: str
    model: str = ""
    host: str = ""
    tokens: Sequence[Token] = field(default=(), repr=False)


def _as_it_is(reply: ChatReply) -> Any:
    return reply


@dataclass(frozen=True, slots=True)
class Request(Generic[_ResultT]):
    """A conversation to send, the form of its answer, and how the answer is read.

    Args:
        messages: ``{"role": ..., "content": ...}``, oldest first.
        schema: JSON schema that the reply must follow.
        read: Returns what a reply says; raises UselessReplyError if it cannot be used.
        how: How to respond, in words, for asking again.
        variation: A number added to the seed, so that the same prompt may get another answer.
        most_tokens: Tokens that the reply may have; None for as many as the server allows.
        limit: Tokens that the reply may have, even if the server allows more; None for no limit.
        chances: Whether to request the log-probabilities of its tokens.
        attempts: Requests in all, whatever fails; None for as many as the servers allow.
    """

    messages: Sequence[Mapping[str, Any]]
    schema: dict[str, Any] | None = None
    read: Callable[[ChatReply], _ResultT] = _as_it_is
    how: str = ""
    variation: int = 0
    most_tokens: int | None = None
    chances: bool = False
    limit: int | None = None
    attempts: int | None = None

    def tokens(self, usual: int | None) -> int | None:
        """Return how many tokens the reply may have, of which a server's settings allow some."""
        allowed = [each for each in (usual or self.most_tokens, self.limit) if each is not None]
        return min(allowed, default=None)

    @property
    def text(self) -> str:
        """The prompt."""
        return str(self.messages[-1]["content"])

    def reworded(self, problem: str, number: int) -> Request[_ResultT]:
        """Return a request that says why the last reply was useless, and how to respond.

        It is a single message, since not every client accepts a conversation. Its number gives a
        model that repeats itself at temperature 0 something new to read, even if the problem is the
        same.

        Args:
            problem: Why the last reply was useless.
            number: How many replies were useless.
        """
        replies = "reply" if number == 1 else f"{number} replies"
        correction = f"Your last {replies} could not be used: {problem}\n{self.how}"
        return replace(self, messages=prompted(f"{self.text.rstrip()}\n\n{correction}\n"))

    def lacks(self, reply: ChatReply) -> bool:
        """Return whether a reply cannot be used."""
        try:
            self.read(reply)
        except LLMError:
            return True
        return False


def prompted(text: str) -> list[dict[str, str]]:
    """Return a prompt as the messages of a conversation."""
    return [{"role": "user", "content": text}]


async def answered(
    request: Request[_ResultT],
    ask: Callable[[Request[_ResultT]], Awaitable[_ResultT]],
    tries: int = USUAL_TRIES,
) -> _ResultT:
    """Ask, and again in other words while the model's replies are useless.

    If asking again fails, the problem of the first reply is more informative.

    Args:
        request: The request.
        ask: Sends a request, and reads its reply.
        tries: How often to ask.

    Raises:
        LLMError: If there is no reply that can be used.
    """
    problems: list[UselessReplyError] = []
    wording = request
    while len(problems) < tries:
        try:
            return await ask(wording)
        except UselessReplyError as problem:
            problems.append(problem)
            wording = request.reworded(str(problem), len(problems))
        except LLMError:
            if not problems:
                raise
            break

    raise problems[0]


# Limits of a run


class Budget:
    """Limits on calls, tokens and time. Once one is spent, decisions fall back.

    A request is counted before it is sent, and its tokens once it has ended, so the tokens of open
    requests may exceed the limit. Only the deadline cuts a request off.

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
        """Seconds since the first question, which are counted only if there is a deadline."""
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
    # importing it costs a third of importing the engine; whoever waits has it loaded
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

OPTIONAL_COST_KEYS = ("queue_seconds", "request_seconds", "done_reason", "repaired", "money")
"""Keys of the cost that it has if known."""

_CUT = ("length", "max_tokens", "max_output_tokens", "model_length")
"""Reasons of servers for the end of a reply that ran out of tokens."""

Prices = tuple[float | None, float | None]
"""The prices of a million tokens that a model reads and writes; None for an unknown one."""


def price_of(prices: Prices, read: int, written: int) -> float | None:
    """Return the money that tokens cost; None if no price is known."""
    if prices == (None, None):
        return None
    return (read * (prices[0] or 0.0) + written * (prices[1] or 0.0)) / 1_000_000


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
        """Count the tokens and the money that a server reports, unless they are impossible."""
        input_tokens, output_tokens = count_of(read), count_of(written)
        _count(self, input_tokens, output_tokens)
        self._pay(money if type(money) in (int, float) and 0 <= money < inf else None)
        if self.budget is not None:
            self.budget.add(tokens=(input_tokens or 0) + (output_tokens or 0))

    def price(self, prices: Prices) -> None:
        """Compute the money from the tokens, if they are known and no server has reported it."""
        is_counted = (self.input_tokens, self.output_tokens) != (None, None)
        if self.money is None and is_counted:
            self._pay(price_of(prices, self.input_tokens or 0, self.output_tokens or 0))

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
        if (self.done_reason or "").lower() not in _CUT:
            return ""

        wrote = "" if self.output_tokens is None else f" after {self.output_tokens} tokens"
        cure = "allow more (reply_tokens, window), or less thinking"
        return f"; the model was still writing{wrote}: {cure}"

    def without_charges(self) -> Cost:
        """Return the cost of another decision with the same answer."""
        charges: Any = {"money": None, "repaired": None, "repairs": []}
        return replace(self, attempts=0, input_tokens=0, output_tokens=0, on_slot=None, **charges)


def _count(cost: Cost, read: int | None, written: int | None) -> None:
    """Add the tokens of a reply; None leaves a count as it is."""
    if read is not None:
        cost.input_tokens = (cost.input_tokens or 0) + read
    if written is not None:
        cost.output_tokens = (cost.output_tokens or 0) + written


def count_of(value: Any) -> int | None:
    """Return a token count that a server reports, also as 12.0, or None if it is impossible."""
    is_number = type(value) in (int, float)
    return int(value) if is_number and 0 <= value <= MOST_TOKENS else None


# Values that may be missing

_KindT = TypeVar("_KindT")


def of_kind(kind: type[_KindT], value: Any) -> _KindT | None:
    """Return a value if it is of a type, else None."""
    return value if isinstance(value, kind) else None


def first(value: Any, *names: str) -> Any:
    """Return the first of these keys or attributes that has a value."""
    is_mapping = isinstance(value, Mapping)
    for name in names:
        part = value.get(name) if is_mapping else getattr(value, name, None)
        if part is not None:
            return part

    return None


def without_none(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def known_of(value: object, names: Iterable[str]) -> dict[str, Any]:
    """Return those of a value's attributes that it has and that are not None."""
    return {name: each for name in names if (each := getattr(value, name, None)) is not None}


# Lengths

TokenCounter = Callable[[str], int]
"""Returns the number of tokens of a text, or more; never fewer if a limit must hold."""

_BYTES_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """Estimate the number of tokens in a text: one for four bytes, as in English.

    Args:
        text: The text, in any language.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)

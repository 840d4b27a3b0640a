"""A budget that runs in several processes share, kept in a file that outlives any of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from prism.statechart import Budget

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

MOST_SHARERS = 256
"""How many processes may share a budget at a time."""

_HEAD = struct.Struct("<qqqddd")
_SHARE = struct.Struct("<qq")
_BYTES = _HEAD.size + MOST_SHARERS * _SHARE.size
_BYTES_PER_TOKEN = 4
_SECONDS_BETWEEN_LOOKS = 0.02


@dataclass(slots=True)
class Spent:
    """What all who share a budget have spent, and what they have under way.

    Args:
        calls: Requests made.
        tokens: Tokens read and written.
        replies: Replies that cost tokens.
        began: When the first question was put, by the machine's clock; 0 before it.
        seen: When the budget was looked at last.
        before: Seconds that had gone before it was taken up again.
        under_way: For each process, its requests under way and the bytes of their prompts.
    """

    calls: int
    tokens: int
    replies: int
    began: float
    seen: float
    before: float
    under_way: list[tuple[int, int]]

    def to_bytes(self) -> bytes:
        """Return it as the file has it."""
        head = (self.calls, self.tokens, self.replies, self.began, self.seen, self.before)
        return _HEAD.pack(*head) + b"".join(_SHARE.pack(*each) for each in self.under_way)

    @classmethod
    def from_bytes(cls, content: bytes) -> Spent:
        """Read what `to_bytes` returned; an empty file is a budget of which nothing is spent."""
        content = content.ljust(_BYTES, b"\0")
        shares = _SHARE.iter_unpack(content[_HEAD.size : _BYTES])
        calls, tokens, replies, began, seen, before = _HEAD.unpack_from(content)
        under_way = [(each[0], each[1]) for each in shares]
        return cls(calls, tokens, replies, began, seen, before, under_way)

    def seconds(self, now: float) -> float:
        """Return the seconds since the first question, those before an interruption included."""
        return self.before + (now - self.began if self.began else 0.0)


class Ledger:
    """The file of a budget that several processes share.

    Every change is made under a lock and by one write, so that a process may be killed at any
    instant: what it had spent by then stays spent.

    Args:
        path: The file; it is made if it is not there.
        sharer: Which of the processes this is, from 0.
        max_calls: Requests that all may make together.
        max_tokens: Tokens that all may use together.
        deadline: Seconds from the first question of any of them.
    """

    def __init__(
        self,
        path: Path,
        sharer: int = 0,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        deadline: float | None = None,
    ) -> None:
        self.path = path
        self.sharer = sharer
        self.max_calls = max_calls
        self.max_tokens = max_tokens
        self.deadline = deadline
        path.open("ab").close()

    @contextmanager
    def changing(self) -> Iterator[Spent]:
        """Yield what is spent, and write down what the block makes of it."""
        with self.path.open("r+b", buffering=0) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            before = file.read(_BYTES)
            spent = Spent.from_bytes(before)
            yield spent
            if (after := spent.to_bytes()) != before:
                file.seek(0)
                file.write(after)

    def look(self) -> Spent:
        """Return what is spent."""
        with self.changing() as spent:
            return spent

    def take_up(self) -> None:
        """Go on after an interruption: the time in between is not counted, and nothing runs."""
        with self.changing() as spent:
            spent.before = spent.seconds(spent.seen)
            spent.began = spent.seen = 0.0
            spent.under_way = [(0, 0)] * MOST_SHARERS

    def forget(self, sharer: int) -> None:
        """Count no longer what a process that has ended had under way."""
        with self.changing() as spent:
            spent.under_way[sharer] = (0, 0)


class SharedBudget(Budget):
    """The part that one run takes in a budget that others spend from, too.

    `calls` and `tokens` are those of this run; the limits hold for all together. A request for
    which too few tokens are left waits until others have ended, in whichever process.

    Args:
        ledger: The file of the budget.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(max_tokens=ledger.max_tokens, deadline=ledger.deadline)
        self._ledger = ledger
        self.clock = monotonic

    def take(self) -> str | None:
        """Take one call out of the budget; see `prism.statechart.Budget.take`."""
        with self._ledger.changing() as spent:
            limit = self._limit(spent)
            if limit is None:
                spent.calls += 1
                self.calls += 1

        return limit

    def add(self, *, retries: int = 0, tokens: int = 0) -> None:
        """Count what a call has cost beyond itself."""
        super().add(retries=retries, tokens=tokens)
        with self._ledger.changing() as spent:
            spent.calls += retries
            spent.tokens += tokens
            spent.replies += tokens > 0

    async def reserve(self, prompt_bytes: int) -> None:
        """Reserve what a request may cost, waiting for others under way if too little is left."""
        # costs a third of importing the engine, and is loaded already where this runs
        import asyncio

        while not self._reserved(prompt_bytes):
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

    def release(self, prompt_bytes: int) -> None:
        """Give back what was reserved."""
        with self._ledger.changing() as spent:
            self._change(spent, -1, -prompt_bytes)

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline, or None without one; starts the clock."""
        if self._ledger.deadline is None:
            return None

        with self._ledger.changing() as spent:
            return self._seconds_left(spent)

    def restore(self, calls: int, tokens: int, seconds: float) -> None:  # noqa: ARG002
        """Count for this run what it had spent; the file has it already."""
        self.calls += calls
        self.tokens += tokens

    def spent(self) -> str | None:
        """Return which limit is spent, or None while everything is left."""
        with self._ledger.changing() as spent:
            return self._limit(spent)

    def to_dict(self) -> dict[str, float]:
        """Return what this run has spent; the time of all is in the file."""
        return {"calls": self.calls, "tokens": self.tokens, "seconds": 0.0}

    def _reserved(self, prompt_bytes: int) -> bool:
        with self._ledger.changing() as spent:
            if not self._has_room_in(spent, prompt_bytes):
                return False

            self._change(spent, 1, prompt_bytes)
            return True

    def _has_room_in(self, spent: Spent, prompt_bytes: int) -> bool:
        most = self._ledger.max_tokens
        under_way = sum(each[0] for each in spent.under_way)
        # one request is always allowed, and a budget that is spent refuses whoever asks
        if most is None or not under_way or self._limit(spent) is not None:
            return True

        if spent.replies:
            estimate = (under_way + 1) * spent.tokens / spent.replies
        else:
            waiting = sum(each[1] for each in spent.under_way)
            estimate = (waiting + prompt_bytes) / _BYTES_PER_TOKEN

        return spent.tokens + estimate <= most

    def _change(self, spent: Spent, requests: int, prompt_bytes: int) -> None:
        sharer = self._ledger.sharer
        under_way, size = spent.under_way[sharer]
        # the place may have been cleared meanwhile
        spent.under_way[sharer] = (max(0, under_way + requests), max(0, size + prompt_bytes))

    def _limit(self, spent: Spent) -> str | None:
        ledger = self._ledger
        if ledger.max_calls is not None and spent.calls >= ledger.max_calls:
            return f"budget spent: {ledger.max_calls} calls of all runs together"
        if ledger.max_tokens is not None and spent.tokens >= ledger.max_tokens:
            return f"budget spent: {ledger.max_tokens} tokens of all runs together"
        if self._seconds_left(spent) == 0.0:
            return f"budget spent: {ledger.deadline:g} seconds of all runs together"

        return None

    def _seconds_left(self, spent: Spent) -> float | None:
        if self._ledger.deadline is None:
            return None

        now = self.clock()
        spent.began = spent.began or now
        spent.seen = now

        return max(0.0, self._ledger.deadline - spent.seconds(now))


_lent: ContextVar[Ledger | None] = ContextVar("_lent", default=None)


@contextmanager
def lending(ledger: Ledger) -> Iterator[None]:
    """Let the runs that are made in the block spend from one budget, that of a ledger."""
    token = _lent.set(ledger)
    try:
        yield
    finally:
        _lent.reset(token)


def budget_for(max_calls: int | None, max_tokens: int | None, deadline: float | None) -> Budget:
    """Return the budget of a run: a share of the one that is lent, else one of its own."""
    ledger = _lent.get()
    if ledger is not None:
        return SharedBudget(ledger)

    return Budget(max_calls=max_calls, max_tokens=max_tokens, deadline=deadline)

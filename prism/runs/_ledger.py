"""A budget that runs in several processes share, kept in a file that outlives any of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from time import time

from prism.statechart import Budget
from prism.statechart.reasoner._spending import Spent

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

MOST_SHARERS = 256
"""Most processes that may share a budget."""

_HEAD = struct.Struct("<qqqddd")
_SHARE = struct.Struct("<qq")
_BYTES = _HEAD.size + MOST_SHARERS * _SHARE.size
_SECONDS_BETWEEN_LOOKS = 0.02


@dataclass(slots=True)
class Page(Spent):
    """The contents of a budget's file.

    Args:
        seen: When the budget was last looked at.
        shares: For each process, its open requests and the bytes of their prompts.
    """

    seen: float = 0.0
    shares: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)] * MOST_SHARERS)

    def to_bytes(self) -> bytes:
        """Return the bytes of the file."""
        times = (self.began or 0.0, self.seen, self.before)
        head = _HEAD.pack(self.calls, self.tokens, self.replies, *times)
        return head + b"".join(_SHARE.pack(*each) for each in self.shares)

    @classmethod
    def from_bytes(cls, content: bytes) -> Page:
        """Read what `to_bytes` returned; an empty file is an unspent budget."""
        content = content.ljust(_BYTES, b"\0")
        calls, tokens, replies, began, seen, before = _HEAD.unpack_from(content)
        shares = [(each[0], each[1]) for each in _SHARE.iter_unpack(content[_HEAD.size : _BYTES])]
        under_way, prompt_bytes = map(sum, zip(*shares, strict=True))
        spent = (calls, tokens, replies, began or None, before, under_way, prompt_bytes)
        return cls(*spent, seen, shares)

    def share_out(self, sharer: int, requests: int, prompt_bytes: int) -> None:
        """Attribute newly opened requests to a process."""
        mine = self.shares[sharer]
        more = (self.under_way - requests, self.prompt_bytes - prompt_bytes)
        # the place may have been cleared in the meantime
        self.shares[sharer] = (max(0, mine[0] + more[0]), max(0, mine[1] + more[1]))


class Ledger:
    """The file of a budget that several processes share.

    Every change is made under a lock and by a single write. If a process is killed at any moment,
    what it had spent by then stays spent.

    Args:
        path: The file, created if it does not exist.
        sharer: The index of this process, from 0.
        max_calls: Requests that all processes may make together.
        max_tokens: Tokens that all processes may use together.
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
    def changing(self) -> Iterator[Page]:
        """Yield the spending, and store what the block changes."""
        with self.path.open("r+b", buffering=0) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            before = file.read(_BYTES)
            page = Page.from_bytes(before)
            were = (page.under_way, page.prompt_bytes)
            yield page
            page.share_out(self.sharer, *were)
            if (after := page.to_bytes()) != before:
                file.seek(0)
                file.write(after)

    def look(self) -> Page:
        """Return the spending."""
        with self.changing() as spent:
            return spent

    def take_up(self) -> None:
        """Continue after an interruption, of which neither time nor open requests count."""
        with self.changing() as spent:
            spent.before = spent.seconds(spent.seen)
            spent.began, spent.seen = None, 0.0
            spent.shares = [(0, 0)] * MOST_SHARERS

    def forget(self, sharer: int) -> None:
        """Stop counting the open requests of a process that has ended."""
        with self.changing() as spent:
            spent.shares[sharer] = (0, 0)


class SharedBudget(Budget):
    """One run's part of a budget that other runs share.

    `calls` and `tokens` are those of this run; the limits apply to all runs together. A request for
    which too few tokens are left waits until others have ended, in any process.

    Args:
        ledger: The file of the budget.
    """

    _whose = " of all runs together"

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(
            max_calls=ledger.max_calls, max_tokens=ledger.max_tokens, deadline=ledger.deadline
        )
        self._ledger = ledger
        # runs on other machines read it as well
        self.clock = time

    def _changing(self) -> AbstractContextManager[Page]:
        return self._ledger.changing()

    async def reserve(self, prompt_bytes: int) -> None:
        """Reserve the estimated cost of a request; if too little is left, wait for others."""
        # imported here as it takes a third of the engine's import time; already loaded when this
        # runs
        import asyncio

        while not self._has_reserved(prompt_bytes):
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

    def restore(self, calls: int, tokens: int, seconds: float) -> None:  # noqa: ARG002
        """Restore the run's own spending, which is already in the file."""
        self.calls += calls
        self.tokens += tokens

    def to_dict(self) -> dict[str, float]:
        """Return what this run has spent; the time of all runs is in the file."""
        return {"calls": self.calls, "tokens": self.tokens, "seconds": 0.0}

    def _seconds_left(self, book: Spent) -> float:
        if isinstance(book, Page):
            book.seen = self.clock()
        return super()._seconds_left(book)


class Tally:
    """What one run has spent, in its own file, which outlives the process.

    Each request is recorded before it is sent, so a run that is killed and resumed knows about it.
    A write of a few bytes at the beginning of a file is complete or absent, even if the process is
    killed during it.

    Args:
        path: The file, created if it does not exist.
    """

    _NUMBERS = struct.Struct("<qq")

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.touch()
        self._file = path.open("r+b", buffering=0)

    def read(self) -> tuple[int, int]:
        """Return the recorded calls and tokens."""
        self._file.seek(0)
        content = self._file.read(self._NUMBERS.size).ljust(self._NUMBERS.size, b"\0")
        calls, tokens = self._NUMBERS.unpack(content)
        return calls, tokens

    def write(self, calls: int, tokens: int) -> None:
        """Record what is spent."""
        self._file.seek(0)
        self._file.write(self._NUMBERS.pack(calls, tokens))

    def __enter__(self) -> Tally:
        """Return itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self._file.close()


@contextmanager
def tallied(budget: Budget, path: Path) -> Iterator[None]:
    """Record a budget in a file inside the block, and count what the file already contains.

    Args:
        budget: The budget of the restored run; a shared budget has its own file.
        path: The file.
    """
    if isinstance(budget, SharedBudget):
        yield
        return

    with Tally(path) as tally:
        calls, tokens = tally.read()
        # requests after the last checkpoint, which are recorded nowhere else
        budget.restore(max(0, calls - budget.calls), max(0, tokens - budget.tokens), 0.0)
        tally.write(budget.calls, budget.tokens)
        budget.note = tally.write
        try:
            yield
        finally:
            budget.note = None


_lent: ContextVar[Ledger | None] = ContextVar("_lent", default=None)


@contextmanager
def lending(ledger: Ledger) -> Iterator[None]:
    """Make runs that are created in the block share the budget of a ledger."""
    token = _lent.set(ledger)
    try:
        yield
    finally:
        _lent.reset(token)


def budget_for(max_calls: int | None, max_tokens: int | None, deadline: float | None) -> Budget:
    """Return the budget of a run: a part of the shared one, or else its own."""
    ledger = _lent.get()
    if ledger is not None:
        return SharedBudget(ledger)

    return Budget(max_calls=max_calls, max_tokens=max_tokens, deadline=deadline)

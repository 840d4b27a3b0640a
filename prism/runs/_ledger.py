"""A budget that runs in several processes share, kept in a file that outlives any of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from time import time

from prism.reasoner._spending import Spent
from prism.statechart import Budget

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

_CONTENT = struct.Struct("<qqddd")


@dataclass(slots=True)
class Page(Spent):
    """The contents of a budget's file.

    Args:
        seen: When the budget was last looked at.
    """

    seen: float = 0.0

    def to_bytes(self) -> bytes:
        """Return the bytes of the file."""
        return _CONTENT.pack(self.calls, self.tokens, self.began or 0.0, self.seen, self.before)

    @classmethod
    def from_bytes(cls, content: bytes) -> Page:
        """Read what `to_bytes` returned; an empty file is an unspent budget."""
        padded = content.ljust(_CONTENT.size, b"\0")
        calls, tokens, began, seen, before = _CONTENT.unpack(padded)
        return cls(calls, tokens, began or None, before, seen)


class Ledger:
    """The file of a budget that several processes share.

    Every change is made under a lock and by a single write. If a process is killed at any moment,
    what it had spent by then stays spent.

    Args:
        path: The file, created if it does not exist.
        max_calls: Requests that all processes may make together.
        max_tokens: Tokens that all processes may use together.
        deadline: Seconds from the first question of any of them.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        deadline: float | None = None,
    ) -> None:
        self.path = path
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
            before = file.read(_CONTENT.size)
            page = Page.from_bytes(before)
            yield page
            if (after := page.to_bytes()) != before:
                file.seek(0)
                file.write(after)

    def look(self) -> Page:
        """Return the spending."""
        with self.changing() as spent:
            return spent

    def take_up(self) -> None:
        """Continue after an interruption, whose time does not count."""
        with self.changing() as spent:
            spent.before = spent.seconds(spent.seen)
            spent.began, spent.seen = None, 0.0


class SharedBudget(Budget):
    """One run's part of a budget that other runs share.

    `calls` and `tokens` are those of this run; the limits apply to all runs together.

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

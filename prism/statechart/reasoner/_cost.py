"""What a model's answers cost, and how much a run may spend on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from prism.errors import FieldValueError


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
    to the same question of another agent, attempts and tokens are 0, so that they can be added up.

    Args:
        latency: Seconds from asking to the answer, the wait for a slot included.
        model: Model asked, where known.
        host: Server asked last, where known.
        attempts: Requests sent; 0 where nothing could be asked.
        input_tokens: Tokens the model read, where known.
        output_tokens: Tokens it wrote, where known.
        limits: Bounds the question while it is asked; for clients with slots of their own.
    """

    latency: float = 0.0
    model: str | None = None
    host: str | None = None
    attempts: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    limits: Limits | None = field(default=None, repr=False, compare=False)

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

    def add_tokens(self, read: int | None, written: int | None) -> None:
        """Add the tokens of one reply; None leaves a count as it is."""
        if read is not None:
            self.input_tokens = (self.input_tokens or 0) + read
        if written is not None:
            self.output_tokens = (self.output_tokens or 0) + written

    def without_charges(self) -> Cost:
        """Return the cost of another decision that the same request answered."""
        return Cost(self.latency, self.model, self.host, 0, 0, 0)


COST_KEYS = ("latency", "model", "host", "attempts", "input_tokens", "output_tokens")
"""What a decision's event says of its cost."""


class Budget:
    """Limits on calls, tokens and time; when one is spent, decisions fall back and the run goes on.

    What a request costs beyond itself, its retries and tokens, is known when it ends. Requests that
    are under way when a limit is reached are finished, so a run may exceed it by those; only the
    deadline cuts them off.

    Args:
        max_calls: Requests to the model, retries included.
        max_tokens: Tokens read and written.
        deadline: Seconds from the first question.

    Raises:
        FieldValueError: If a limit is not above 0.

    Attributes:
        calls: Requests made.
        tokens: Tokens read and written.
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
        self._max_calls = max_calls
        self._max_tokens = max_tokens
        self._deadline = deadline
        self._ends: float | None = None
        # a test may set another
        self.clock: Callable[[], float] = monotonic

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
        if self._deadline is not None and seconds > 0:
            self._ends = self.clock() + self._deadline - seconds

    def spent(self) -> str | None:
        """Return which limit is spent, or None while everything is left."""
        if self._max_calls is not None and self.calls >= self._max_calls:
            return f"budget spent: {self._max_calls} calls"
        if self._max_tokens is not None and self.tokens >= self._max_tokens:
            return f"budget spent: {self._max_tokens} tokens"
        if self.seconds_left() == 0.0:
            return f"budget spent: {self._deadline:g} seconds"

        return None


def require_positive(**limits: float | None) -> None:
    """Raise FieldValueError for the first limit that is given and not above 0."""
    for name, value in limits.items():
        if value is not None and not value > 0:
            raise FieldValueError(f"{name} must be above 0, got {value!r}")

"""How much a run may spend on a model."""

from __future__ import annotations

from time import monotonic

from prism.errors import FieldValueError


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
        for name, value in (
            ("max_calls", max_calls),
            ("max_tokens", max_tokens),
            ("deadline", deadline),
        ):
            if value is not None and not value > 0:
                raise FieldValueError(f"{name} must be above 0, got {value!r}")

        self.calls: int = 0
        self.tokens: int = 0
        self._max_calls = max_calls
        self._max_tokens = max_tokens
        self._deadline = deadline
        self._ends: float | None = None

    def take(self) -> str | None:
        """Take one call out of the budget.

        Returns:
            None if there was one left, else what is spent.
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
        """Return the seconds until the deadline, or None without one; the first call starts the clock."""
        if self._deadline is None:
            return None
        if self._ends is None:
            self._ends = monotonic() + self._deadline

        return max(0.0, self._ends - monotonic())

    def to_dict(self) -> dict[str, float]:
        """Return what was spent so far: calls, tokens, and seconds since the first question."""
        left = self.seconds_left() if self._ends is not None else self._deadline
        seconds = 0.0 if self._deadline is None or left is None else self._deadline - left
        return {"calls": self.calls, "tokens": self.tokens, "seconds": round(seconds, 3)}

    def restore(self, calls: int, tokens: int, seconds: float) -> None:
        """Count what an interrupted run has spent before, as `to_dict` gave it; the clock goes on from now."""
        self.calls += calls
        self.tokens += tokens
        if self._deadline is not None and seconds > 0:
            self._ends = monotonic() + self._deadline - seconds

    def spent(self) -> str | None:
        """Tell what is spent, or None while everything is left."""
        if self._max_calls is not None and self.calls >= self._max_calls:
            return f"budget spent: {self._max_calls} calls"
        if self._max_tokens is not None and self.tokens >= self._max_tokens:
            return f"budget spent: {self._max_tokens} tokens"
        if self.seconds_left() == 0.0:
            return f"budget spent: {self._deadline:g} seconds"

        return None

"""The requests of one question, one by one, for those who record what was asked and said."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

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

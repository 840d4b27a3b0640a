"""What a run lends the agents of other classes that take part in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prism.statechart.reasoner._texts import BaseWriter, TextCall, Written
from prism.telemetry._loggers import EventLogger


@dataclass(frozen=True, slots=True)
class Lent:
    """What a run lends an object that takes part in it.

    Args:
        writer: Answers its text calls, together with those of all others of the tick.
        logger: Where the run's events go.
        clock: Returns the run's time, in seconds since the epoch.
        seed: Seed of the run's random numbers.
    """

    writer: BaseWriter
    logger: EventLogger | None
    clock: Callable[[], float]
    seed: int


class NobodyWriter(BaseWriter):
    """Writes where there is no model: every call fails."""

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Answer that there is no model."""
        return [Written(None, "failed", reason="there is no model") for _ in calls]

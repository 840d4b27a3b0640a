"""Who decides the open questions of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from prism.statechart import Decision, Question
from prism.telemetry._loggers import EventLogger

Event = Mapping[str, Any]
"""One line of a run's log."""


class Decider(Protocol):
    """Who decides the open questions of a run; every reasoner built on `BaseReasoner` can.

    One that has a ``concurrency`` above 0 is asked about so many questions at the same time.
    """

    async def decide_many(
        self, questions: Sequence[Question], *, logger: EventLogger | None = None
    ) -> list[Decision]:
        """Answer several questions, in their order."""


@runtime_checkable
class Remembering(Protocol):
    """One whose later answers depend on its earlier ones, such as one that replays a log."""

    def remember(self, answer: Event) -> None:
        """Take note of a decision, or of a text, of before the run was interrupted."""

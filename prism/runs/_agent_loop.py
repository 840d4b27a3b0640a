"""What runs of one agent have in common, whether it takes turns of a workflow or thinks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prism.runlog import SimulatedClock
from prism.statechart import Budget
from prism.statechart.reasoner._by_agent import costs_told, models_told
from prism.statechart.reasoner._texts import BaseWriter, TextCall, Written
from prism.telemetry._loggers import EventLogger, active_logger
from prism.telemetry.events import (
    AGENT_JOINED,
    ROUND_STARTED,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
    TEXT_WRITTEN,
)

Event = Mapping[str, Any]
RoundT = TypeVar("RoundT")


class AgentLoop(Generic[RoundT]):
    """The base of runs of one agent, whose rounds have one tick and whose model writes texts.

    Args:
        writer: Who writes.
        rounds: Number of rounds.
        seed: Seed of the run.
        logger: Where its events go.
        clock: The run's clock.

    Attributes:
        rounds: Number of rounds.
        ticks_per_round: 1.
        finished: The rounds that have ended.
        reasoner: Who writes.
    """

    def __init__(
        self,
        writer: BaseWriter,
        *,
        rounds: int,
        seed: int,
        logger: EventLogger | None,
        clock: SimulatedClock,
    ) -> None:
        self.rounds: int = rounds
        self.ticks_per_round: int = 1
        self.finished: list[RoundT] = []
        self.reasoner: BaseWriter = writer
        self.logger = logger
        self.clock = clock
        self._seed = seed

    def position(self) -> dict[str, Any]:
        """Return as plain data where the run is: its time, and what it has spent."""
        budget = getattr(self.reasoner, "budget", None)

        return {
            "moment": self.clock.to_list(),
            "spent": budget.to_dict() if isinstance(budget, Budget) else None,
        }

    def go_on_from(self, position: Mapping[str, Any]) -> None:
        """Go on where another run was.

        Args:
            position: What `position` returned there, among other things.
        """
        self.clock.go_on_at(position["moment"])

        budget = getattr(self.reasoner, "budget", None)
        if isinstance(budget, Budget) and position["spent"] is not None:
            budget.restore(**position["spent"])

    def remembered(self, events: Iterable[Event]) -> Iterator[Event]:
        """Pass events on; a writer that answers from a log takes note of its texts among them."""
        remember = getattr(self.reasoner, "remember", None)
        for event in events:
            if remember is not None and event["event"] == TEXT_WRITTEN:
                remember(event)

            yield event

    def announce_start(self, chart: str, agent: Any) -> None:
        """Announce the run, and its agent."""
        self.emit(
            RUN_STARTED,
            schema=SCHEMA_VERSION,
            chart=chart,
            agents=1,
            rounds=self.rounds,
            ticks_per_round=self.ticks_per_round,
            seed=self._seed,
            **models_told([agent], self.reasoner),
        )
        self.emit(AGENT_JOINED, agent_id=agent.agent_id, state=agent.state.value)

    def announce_end(self, **counts: Any) -> None:
        """Announce that the run is over, with what there is to count, and what models cost."""
        self.emit(RUN_ENDED, **counts, **costs_told(self.reasoner))

    def begin_round(self) -> int:
        """Begin the next round and its tick; return its number."""
        number = len(self.finished) + 1
        self.clock.begin_round(number)
        self.emit(ROUND_STARTED, round=number)
        self.clock.advance()

        return number

    def emit(self, event: str, **keys: Any) -> None:
        """Announce an event."""
        logger = active_logger(self.logger)
        if logger is not None:
            logger.info(event, **keys)

    async def close(self) -> None:
        """Close the connections of whoever writes, if it has any."""
        close = getattr(self.reasoner, "close", None)
        if close is not None:
            await close()


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

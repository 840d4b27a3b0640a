"""The seam between the loop and the agents of a world: what a loop asks of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from prism.runlog import SimulatedClock
from prism.telemetry._loggers import EventLogger
from prism.worlds._asking import Answerers
from prism.worlds._decider import Event
from prism.worlds._host import RunHost
from prism.worlds._kinds import Parts
from prism.worlds._people import AgentTable
from prism.worlds._results import Measured
from prism.worlds._snapshot import Decoder, Encoder
from prism.worlds._world import World


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run is made of, besides its agents.

    Args:
        world: The world.
        parts: What its class marks.
        seed: Seed of every random number.
        clock: The run's clock.
        logger: Where the run's events go.
        answerers: Who decides and writes.
    """

    world: World[Any]
    parts: Parts
    seed: int
    clock: SimulatedClock
    logger: EventLogger | None
    answerers: Answerers


class Stage(Protocol):
    """The agents of a run: how they begin, act and are counted, and what is kept of them.

    The loop knows rounds, ticks, treatments and measures. Which classes the agents have, what they
    do in a tick and how their answers are applied is known to the stage only.

    Attributes:
        host: The run, as the world sees it.
        has_fields: Whether agents have fields of the user's own.
        logger: Where events go meanwhile; they may wait there for those of earlier decisions.
        open_questions: Number of questions without an answer; other threads may look.
    """

    host: RunHost
    has_fields: bool
    logger: EventLogger | None

    @property
    def open_questions(self) -> int:
        """Number of questions without an answer; other threads may look."""

    def populate(self, agents: int | Iterable[Any] | AgentTable) -> None:
        """Take in the population, or have the world make so many agents."""

    def ready(self) -> None:
        """Prepare for the first tick, after the world's `setup`."""

    def describe(self) -> dict[str, Any]:
        """Return what ``run.started`` says of the agents, and of the world."""

    def announce(self) -> None:
        """Announce the agents of a run that begins."""

    def begin_round(self) -> None:
        """Return the counts to 0, and give everybody new random numbers."""

    async def tick(self) -> None:
        """Give every agent its turn, in their order."""

    async def end_ticks(self) -> None:
        """Settle every question that is still open."""

    def states(self) -> dict[str, int]:
        """Return the number of agents in each state."""

    async def end_round(self) -> None:
        """Do what the agents do at the end of a round, after it has been measured."""

    def summary(
        self, number: int, states: Mapping[str, int], measures: Mapping[str, Measured]
    ) -> Any:
        """Return what a round came to."""

    def results(self, rounds: Sequence[Any]) -> Any:
        """Return what a run came to."""

    def totals(self, results: Any) -> dict[str, Any]:
        """Return what ``run.ended`` says of it."""

    def snapshot(self, code: Encoder) -> dict[str, Any]:
        """Return as plain data, between two rounds, what the log does not tell of the agents."""

    def restore(self, snapshot: Mapping[str, Any], code: Decoder) -> None:
        """Make new agents what those of another run were.

        Raises:
            SimulationError: If the snapshot is of another population.
        """

    def read_log(self, snapshot: Mapping[str, Any], events: Iterable[Event]) -> list[Any]:
        """Take from the log what a snapshot leaves out; return the rounds that had ended."""

    async def close(self) -> None:
        """Cancel what is still being asked; nothing is left running."""

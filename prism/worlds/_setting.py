"""What a run is made of, besides its agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prism.errors import FieldValueError
from prism.runlog import SimulatedClock
from prism.telemetry._loggers import EventLogger
from prism.worlds._asking import Answerers
from prism.worlds._kinds import Parts
from prism.worlds._people import AgentTable
from prism.worlds._world import World

MANY = 100_000
"""Agents up to which the log tells of each, unless it is asked for less."""

LOGGED_OF_MANY = 1_000
"""Of how many it tells of more, unless it is asked for others."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Of how many agents a log tells.

    Args:
        most: Of so many.
        above: If there are more than these; of all, if there are not.
    """

    most: int
    above: int = 0

    def of(self, agents: int) -> int | None:
        """Return of how many agents of so many the log tells; None for all."""
        return min(self.most, agents) if agents > self.above else None


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run is made of, besides its agents.

    Args:
        world: The world.
        parts: What its class marks.
        seed: Seed of every random number.
        ticks_per_round: Ticks in a round.
        clock: The run's clock.
        logger: Where the run's events go.
        answerers: Who decides and writes.
        sampling: Of how many agents the log tells; None for all.
    """

    world: World[Any]
    parts: Parts
    seed: int
    ticks_per_round: int
    clock: SimulatedClock
    logger: EventLogger | None
    answerers: Answerers
    sampling: Sampling | None = None


def sampling_of(agents: Any, asked: int | None) -> Sampling | None:
    """Return of how many agents the log tells; None for all.

    Args:
        agents: How many there are, or a table of them; those that are given are all told of.
        asked: How many were asked for, if any were; 0 where rounds alone are told.

    Raises:
        FieldValueError: If it is none from 1 on.
    """
    if asked is not None:
        return Sampling(asked if asked == 0 else require_count("log_agents", asked))

    # how many a file of social agents holds is known when the run has read it
    is_of_many = agents > MANY if isinstance(agents, int) else isinstance(agents, AgentTable)
    return Sampling(LOGGED_OF_MANY, MANY) if is_of_many else None


def require_count(name: str, value: int) -> int:
    """Return a number of rounds or ticks.

    Raises:
        FieldValueError: If it is none from 1 on.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise FieldValueError(f"{name} must be a whole number, 1 or more, got {value!r}")

    return value


def require_seed(value: int) -> int:
    """Return a seed.

    Raises:
        FieldValueError: If it is no whole number.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise FieldValueError(f"seed must be a whole number, got {value!r}")

    return value

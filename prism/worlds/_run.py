"""A run of a world whose agents are `Agent` objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from prism.runlog import SimulatedClock
from prism.statechart import BaseWriter, Wording
from prism.telemetry._loggers import EventLogger
from prism.worlds._agent import Agent
from prism.worlds._decider import Decider
from prism.worlds._loop import Loop, WorldT
from prism.worlds._people import AgentTable
from prism.worlds._results import WorldResults, WorldRound
from prism.worlds._treatments import Treatment

DEFAULT_AGENTS = 100


class Run(Loop[WorldT, WorldRound, WorldResults]):
    """Runs a world through rounds and ticks.

    Every tick each agent is given its turn, in the order of the population: a time-out if one is
    due, else the step of its kind and state. Decisions are asked together and applied in the order
    of the agents whose steps asked, so a run depends on its seed and the answers alone.

    Args:
        world: The world; a run takes it for itself.
        agents: How many agents the world's ``populate`` is to make, the agents, or a table of them.
        rounds: Number of rounds; by default what the world's class says.
        ticks: Ticks in a round; by default what the world's class says.
        seed: Seed of every random number.
        reasoner: Who decides; a `PolicyReasoner` by default, which draws by the weights of a
            decision.
        writer: Who writes the texts that agents ask for; without one, their templates are taken.
        wording: Length and language of these texts, where a call names none.
        treatments: Treatments of the world's class and the rounds at whose beginning they are
            applied, and ready-made ones: ``["warning@12", SetParameters(20, {"tiring": 0.1})]``.
        logger: Where to write the run's events; None means structlog's own logger, once it is
            configured.
        clock: The run's clock.

    Attributes:
        world: The world.
        agents: The population.
        rounds: Number of rounds.
        ticks_per_round: Ticks in a round.
        finished: The rounds that have ended.
        reasoner: Who decides.
        writer: Who writes; None if nobody was given.
        clock: The run's clock.

    Raises:
        DefinitionError: If the class of the world or of an agent cannot work.
        AgentError: If an agent cannot take part.
        FieldValueError: If a number is out of its range, or there is no such treatment.
        SimulationError: If the world is in a run already.
    """

    def __init__(
        self,
        world: WorldT,
        agents: int | Iterable[Agent] | AgentTable = DEFAULT_AGENTS,
        *,
        rounds: int | None = None,
        ticks: int | None = None,
        seed: int = 0,
        reasoner: Decider | None = None,
        writer: BaseWriter | None = None,
        wording: Wording | None = None,
        treatments: Sequence[str | Treatment] = (),
        logger: EventLogger | None = None,
        clock: SimulatedClock | None = None,
    ) -> None:
        super().__init__(
            world,
            agents,
            rounds=rounds,
            ticks=ticks,
            seed=seed,
            reasoner=reasoner,
            writer=writer,
            wording=wording,
            treatments=treatments,
            logger=logger,
            clock=clock,
        )

    @property
    def agents(self) -> Sequence[Any]:
        """The population, in the order in which it acts."""
        return self._host.agents

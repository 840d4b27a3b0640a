"""A run of the social feed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from prism.agents import SeedPost, SocialAgent
from prism.runlog import SimulatedClock
from prism.simulation import BatchDecider, Loop
from prism.simulation._loop import DEFAULT_ROUNDS, DEFAULT_TICKS_PER_ROUND
from prism.social._composing import Composer, TemplateComposer
from prism.social._posts import Network
from prism.social._results import Results, RoundSummary
from prism.social._world import SocialWorld
from prism.statechart import AgentState, Guard, Statechart
from prism.telemetry._loggers import EventLogger


class Simulation(Loop[RoundSummary, Results]):
    """A population of social agents that scroll, weigh, write and reshare.

    Each tick every agent takes one step: its time-out if due, else what its state calls for. The
    decisions of one tick are asked together and applied in agent order, so a run depends on the
    seed and the answers alone, never on which answer came first. Random numbers are keyed by (seed,
    agent, round).

    Args:
        agents: The population, in the order in which it acts.
        posts: What was posted before the first round, oldest first.
        rounds: Number of rounds, from 1 on.
        ticks_per_round: Steps that an agent takes in a round, from 1 on.
        seed: Seed of every random number.
        reasoner: Decides where several transitions are enabled; a `PolicyReasoner` by default.
        composer: Writes what agents publish; a `TemplateComposer` by default.
        logger: Where to write the run's events; None means structlog's own logger, once it is
            configured.
        clock: The run's clock.
        should_engage: As for `social_media_chart`, for agents whose own method takes something else
            than a post.

    Attributes:
        agents: The population.
        chart: The chart of every agent.
        network: Posts and feeds.
        rounds: Number of rounds.
        finished: The rounds that have ended.
        reasoner: Who decides.
        clock: The run's clock.

    Raises:
        AgentError: If agents lack what the chart or the feed needs; lists all that they lack.
        FieldValueError: If there are no agents, two have the same id, a post is by nobody among
            them, or rounds or ticks are below 1.
    """

    world: SocialWorld

    def __init__(
        self,
        agents: Iterable[SocialAgent],
        posts: Iterable[SeedPost] = (),
        *,
        rounds: int = DEFAULT_ROUNDS,
        ticks_per_round: int = DEFAULT_TICKS_PER_ROUND,
        seed: int = 0,
        reasoner: BatchDecider | None = None,
        composer: Composer | None = None,
        logger: EventLogger | None = None,
        clock: SimulatedClock | None = None,
        should_engage: Guard | None = None,
    ) -> None:
        clock = clock or SimulatedClock()
        composer = composer or TemplateComposer()
        super().__init__(
            partial(SocialWorld, agents, posts, composer, seed, clock, should_engage=should_engage),
            rounds=rounds,
            ticks_per_round=ticks_per_round,
            seed=seed,
            reasoner=reasoner,
            logger=logger,
            clock=clock,
        )
        self.agents: list[SocialAgent] = self.world.agents
        self.chart: Statechart[AgentState] = self.world.chart
        self.network: Network = self.world.network

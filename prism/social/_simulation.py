"""A run of the social feed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from prism.agents import SeedPost, SocialAgent
from prism.runlog import SimulatedClock
from prism.social._composing import Composer
from prism.social._feed import DEFAULT_ROUNDS, DEFAULT_TICKS_PER_ROUND, Feed
from prism.social._parameters import Parameters
from prism.social._posts import Network
from prism.social._results import Results, RoundSummary
from prism.social._stage import FeedStage
from prism.statechart import AgentState, BaseWriter, Guard, Statechart, Wording
from prism.telemetry._loggers import EventLogger
from prism.worlds import Decider, Loop, Treatment
from prism.worlds._loop import require_count


class Simulation(Loop[Feed, RoundSummary, Results]):
    """A population of social agents that scroll, weigh, write and reshare.

    Each tick every agent takes one step: its time-out if due, else what its state calls for. The
    decisions of one tick are asked together and applied in agent order, so a run depends on the
    seed and the answers alone, never on which answer came first. Random numbers are keyed by (seed,
    agent, round).

    Args:
        agents: The population, in the order in which it acts.
        posts: What was posted before the first round, oldest first; None for what the parameter
            ``opening`` says.
        rounds: Number of rounds, from 1 on.
        ticks_per_round: Steps that an agent takes in a round, from 1 on.
        seed: Seed of every random number.
        reasoner: Decides where several transitions are enabled; a `PolicyReasoner` by default.
        writer: Who writes the words of what agents publish, such as a `prism.statechart.Writer`;
            without one, and where it fails, those of the composer stand.
        wording: Length and language of these words; by default 280 characters.
        composer: Drafts what agents publish; a `TemplateComposer` by default.
        logger: Where to write the run's events; None means structlog's own logger, once it is
            configured.
        clock: The run's clock.
        should_engage: As for `social_media_chart`, for agents whose own method takes something else
            than a post.
        world: A feed of your own, with parameters, measures and treatments.
        parameters: All numbers of the feed's behaviour; by default those that ``world`` has.
        treatments: Treatments of that feed and the rounds at whose beginning they are applied, and
            ready-made ones: ``["warning@3", Likes(1, share=0.5)]``.

    Attributes:
        world: The feed as a world.
        agents: The population.
        chart: The chart of every agent.
        network: Posts and feeds.
        rounds: Number of rounds.
        finished: The rounds that have ended.
        reasoner: Who decides.
        writer: Who writes; None if nobody was given.
        clock: The run's clock.

    Raises:
        AgentError: If agents lack what the chart or the feed needs; lists all that they lack.
        FieldValueError: If there are no agents, two have the same id, a post is by nobody among
            them, or rounds or ticks are below 1.
    """

    def __init__(
        self,
        agents: Iterable[SocialAgent],
        posts: Iterable[SeedPost] | None = (),
        *,
        rounds: int = DEFAULT_ROUNDS,
        ticks_per_round: int = DEFAULT_TICKS_PER_ROUND,
        seed: int = 0,
        reasoner: Decider | None = None,
        writer: BaseWriter | None = None,
        wording: Wording | None = None,
        composer: Composer | None = None,
        logger: EventLogger | None = None,
        clock: SimulatedClock | None = None,
        should_engage: Guard | None = None,
        world: Feed | None = None,
        parameters: Parameters | None = None,
        treatments: Sequence[str | Treatment] = (),
    ) -> None:
        feed = Feed() if world is None else world
        if parameters is not None:
            feed.parameters = parameters
        feed.give(
            posts=None if posts is None else list(posts), composer=composer, guard=should_engage
        )
        super().__init__(
            feed,
            list(agents),
            rounds=rounds,
            ticks=require_count("ticks_per_round", ticks_per_round),
            seed=seed,
            reasoner=reasoner,
            writer=writer,
            wording=wording,
            treatments=treatments,
            logger=logger,
            clock=clock,
        )
        stage = cast(FeedStage, self._stage)
        self.agents: list[SocialAgent] = stage.agents
        self.chart: Statechart[AgentState] = stage.chart
        self.network: Network = stage.network

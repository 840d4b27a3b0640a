"""The agents of a feed: their population, chart and order, and what a loop asks of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from prism.agents import ARCHETYPES, Archetype, SeedPost, SocialAgent, opening_posts
from prism.agents.social_agent import plain_attributes
from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.runlog import SimulatedClock
from prism.social._activity import Hours, activities, waits
from prism.social._composing import PostTexts, share_topics
from prism.social._feeds import Feeds
from prism.social._networks import follow_network
from prism.social._parameters import CLASSIC, SETTLED, Parameters
from prism.social._posts import Draft, HoldingLogger, Network, Post
from prism.social._results import Activity, Results, RoundSummary, summarize
from prism.social._snapshot import (
    describe_readers,
    describe_under_way,
    require_same_readers,
    restore_readers,
    restore_under_way,
)
from prism.social._steps import FeedRules, FeedSteps
from prism.social._treatments import Treated
from prism.statechart import (
    AgentState,
    Decision,
    Guard,
    Question,
    Statechart,
    TextCall,
    Written,
    social_feed_chart,
    social_media_chart,
    state_distribution,
)
from prism.statechart.inspection._lint import require_fit
from prism.statechart.social import DECIDES
from prism.telemetry._loggers import EventLogger
from prism.telemetry.events import AGENT_JOINED
from prism.worlds._asking import Event, asking_with
from prism.worlds._host import RunHost, population
from prism.worlds._parameters import parameters_told
from prism.worlds._people import AgentTable
from prism.worlds._results import Measured
from prism.worlds._snapshot import Decoder, Encoder
from prism.worlds._stage import Setting

_NEEDS = (
    "agent_id",
    "name",
    "archetype",
    "interests",
    "following",
    "timeout_threshold",
    "ticks_in_state",
    "state_history",
)
"""What the feed uses of an agent, besides what the chart does."""

_HOME = "prism.social._feed"


class FeedHost(RunHost):
    """A run of the feed, as the feed sees it; its agents know nothing of it.

    Attributes:
        stage: What the agents do.
    """

    stage: FeedStage

    def begin_phase(self, phase: str) -> None:
        """Give the feed new random numbers; each agent gets its own at the beginning of a round."""
        self._phase, self._world_random = phase, None

    def able_to_be_in(self, state: Any) -> int:
        """Return the number of agents whose chart has a state."""
        return len(self.agents) if isinstance(state, AgentState) else 0


class FeedStage(FeedSteps):
    """What social agents do in their states; see `prism.worlds._stage.Stage`.

    Random numbers are keyed by (seed, agent, round).

    Args:
        setting: What the run is made of, besides its agents.

    Attributes:
        host: The run, as the feed sees it.
        has_fields: False, as agents hold nothing of the user's own but plain attributes.
        logger: Where events go; they may wait there for those of earlier decisions.
        agents: The population, in the order in which it acts.
        chart: The chart of every agent.
        network: Posts and feeds.
        treated: What treatments have done: who still acts, and what becomes of new posts.
    """

    has_fields = False

    def __init__(self, setting: Setting) -> None:
        self._world = setting.world
        clock, writes = setting.clock, setting.answerers.has_writer
        logger = HoldingLogger(setting.logger, clock) if writes else setting.logger
        self._asking = asking_with(setting.answerers, logger, clock)
        self._asking.apply = self.apply
        self.logger = self._asking.logger
        super().__init__(
            cast(FeedRules, setting.world),
            setting.seed,
            clock,
            PostTexts(setting.answerers.wording) if writes else None,
            self.logger,
        )
        self.host: FeedHost = FeedHost(setting.world, setting.seed, clock, self.logger)
        self.host.stage = self
        self._has_ideas: bool = self._now.posts_per_tick > 0
        self.agents: list[SocialAgent] = self.host.agents
        self.chart: Statechart[AgentState] = feed_chart(
            self._now, self._feed.guard(), self.logger, clock
        )

    @property
    def open_questions(self) -> int:
        """Number of questions without an answer; other threads may look."""
        return self._asking.open_questions

    def populate(self, agents: int | Iterable[SocialAgent] | AgentTable) -> None:
        """Take in the population, or have the feed make so many agents.

        Raises:
            AgentError: If agents lack what the chart or the feed needs; lists all that they lack.
            FieldValueError: If there are no agents, two have the same id, or a post is by nobody
                among them.
        """
        feed, now = self._feed, self._now
        self.agents[:] = population(self._world, agents)
        require_fit(self.agents, self.chart.definition, _NEEDS)
        check_population(self.agents, ())
        take_archetypes(self.agents, now.archetypes())
        follow_network(self.agents, now, self.seed)
        share_topics(self.agents, now.common_topics, self.seed)
        self._order = Order(self.agents, self.seed, is_shuffled=now.shuffled)
        self._seeds = self._order.of_posts(feed.opening())
        check_population(self.agents, self._seeds)
        self.network: Network = Network(self.agents, now.candidates)
        self.network.now = self._clock()
        self._feeds = Feeds(
            self.network, self.seed, self._clock, lambda: feed.parameters, feed.ranking()
        )
        self.treated: Treated = Treated(
            self._world, self.agents, self.network, self.host, self._emit
        )
        self._hours = None if now.hours == "always" else Hours(self.agents, now, self.seed)
        self._readers = {reader.agent.agent_id: reader for reader in self.network.readers}
        writes = zip(self.network.readers, activities(self.agents, now, self.seed), strict=True)
        for reader, activity in writes:
            reader.activity = activity

    def ready(self) -> None:
        """Let agents act from now on."""
        self.host.fires = None

    # What the loop asks

    def describe(self) -> dict[str, Any]:
        """Return chart and number of agents; of a world of the user's own, name and parameters."""
        told = {"chart": self.chart.name, "agents": len(self.agents)}
        world = self._world
        known = parameters_told(world)
        if self._feed.parameters == CLASSIC:
            # the feed as it was before it had parameters is told as it always was
            known = {name: value for name, value in known.items() if not hasattr(CLASSIC, name)}
        # nor is a simulation without a world of its own a world
        if type(world).__module__ == _HOME:
            return {**told, **({"parameters": known} if known else {})}

        return {**told, "world": type(world).__name__, "parameters": known}

    def announce(self) -> None:
        """Announce every agent, and publish what was posted before the first round."""
        tells_follows = self._feed.parameters.logs_follows
        for agent in self.agents:
            self._emit(
                AGENT_JOINED,
                agent_id=agent.agent_id,
                display_name=agent.name,
                archetype=None if agent.archetype is None else agent.archetype.name,
                interests=agent.interests,
                following=len(agent.following),
                **({"follows": list(agent.following)} if tells_follows else {}),
                state=agent.state.value,
                timeout_threshold=agent.timeout_threshold,
                **({"attributes": of_its_own} if (of_its_own := attributes_of(agent)) else {}),
            )

        for post in self.network.seed(self._seeds):
            self._announce_post(post)

    def begin_round(self) -> None:
        """Return the counts to 0, and give every agent its random numbers for the round."""
        self.host.begin_phase("")
        # a treatment may publish before the first tick
        self.network.now = self._clock()
        self._activity = Activity()
        number = self._clock.round
        for agent in self.agents:
            agent.random = RandomStream(self.seed, agent.agent_id, number)

        self._draw_ideas()

    async def tick(self) -> None:
        """Let every agent that is awake take its step, and ask what they have to decide."""
        step, asking, waiting = self.step, self._asking, self._asking.waiting
        self._take_parameters()
        self.network.now = self._clock()
        acting = self._order.of_tick(self.treated.acting, self._clock)
        if self._hours is not None:
            passed = (self._clock.ticks - 1) // self._now.ticks_per_hour
            asleep = self._hours.asleep(self._now.first_hour + passed)
            acting = [agent for agent in acting if agent.agent_id not in asleep]

        self._activity.agent_ticks += len(acting)
        for agent in acting:
            while waiting and id(agent) in waiting:
                await asking.settle_next()

            asked = step(agent)
            if asked is not None:
                await asking.ask(asked)

        # of those who are asleep now
        while asking.next_agent is not None:
            await asking.settle_next()

        await asking.end_tick()

    def _take_parameters(self) -> None:
        """Go on with the parameters as a treatment has made them.

        Raises:
            FieldValueError: If it has changed one by which population and chart were made.
        """
        now, before = self._feed.parameters, self._now
        if now is before:
            return

        changed = [each for each in SETTLED if getattr(now, each) != getattr(before, each)]
        if now.posts_per_tick and not self._has_ideas:
            changed.append("posts_per_tick")
        if changed:
            raise FieldValueError(
                f"{changed[0]} cannot change in the course of a run: the population is made by it"
            )

        self._now = now
        if now.posts_per_tick != before.posts_per_tick:
            self._draw_ideas()

    def _draw_ideas(self) -> None:
        """Draw when each agent has ideas in this round, at the rate that is its own."""
        rate, number = self._feed.parameters.posts_per_tick, self._clock.round
        for reader in self.network.readers:
            reader.ideas, probability = None, rate * reader.activity
            if probability:
                # apart from what a policy draws, which a replay of the run does not
                stream = RandomStream(self.seed, "ideas", reader.agent.agent_id, number)
                reader.ideas = waits(probability, stream)
                reader.before_idea = next(reader.ideas)

    async def end_ticks(self) -> None:
        """Settle every question that is still open."""
        await self._asking.end_round()

    async def close(self) -> None:
        """Cancel what is still being asked."""
        await self._asking.close()

    def apply(self, asked: Question | TextCall, answer: Decision | Written) -> None:
        """Make the transition that was decided on, or take the words of a post."""
        if isinstance(asked, Question) and isinstance(answer, Decision):
            self._decided(asked, answer)
        elif self._texts is not None and isinstance(answer, Written):
            self._activity.texts[answer.source] += 1
            self._texts.arrive(asked, answer)

    def _decided(self, question: Question, decision: Decision) -> None:
        self._activity.decisions_asked += 1
        if decision.source == "fallback":
            host = None if decision.cost is None else decision.cost.host
            self._activity.count_fallback(decision.reason, host)
        else:
            self._activity.decisions_answered += 1

        if decision.chosen is AgentState.COMPOSING:
            # what an agent was about to do before a time-out is no part of what it does now
            question.agent.pending_action = None

        made = self.chart.fire_to(
            question.agent, DECIDES, decision.chosen, question.context, asked_in=question.state
        )
        if made is not None:
            self._activity.transitions += 1

        is_own = decision.chosen is AgentState.SCROLLING and decision.source != "fallback"
        if is_own and self._now.dislike_chance:
            self._pass_by(question.agent, question.context)

    def states(self) -> dict[str, int]:
        """Return the number of agents in each state; those who have left are in none."""
        counts = state_distribution(self.treated.acting, AgentState)
        return {state.value: count for state, count in counts.items()}

    async def end_round(self) -> None:
        """Publish what agents are composing, so that no decision is lost, and send all to IDLE.

        Where the parameters say so, all go on in the next round instead.
        """
        if self._now.carries_over:
            return

        for reader in self.network.readers:
            self._finish(reader)

        late, self._late_calls = self._late_calls, []
        for call in late:
            await self._asking.ask(call)
        if late:
            await self._asking.end_tick()
            await self._asking.end_round()

    def summary(
        self, number: int, states: Mapping[str, int], measures: Mapping[str, Measured]
    ) -> RoundSummary:
        """Return what a round came to."""
        return RoundSummary(number, states, self._activity, measures)

    def results(self, rounds: Sequence[RoundSummary]) -> Results:
        """Return the sums of all rounds and the largest cascades."""
        return summarize(self.network, rounds)

    def totals(self, results: Results) -> dict[str, Any]:
        """Return the sums of all rounds."""
        return results.totals.to_dict()

    def snapshot(self, _code: Encoder) -> dict[str, Any]:
        """Return the agents and their feeds; the log tells posts, likes and histories."""
        described: dict[str, Any] = {"agents": describe_readers(self.network)}
        attributes = {agent.agent_id: attributes_of(agent) for agent in self.agents}
        if self._now.carries_over:
            described["under_way"] = describe_under_way(self.network)
        if any(attributes.values()):
            described["attributes"] = {name: of for name, of in attributes.items() if of}

        return described

    def restore(self, snapshot: Mapping[str, Any], _code: Decoder) -> None:
        """Give the agents the attributes that they had; `read_log` does the rest.

        Raises:
            SimulationError: If the snapshot is of another population.
        """
        require_same_readers(self.network, snapshot["agents"])
        attributes = snapshot.get("attributes", {})
        for agent in self.agents:
            # an agent of another engine may have none
            if hasattr(agent, "attributes"):
                agent.attributes = attributes.get(agent.agent_id, {})

    def read_log(self, snapshot: Mapping[str, Any], events: Iterable[Event]) -> list[RoundSummary]:
        """Make agents, posts and feeds what they were; return the rounds that had ended."""
        finished = restore_readers(self.network, snapshot["agents"], events)
        restore_under_way(self.network, snapshot.get("under_way", {}))
        self.treated.leave_out_removed()

        return finished

    # What a world of the user's own asks

    def publish_as(self, author_id: str, text: str, topics: Iterable[str]) -> Post:
        """Publish a post that no agent's step has written.

        Raises:
            FieldValueError: If the author is nobody among the agents.
        """
        if author_id not in self._readers:
            raise FieldValueError(f"posts must be by agents of the population, got {author_id!r}")

        post = self.network.publish(author_id, Draft("post", text, tuple(topics)), None)
        self._activity.posts += 1
        self._announce_post(post)

        return post


_ENGAGING = (AgentState.COMPOSING, AgentState.ENGAGING_LIKE)
"""Where only those go from EVALUATING whom a post concerns enough."""


def feed_chart(
    parameters: Parameters,
    guard: Guard | None,
    logger: EventLogger | None,
    clock: Callable[[], float],
) -> Statechart[AgentState]:
    """Return the chart of a feed's agents.

    Args:
        parameters: Whether agents write of their own accord, how long they rest, and how much of
            an agent's engagement threshold counts.
        guard: Who says whether a post is relevant enough; None if each agent does.
        logger: Where events go.
        clock: The run's clock.
    """
    resting = parameters.resting_ticks
    if parameters.posts_per_tick:
        chart = social_feed_chart(
            should_engage=guard, resting_ticks=resting, logger=logger, clock=clock
        )
    else:
        chart = social_media_chart(should_engage=guard, logger=logger, clock=clock)
        if resting != CLASSIC.resting_ticks:
            chart = chart.extended(timeouts={AgentState.RESTING: resting})

    # a guard of the user's own has the last word
    if guard is not None or parameters.engagement == CLASSIC.engagement:
        return chart

    # so the chart still needs of agents what it needed
    scaled = _Scaled(parameters.engagement)
    return chart.extended(
        guards={(DECIDES, AgentState.EVALUATING, target): scaled for target in _ENGAGING}
    )


class _Scaled:
    """Guard: what an agent engages with if a part of its threshold counts.

    An agent without a relevance or a threshold has the last word itself.

    Args:
        scale: That part.
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale

    __name__ = "should_engage"

    def __call__(self, agent: Any, post: Any) -> bool:
        # asked in any case, as it notes the relevance that the log tells
        engages = bool(agent.should_engage(post))
        rating = getattr(agent, "relevance", None)
        threshold = getattr(agent, "engagement_threshold", None)
        if engages or rating is None or threshold is None:
            return engages

        return bool(rating(post) >= self._scale * threshold)


class Order:
    """Who comes first: as in the population, or by keys that do not depend on its order.

    Args:
        agents: The population.
        seed: Seed of the run.
        is_shuffled: Whether the order is drawn anew in each tick.
    """

    def __init__(self, agents: Sequence[SocialAgent], seed: int, *, is_shuffled: bool) -> None:
        self._seed = seed
        self._is_shuffled = is_shuffled
        self._keys = (
            {each.agent_id: RandomStream(seed, "order", each.agent_id).random() for each in agents}
            if is_shuffled
            else {}
        )
        self._acting: Sequence[SocialAgent] = ()
        self._ordered: list[SocialAgent] = []

    def of_posts(self, posts: Iterable[SeedPost]) -> list[SeedPost]:
        """Return opening posts in their order; those of one author stay in theirs."""
        if not self._is_shuffled:
            return list(posts)

        # a stranger is refused later on
        return sorted(posts, key=lambda post: self._keys.get(post.author_id, 0.0))

    def of_tick(
        self, acting: Sequence[SocialAgent], clock: SimulatedClock
    ) -> Sequence[SocialAgent]:
        """Return the agents in the order of a tick."""
        if not self._is_shuffled:
            return acting
        if acting is not self._acting:
            self._acting = acting
            self._ordered = sorted(acting, key=lambda each: self._keys[each.agent_id])

        stream = RandomStream(self._seed, "order", clock.round, clock.tick)
        return stream.shuffled(self._ordered)


def attributes_of(agent: SocialAgent) -> dict[str, Any]:
    """Return an agent's attributes, which code of the user may have changed."""
    # an agent of another engine may have none
    own = getattr(agent, "attributes", None)
    return plain_attributes(own) if own else {}


def take_archetypes(agents: Iterable[SocialAgent], archetypes: Mapping[str, Archetype]) -> None:
    """Give agents of the usual archetypes those of the same name, with what these set.

    Args:
        agents: The population; a threshold that is not the usual archetype's is the agent's own.
        archetypes: The archetypes by name.
    """
    changed = {name: kind for name, kind in archetypes.items() if kind != ARCHETYPES[name]}
    for agent in agents if changed else ():
        usual = agent.archetype
        if usual is None or usual.name not in changed or usual != ARCHETYPES[usual.name]:
            continue

        agent.archetype = kind = changed[usual.name]
        if agent.engagement_threshold == usual.engagement_threshold:
            agent.engagement_threshold = kind.engagement_threshold
        if agent.timeout_threshold == usual.timeout_threshold:
            agent.timeout_threshold = kind.timeout_threshold


def opened_by(agents: Sequence[SocialAgent], opening: str, seed: int) -> list[SeedPost]:
    """Return the posts from before the first round, where none are given.

    Args:
        agents: The population.
        opening: Whose: of ``each`` with interests, of the ``hub`` with the most followers, of whom
            the first in the order of ids, or of ``none``.
        seed: Seed of the run.
    """
    if opening == "each":
        return opening_posts(agents, seed=seed)
    if opening == "none":
        return []

    followers = Counter(name for agent in agents for name in agent.following)
    hub = min(agents, key=lambda agent: (-followers[agent.agent_id], agent.agent_id))

    return [SeedPost(hub.agent_id, "Have you heard? This changes everything.", ("rumour",))]


def check_population(agents: Sequence[SocialAgent], posts: Sequence[SeedPost]) -> None:
    """Refuse nobody, ids that are used twice, and posts by strangers.

    Raises:
        FieldValueError: If there is any of these; names them.
    """
    if not agents:
        raise FieldValueError("a simulation needs at least one agent")

    counts = Counter(agent.agent_id for agent in agents)
    twice = sorted(agent_id for agent_id, count in counts.items() if count > 1)
    if twice:
        raise FieldValueError(f"agent ids must be unique, used more than once: {', '.join(twice)}")

    strangers = sorted({post.author_id for post in posts if post.author_id not in counts})
    if strangers:
        raise FieldValueError(
            f"posts must be by agents of the population, which has no {', '.join(strangers)}"
        )

"""What social agents do in a run: they read, weigh, write, like and reshare posts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, cast

from prism.agents import SeedPost, SocialAgent
from prism.agents._attributes import plain_attributes
from prism.errors import FieldValueError
from prism.social._holding import HoldingLogger
from prism.social._posts import Draft, Network, Post, Reader
from prism.social._recollecting import recollect
from prism.social._results import Activity, Results, RoundSummary, summarize
from prism.social._snapshot import describe_readers, require_same_readers, restore_readers
from prism.social._treated import Treated
from prism.social._wording import PostTexts
from prism.statechart import (
    AgentState,
    Decision,
    Guard,
    Question,
    RandomStream,
    Statechart,
    TextCall,
    Written,
    social_media_chart,
    state_distribution,
)
from prism.statechart.inspection._fits import require_fit
from prism.statechart.social import (
    ACTION_DONE,
    COMPOSE_DONE,
    DECIDES,
    FEED_READY,
    IGNORES,
    ROUND_ENDS,
    SEES_POST,
)
from prism.telemetry._loggers import active_logger
from prism.telemetry.events import (
    AGENT_JOINED,
    POST_LIKED,
    POST_PUBLISHED,
    POST_WEIGHED,
)
from prism.worlds._asking import asking_with
from prism.worlds._decider import Event
from prism.worlds._host import RunHost
from prism.worlds._people import AgentTable, population
from prism.worlds._results import Measured
from prism.worlds._snapshot import Decoder, Encoder
from prism.worlds._stage import Setting
from prism.worlds._world import parameters_told

_STEPS_TO_FINISH = 2
"""Composing and publishing."""

_UNDER_WAY = (
    AgentState.COMPOSING,
    AgentState.ENGAGING_LIKE,
    AgentState.ENGAGING_REPLY,
    AgentState.ENGAGING_RESHARE,
)

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
_COUNTERS = {"post": "posts", "reply": "replies", "reshare": "reshares"}


class FeedRules(Protocol):
    """What a feed says itself, and a feed of the user's own in another way."""

    def populate(self, agents: int) -> Iterable[SocialAgent]:
        """Make the population of a run that says a number only."""

    def opening(self) -> Iterable[SeedPost]:
        """Return what was posted before the first round, oldest first."""

    def guard(self) -> Guard | None:
        """Return who says whether a post is relevant enough; None if each agent does."""

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Write what an agent publishes."""


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


class FeedStage:
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
        self._feed = cast(FeedRules, setting.world)
        self.seed: int = setting.seed
        self._clock = setting.clock
        self._late_calls: list[TextCall] = []
        writes, given = setting.answerers.has_writer, setting.logger
        self._texts = PostTexts(setting.answerers.wording) if writes else None
        logger = HoldingLogger(given, setting.clock) if writes else given
        self._asking = asking_with(setting.answerers, logger, setting.clock)
        self._asking.apply = self.apply
        self._logger = self.logger = self._asking.logger
        self._activity = Activity()
        self.host: FeedHost = FeedHost(setting.world, setting.seed, setting.clock, self.logger)
        self.host.stage = self
        self.agents: list[SocialAgent] = self.host.agents
        self.chart: Statechart[AgentState] = social_media_chart(
            should_engage=self._feed.guard(), logger=self.logger, clock=setting.clock
        )
        self._steps: dict[AgentState, Callable[[Reader], Question | TextCall | None]] = {
            AgentState.IDLE: self._open_feed,
            AgentState.SCROLLING: self._look_at_next,
            AgentState.EVALUATING: self._weigh,
            AgentState.COMPOSING: self._compose,
            AgentState.ENGAGING_LIKE: self._like,
            AgentState.ENGAGING_REPLY: self._publish_draft,
            AgentState.ENGAGING_RESHARE: self._publish_draft,
        }

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
        feed = self._feed
        self.agents[:] = population(self._world, agents)
        require_fit(self.agents, self.chart.definition, _NEEDS)
        self._seeds = list(feed.opening())
        _check(self.agents, self._seeds)
        self.network: Network = Network(self.agents)
        self.treated: Treated = Treated(
            self._world, self.agents, self.network, self.host, self._emit
        )
        self._readers = {reader.agent.agent_id: reader for reader in self.network.readers}

    def ready(self) -> None:
        """Let agents act from now on."""
        self.host.fires = None

    # What the loop asks

    def describe(self) -> dict[str, Any]:
        """Return chart and number of agents; of a world of the user's own, name and parameters."""
        told = {"chart": self.chart.name, "agents": len(self.agents)}
        world = self._world
        # a simulation without a world of its own is told as it always was
        if type(world).__module__ == _HOME:
            return told

        return {**told, "world": type(world).__name__, "parameters": parameters_told(world)}

    def announce(self) -> None:
        """Announce every agent, and publish what was posted before the first round."""
        for agent in self.agents:
            self._emit(
                AGENT_JOINED,
                agent_id=agent.agent_id,
                display_name=agent.name,
                archetype=None if agent.archetype is None else agent.archetype.name,
                interests=agent.interests,
                following=len(agent.following),
                state=agent.state.value,
                timeout_threshold=agent.timeout_threshold,
                **({"attributes": of_its_own} if (of_its_own := _attributes_of(agent)) else {}),
            )

        for post in self.network.seed(self._seeds):
            self._announce_post(post)

    def begin_round(self) -> None:
        """Return the counts to 0, and give every agent its random numbers for the round."""
        self.host.begin_phase("")
        self._activity = Activity()
        number = self._clock.round
        for agent in self.agents:
            agent.random = RandomStream(self.seed, agent.agent_id, number)

    async def tick(self) -> None:
        """Let every agent take its step, and ask what they have to decide."""
        step, asking = self.step, self._asking
        for agent in self.treated.acting:
            if agent is asking.next_agent:
                await asking.settle_next()

            asked = step(agent)
            if asked is not None:
                await asking.ask(asked)

        await asking.end_tick()

    async def end_ticks(self) -> None:
        """Settle every question that is still open."""
        await self._asking.end_round()

    async def close(self) -> None:
        """Cancel what is still being asked."""
        await self._asking.close()

    def step(self, agent: SocialAgent) -> Question | TextCall | None:
        """Make a time-out if it is due, else do what the agent's state calls for."""
        before = agent.state
        if self.chart.tick(agent) is not None:
            self._activity.timeouts[before.value] += 1
            self._activity.transitions += 1
            return None

        step = self._steps.get(before)

        return None if step is None else step(self._readers[agent.agent_id])

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

        made = self.chart.fire_to(
            question.agent, DECIDES, decision.chosen, question.context, asked_in=question.state
        )
        if made is not None:
            self._activity.transitions += 1

    def states(self) -> dict[str, int]:
        """Return the number of agents in each state."""
        counts = state_distribution(self.agents, AgentState)
        return {state.value: count for state, count in counts.items()}

    async def end_round(self) -> None:
        """Publish what agents are composing, so that no decision is lost, and send all to IDLE."""
        for reader in self.network.readers:
            self._finish(reader)

        late, self._late_calls = self._late_calls, []
        for call in late:
            await self._asking.ask(call)
        if late:
            await self._asking.end_tick()
            await self._asking.end_round()

        self._activity.agent_ticks = len(self.treated.acting) * self._clock.tick

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
        attributes = {agent.agent_id: _attributes_of(agent) for agent in self.agents}
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
        self.treated.leave_out_removed()

        return finished

    # What a world of the user's own asks

    def agent(self, agent_id: str) -> SocialAgent | None:
        """Return the agent of an id; None if there is none."""
        reader = self._readers.get(agent_id)
        return None if reader is None else reader.agent

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

    # Steps

    def _open_feed(self, reader: Reader) -> None:
        if self.network.refresh(reader):
            self._fire(reader.agent, FEED_READY)

    def _look_at_next(self, reader: Reader) -> None:
        if reader.unread:
            reader.post = reader.unread.popleft()
            self._fire(reader.agent, SEES_POST, reader.post)

    def _weigh(self, reader: Reader) -> Question | None:
        agent, post = reader.agent, reader.post
        options = self.chart.enabled_targets(agent, DECIDES, post)
        if post is not None:
            # an agent of another engine may weigh in a way of its own
            found = getattr(agent, "weighed_relevance", None)
            self._emit(
                POST_WEIGHED,
                agent_id=agent.agent_id,
                post_id=post.post_id,
                relevance=None if found is None else found(post),
                threshold=getattr(agent, "engagement_threshold", None),
            )

        if len(options) > 1:
            return Question(
                agent,
                agent.state,
                DECIDES,
                tuple(options),
                post,
                chart=self.chart.definition,
                parameters=self.host.parameters,
                recall=partial(recollect, self.network, agent),
            )

        # one option leaves nothing to decide
        self._fire(agent, IGNORES, post)

        return None

    def _compose(self, reader: Reader) -> TextCall | None:
        agent, post = reader.agent, reader.post
        if post is None:
            return None

        # a stream of its own: a composer that draws more numbers changes no decision
        stream = RandomStream(self.seed, agent.agent_id, self._clock.round, self._clock.tick)
        reader.draft = self._feed.compose(agent, post, stream)
        call = None if self._texts is None else self._texts.ask(reader, post)
        agent.pending_action = kind = reader.draft.kind
        if kind == "post":
            self._publish(reader, reader.draft)

        self._fire(agent, COMPOSE_DONE, post)
        if kind == "post":
            agent.pending_action = None

        return call

    def _publish_draft(self, reader: Reader) -> None:
        if reader.draft is not None:
            self._publish(reader, reader.draft)

        reader.agent.pending_action = None
        self._fire(reader.agent, ACTION_DONE, reader.post)

    def _like(self, reader: Reader) -> None:
        post = reader.post
        if post is not None:
            self.network.like(post)
            self._activity.likes += 1
            self._emit(
                POST_LIKED,
                agent_id=reader.agent.agent_id,
                post_id=post.post_id,
                author_id=post.author_id,
            )

        self._fire(reader.agent, ACTION_DONE, post)

    def _finish(self, reader: Reader) -> None:
        agent = reader.agent
        for _ in range(_STEPS_TO_FINISH):
            if agent.state in _UNDER_WAY:
                asked = self._steps[agent.state](reader)
                if isinstance(asked, TextCall):
                    self._late_calls.append(asked)

        if agent.state is not AgentState.IDLE:
            self._fire(agent, ROUND_ENDS)

    def _publish(self, reader: Reader, draft: Draft) -> None:
        words, reader.words = reader.words, None
        draft = draft if words is None else words.draft()
        post = self.network.publish(reader.agent.agent_id, draft, reader.post)
        reader.draft = None
        counter = _COUNTERS[post.kind]
        setattr(self._activity, counter, getattr(self._activity, counter) + 1)
        self._announce_post(post, **({} if words is None else words.told_of(post)))

    def _announce_post(self, post: Post, **words: Any) -> None:
        self._emit(
            POST_PUBLISHED,
            agent_id=post.author_id,
            post_id=post.post_id,
            kind=post.kind,
            parent_id=None if post.parent is None else post.parent.post_id,
            root_id=post.root.post_id,
            topics=list(post.topics),
            **{"text": post.text, **words},
        )
        self.treated.published(post)

    def _fire(self, agent: SocialAgent, trigger: str, context: Any = None) -> None:
        if self.chart.fire(agent, trigger, context) is not None:
            self._activity.transitions += 1

    def _emit(self, event: str, **keys: Any) -> None:
        logger = active_logger(self._logger)
        if logger is not None:
            logger.info(event, **keys)


def _attributes_of(agent: SocialAgent) -> dict[str, Any]:
    """Return an agent's attributes, which code of the user may have changed."""
    # an agent of another engine may have none
    own = getattr(agent, "attributes", None)
    return plain_attributes(own) if own else {}


def _check(agents: Sequence[SocialAgent], posts: Sequence[SeedPost]) -> None:
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

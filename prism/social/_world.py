"""The social feed as a world: agents that read, weigh, write, like and reshare posts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from prism.agents import SeedPost, SocialAgent
from prism.agents._attributes import plain_attributes
from prism.errors import FieldValueError
from prism.runlog import SimulatedClock
from prism.social._composing import Composer
from prism.social._posts import Draft, Network, Post, Reader
from prism.social._recollecting import recollect
from prism.social._results import Activity, Results, RoundSummary, summarize
from prism.social._snapshot import Event, describe_readers, restore_readers
from prism.statechart import (
    AgentState,
    Decision,
    Guard,
    Question,
    RandomStream,
    Statechart,
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
from prism.telemetry._loggers import EventLogger, active_logger
from prism.telemetry.events import AGENT_JOINED, POST_LIKED, POST_PUBLISHED, POST_WEIGHED

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

_COUNTERS = {"post": "posts", "reply": "replies", "reshare": "reshares"}


class SocialWorld:
    """What happens in the states of social agents; see `prism.simulation.World`.

    Random numbers are keyed by (seed, agent, round).

    Args:
        agents: The population, in the order in which it acts.
        posts: What was posted before the first round, oldest first.
        composer: Writes what agents publish.
        seed: Seed of every random number.
        clock: The run's clock.
        logger: Where to write events.
        should_engage: As for `social_media_chart`.

    Attributes:
        agents: The population.
        chart: The chart of every agent.
        network: Posts and feeds.

    Raises:
        AgentError: If agents lack what the chart or the feed needs; lists all that they lack.
        FieldValueError: If there are no agents, two have the same id, or a post is by nobody among
            them.
    """

    def __init__(
        self,
        agents: Iterable[SocialAgent],
        posts: Iterable[SeedPost],
        composer: Composer,
        seed: int,
        clock: SimulatedClock,
        logger: EventLogger | None,
        *,
        should_engage: Guard | None = None,
    ) -> None:
        self.agents: list[SocialAgent] = list(agents)
        self._seeds = list(posts)
        self.chart: Statechart[AgentState] = social_media_chart(
            should_engage=should_engage, logger=logger, clock=clock
        )
        require_fit(self.agents, self.chart.definition, _NEEDS)
        _check(self.agents, self._seeds)
        self._composer = composer
        self._seed = seed
        self._clock = clock
        self._logger = logger
        self._activity = Activity()
        self.network: Network = Network(self.agents)
        self._readers = {reader.agent.agent_id: reader for reader in self.network.readers}
        self._steps: dict[AgentState, Callable[[Reader], Question | None]] = {
            AgentState.IDLE: self._open_feed,
            AgentState.SCROLLING: self._look_at_next,
            AgentState.EVALUATING: self._weigh,
            AgentState.COMPOSING: self._compose,
            AgentState.ENGAGING_LIKE: self._like,
            AgentState.ENGAGING_REPLY: self._publish_draft,
            AgentState.ENGAGING_RESHARE: self._publish_draft,
        }

    # What the loop asks

    def describe(self) -> dict[str, Any]:
        """Return the chart's name and the number of agents."""
        return {"chart": self.chart.name, "agents": len(self.agents)}

    def begin(self) -> None:
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

    def begin_round(self, number: int) -> None:
        """Return the counts to 0, and give every agent its random numbers for the round."""
        self._activity = Activity()
        for agent in self.agents:
            agent.random = RandomStream(self._seed, agent.agent_id, number)

    def step(self, agent: SocialAgent) -> Question | None:
        """Make a time-out if it is due, else do what the agent's state calls for."""
        before = agent.state
        if self.chart.tick(agent) is not None:
            self._activity.timeouts[before.value] += 1
            self._activity.transitions += 1
            return None

        step = self._steps.get(before)

        return None if step is None else step(self._readers[agent.agent_id])

    def apply(self, question: Question, decision: Decision) -> None:
        """Make the transition that was decided on."""
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

    def end_round(self, number: int) -> RoundSummary:
        """Publish what agents are composing, so that no decision is lost, and send all to IDLE."""
        counts = state_distribution(self.agents, AgentState)
        states = {state.value: count for state, count in counts.items()}
        for reader in self.network.readers:
            self._finish(reader)

        self._activity.agent_ticks = len(self.agents) * self._clock.tick

        return RoundSummary(number, states, self._activity)

    def results(self, rounds: Sequence[RoundSummary]) -> Results:
        """Return the sums of all rounds and the largest cascades."""
        return summarize(self.network, rounds)

    def snapshot(self) -> dict[str, Any]:
        """Return the agents and their feeds; the log tells posts, likes and histories."""
        described: dict[str, Any] = {"agents": describe_readers(self.network)}
        attributes = {agent.agent_id: _attributes_of(agent) for agent in self.agents}
        if any(attributes.values()):
            described["attributes"] = {name: of for name, of in attributes.items() if of}

        return described

    def restore(self, snapshot: Mapping[str, Any], events: Iterable[Event]) -> list[RoundSummary]:
        """Make agents, posts and feeds what they were; return the rounds that had ended.

        Raises:
            SimulationError: If the snapshot is of another population.
        """
        finished = restore_readers(self.network, snapshot["agents"], events)
        attributes = snapshot.get("attributes", {})
        for agent in self.agents:
            # an agent of another engine may have none
            if hasattr(agent, "attributes"):
                agent.attributes = attributes.get(agent.agent_id, {})

        return finished

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
                recall=partial(recollect, self.network, agent),
            )

        # one option leaves nothing to decide
        self._fire(agent, IGNORES, post)

        return None

    def _compose(self, reader: Reader) -> None:
        agent, post = reader.agent, reader.post
        if post is None:
            return

        # a stream of its own: a composer that draws more numbers changes no decision
        stream = RandomStream(self._seed, agent.agent_id, self._clock.round, self._clock.tick)
        reader.draft = self._composer.compose(agent, post, stream)
        agent.pending_action = kind = reader.draft.kind
        if kind == "post":
            self._publish(reader, reader.draft)

        self._fire(agent, COMPOSE_DONE, post)
        if kind == "post":
            agent.pending_action = None

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
                self._steps[agent.state](reader)

        if agent.state is not AgentState.IDLE:
            self._fire(agent, ROUND_ENDS)

    def _publish(self, reader: Reader, draft: Draft) -> None:
        post = self.network.publish(reader.agent.agent_id, draft, reader.post)
        reader.draft = None
        counter = _COUNTERS[post.kind]
        setattr(self._activity, counter, getattr(self._activity, counter) + 1)
        self._announce_post(post)

    def _announce_post(self, post: Post) -> None:
        self._emit(
            POST_PUBLISHED,
            agent_id=post.author_id,
            post_id=post.post_id,
            kind=post.kind,
            parent_id=None if post.parent is None else post.parent.post_id,
            root_id=post.root.post_id,
            topics=list(post.topics),
            text=post.text,
        )

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

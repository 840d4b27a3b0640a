"""What social agents do in each state: read, weigh, compose, publish, like; and remember."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import copysign, exp, log2
from typing import Any, Protocol

from prism.agents import SeedPost, SocialAgent
from prism.runlog import SimulatedClock
from prism.social._activity import in_means_of_all
from prism.social._composing import PostTexts, topic_of_ones_own
from prism.social._feeds import Feeds, Rank
from prism.social._parameters import Parameters
from prism.social._posts import Draft, Network, Post, Reader
from prism.social._results import Activity
from prism.social._treatments import Treated
from prism.statechart import AgentState, Guard, Question, RandomStream, Statechart, TextCall
from prism.statechart.social import (
    ACTION_DONE,
    AT_LEISURE,
    COMPOSE_DONE,
    DECIDES,
    FEED_READY,
    HAS_IDEA,
    IGNORES,
    ROUND_ENDS,
    SEES_POST,
)
from prism.telemetry._loggers import EventLogger, active_logger
from prism.telemetry.events import POST_DISLIKED, POST_LIKED, POST_PUBLISHED, POST_WEIGHED
from prism.worlds._host import RunHost

_STEPS_TO_FINISH = 2
"""Composing and publishing."""

_UNDER_WAY = (
    AgentState.COMPOSING,
    AgentState.ENGAGING_LIKE,
    AgentState.ENGAGING_REPLY,
    AgentState.ENGAGING_RESHARE,
)

_COUNTERS = {"post": "posts", "reply": "replies", "reshare": "reshares"}


class FeedRules(Protocol):
    """What a feed says itself, and a feed of the user's own in another way.

    Attributes:
        parameters: All numbers of its behaviour.
    """

    parameters: Parameters

    def populate(self, agents: int) -> Iterable[SocialAgent]:
        """Make the population of a run that says a number only."""

    def opening(self) -> Iterable[SeedPost]:
        """Return what was posted before the first round, oldest first."""

    def guard(self) -> Guard | None:
        """Return who says whether a post is relevant enough; None if each agent does."""

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Write what an agent publishes."""

    def compose_post(
        self, agent: SocialAgent, topics: tuple[str, ...], stream: RandomStream
    ) -> Draft:
        """Write what an agent publishes of its own accord."""

    def ranking(self) -> Rank | None:
        """Return how a feed of the user's own ranks posts; None if the parameters say so."""


class FeedSteps:
    """What social agents do in each state; the part of a stage that knows of no loop.

    Args:
        feed: What the feed says itself.
        seed: Seed of every random number.
        clock: The run's clock.
        texts: The words that a model is writing; None if nobody writes.
        logger: Where events go.

    Attributes:
        seed: Seed of every random number.
        chart: The chart of every agent.
        network: Posts and feeds.
        treated: What treatments have done.
    """

    host: RunHost
    chart: Statechart[AgentState]
    network: Network
    treated: Treated
    _feeds: Feeds

    def __init__(
        self,
        feed: FeedRules,
        seed: int,
        clock: SimulatedClock,
        texts: PostTexts | None,
        logger: EventLogger | None,
    ) -> None:
        self._feed = feed
        self.seed: int = seed
        self._clock = clock
        self._texts = texts
        self._logger = logger
        self._activity = Activity()
        self._now = feed.parameters
        self._late_calls: list[TextCall] = []
        self._readers: dict[str, Reader] = {}
        self._steps: dict[AgentState, Callable[[Reader], Question | TextCall | None]] = {
            AgentState.IDLE: self._open_feed,
            AgentState.SCROLLING: self._look_at_next,
            AgentState.EVALUATING: self._weigh,
            AgentState.COMPOSING: self._compose,
            AgentState.ENGAGING_LIKE: self._like,
            AgentState.ENGAGING_REPLY: self._publish_draft,
            AgentState.ENGAGING_RESHARE: self._publish_draft,
        }

    def step(self, agent: SocialAgent) -> Question | TextCall | None:
        """Make a time-out if it is due, else do what the agent's state calls for."""
        before = agent.state
        if self.chart.tick(agent) is not None:
            self._activity.timeouts[before.value] += 1
            self._activity.transitions += 1
            return None

        step = self._steps.get(before)
        if step is None:
            return None

        reader = self._readers[agent.agent_id]
        if reader.ideas is not None and before in AT_LEISURE:
            if not reader.before_idea:
                self._begin_post(reader, reader.ideas)
                return None
            reader.before_idea -= 1

        return step(reader)

    def _begin_post(self, reader: Reader, ideas: Iterator[int]) -> None:
        """Have an agent begin a post of its own accord, and draw when it does so again."""
        reader.before_idea = next(ideas)
        reader.post = None
        reader.agent.pending_action = "post"
        self._fire(reader.agent, HAS_IDEA)

    def _open_feed(self, reader: Reader) -> None:
        if self._feeds.refresh(reader):
            self._fire(reader.agent, FEED_READY)

    def _look_at_next(self, reader: Reader) -> None:
        if reader.unread:
            self._fire(reader.agent, SEES_POST, reader.look_at_next())

    def _weigh(self, reader: Reader) -> Question | None:
        agent, post = reader.agent, reader.post
        options = self.chart.enabled_targets(agent, DECIDES, post)
        logger = active_logger(self._logger)
        details: Mapping[str, Any] = {}
        if post is not None and (logger is not None or len(options) > 1):
            details = self._weighed(reader, post, logger)

        if len(options) > 1:
            pulls = herding_pulls(self._now.herding, self.network, post)
            return Question(
                agent,
                agent.state,
                DECIDES,
                tuple(options),
                post,
                self._odds(reader, pulls),
                chart=self.chart.definition,
                parameters=self.host.parameters,
                recall=partial(recollect, self.network, agent),
                pulls=pulls,
                relevance_pull=self._now.relevance_pull,
                details=details,
            )

        # one option leaves nothing to decide
        self._fire(agent, IGNORES, post)
        if self._now.dislike_chance:
            self._pass_by(agent, post)

        return None

    def _weighed(self, reader: Reader, post: Post, logger: EventLogger | None) -> Mapping[str, Any]:
        """Log what an agent makes of a post; return what a question tells of it."""
        agent, now = reader.agent, self._now
        # an agent of another engine may weigh in a way of its own
        weighed = getattr(agent, "weighed_relevance", None)
        relevance = None if weighed is None else weighed(post)
        votes = self.network.votes(post) if now.shows_scores else {}
        if logger is not None:
            logger.info(
                POST_WEIGHED,
                agent_id=agent.agent_id,
                post_id=post.post_id,
                relevance=relevance,
                threshold=getattr(agent, "engagement_threshold", None),
                **votes,
            )

        told: dict[str, Any] = {**votes, "relevance": relevance} if now.shows_scores else {}
        if now.shows_activity:
            told["you_write"] = in_means_of_all(reader.activity)

        return told

    def _pass_by(self, agent: SocialAgent, post: Post | None) -> None:
        """Have an agent that scrolls past a post that it has weighed dislike it, with a chance."""
        now = self._now
        if post is None:
            return

        # a stream of its own: whether anybody dislikes anything shifts no other number
        stream = RandomStream(self.seed, "dislikes", agent.agent_id, post.post_id)
        pulls = herding_pulls(now.herding, self.network, post)
        if stream.random() >= dislike_odds(now.dislike_chance, pulls):
            return

        self.network.vote(post, 0, 1)
        self._emit(
            POST_DISLIKED,
            agent_id=agent.agent_id,
            post_id=post.post_id,
            author_id=post.author_id,
        )

    def _odds(
        self, reader: Reader, pulls: Mapping[Any, float] | None
    ) -> Mapping[AgentState, float] | None:
        """Return the probabilities of the options, where the parameters say them."""
        agent, post = reader.agent, reader.post
        if self._now.compose_chance is None or post is None:
            return None

        rating = getattr(agent, "relevance", None)
        relevance = 0.0 if rating is None else rating(post)

        return odds_of(self._now, reader.activity, relevance, post, pulls)

    def _compose(self, reader: Reader) -> TextCall | None:
        agent, post = reader.agent, reader.post
        # a stream of its own: a composer that draws more numbers changes no decision
        stream = RandomStream(self.seed, agent.agent_id, self._clock.round, self._clock.tick)
        if post is not None:
            reader.draft = self._feed.compose(agent, post, stream)
        elif agent.pending_action == "post":
            now = self._now
            topics = topic_of_ones_own(agent, now.common_topics, now.common_share, stream)
            reader.draft = self._feed.compose_post(agent, topics, stream)
        else:
            return None

        if not self._may_write(reader, reader.draft):
            reader.draft = agent.pending_action = None
            self._fire(agent, COMPOSE_DONE, post)
            return None

        call = None if self._texts is None else self._texts.ask(reader, post)
        agent.pending_action = kind = reader.draft.kind
        if kind == "post":
            self._publish(reader, reader.draft)

        self._fire(agent, COMPOSE_DONE, post)
        if kind == "post":
            agent.pending_action = None

        return call

    def _may_write(self, reader: Reader, draft: Draft) -> bool:
        """Return whether an agent has not written of a cascade as often as it may already."""
        if draft.kind == "post" or reader.post is None:
            return True

        now, root = self._now, reader.post.root
        if draft.kind == "reshare":
            return not now.reshares_once or root.number not in reader.reshared

        most = now.replies_per_cascade
        return most is None or reader.replied.get(root.number, 0) < most

    def _publish_draft(self, reader: Reader) -> None:
        if reader.draft is not None:
            self._publish(reader, reader.draft)

        reader.agent.pending_action = None
        self._fire(reader.agent, ACTION_DONE, reader.post)

    def _like(self, reader: Reader) -> None:
        post = reader.post
        if post is not None:
            self.network.like(post, reader)
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


def herding_pulls(
    weight: float, network: Network, post: Post | None
) -> Mapping[AgentState, float] | None:
    """Return what a post's score adds to the utility of liking it; None for nothing.

    Votes of others that are there already draw further ones (Muchnik, Aral and Taylor 2013); the
    more there are, the less another one adds. The form is chosen so that a weight is the utility of
    a score of 1: ``weight * sign(score) * log2(1 + |score|)``.

    Args:
        weight: How strongly agents follow others; 0 for not at all.
        network: The posts and their votes.
        post: The post.
    """
    score = network.score(post) if weight and post is not None else 0
    if not score:
        return None

    return {AgentState.ENGAGING_LIKE: weight * copysign(log2(1 + abs(score)), score)}


def odds_of(
    parameters: Parameters,
    activity: float,
    relevance: float,
    post: Post,
    pulls: Mapping[Any, float] | None,
) -> Mapping[AgentState, float] | None:
    """Return the probability of each option in EVALUATING; None where archetypes say so.

    Args:
        parameters: The chances of an agent of mean activity.
        activity: How active the agent is, in means of all.
        relevance: How relevant the post is to it.
        post: The post.
        pulls: What else speaks for options, in units of utility.
    """
    composes, likes = parameters.compose_chance, parameters.like_chance
    if composes is None or likes is None:
        return None

    pull = exp(parameters.relevance_pull * relevance)
    fading = parameters.fading**post.depth
    composing = min(parameters.most_chance, composes * activity * fading * pull)
    herding = exp(pulls.get(AgentState.ENGAGING_LIKE, 0.0)) if pulls else 1.0
    liking = min(1.0 - composing, likes * pull * herding)

    return {
        AgentState.SCROLLING: 1.0 - composing - liking,
        AgentState.ENGAGING_LIKE: liking,
        AgentState.COMPOSING: composing,
    }


def dislike_odds(chance: float, pulls: Mapping[Any, float] | None) -> float:
    """Return the probability that an agent dislikes a post that it scrolls past.

    Args:
        chance: That of a post without a score, or where agents do not follow votes.
        pulls: What the score adds to the utility of liking the post, which it takes from that of
            disliking it.
    """
    pull = pulls.get(AgentState.ENGAGING_LIKE, 0.0) if pulls else 0.0
    return min(1.0, chance * exp(-pull))


_DONE = {
    AgentState.ENGAGING_LIKE: "liked it",
    AgentState.ENGAGING_REPLY: "replied",
    AgentState.ENGAGING_RESHARE: "reshared it",
    AgentState.COMPOSING: "posted yourself",
}
"""What an agent has done that leaves a state because it is done."""


def recollect(network: Network, agent: Any, most: int) -> Sequence[str]:
    """Return the last posts that an agent saw, with what it did about them, oldest first.

    The post that it is weighing is not among them.

    Args:
        network: The posts.
        agent: The agent.
        most: How many at most.
    """
    history = list(getattr(agent, "state_history", None) or ())
    written = reversed(network.posts_by(agent.agent_id))
    told: list[str] = []
    done = ""

    # the newest first: of what the agent wrote, the last belongs to the last time it did so
    for record in reversed(history):
        if record.trigger == SEES_POST:
            post = network.post(str((record.context or {}).get("post_id")))
            if post is not None and record is not history[-1]:
                told.append(f"You saw {_in_words(post)}, and {done or 'scrolled on'}.")
            done = ""
        elif record.trigger in (ACTION_DONE, COMPOSE_DONE):
            done = _done(record, written) or done
        if len(told) == most:
            break

    return told[::-1]


def _done(record: Any, written: Iterator[Post]) -> str:
    """Return what an agent has done when a transition says that it is done."""
    if record.trigger == COMPOSE_DONE and record.to_state is not AgentState.RESTING:
        # on its way to a reply or a reshare, or nothing came of it
        return ""

    what = _DONE.get(record.from_state, "")
    if record.from_state is AgentState.ENGAGING_LIKE:
        return what

    post = next(written, None)
    return what if post is None else f'{what}: "{post.text}"'


def _in_words(post: Post) -> str:
    return f'a {post.kind} by {post.author_id}: "{post.text}"'

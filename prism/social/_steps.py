"""The steps of social agents: open a feed, look at a post, weigh it, write, like."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from prism.agents import SocialAgent
from prism.randomness import RandomStream
from prism.reasoner._policy import ToDraw
from prism.social._activity import Hours, in_means_of_all
from prism.social._composing import Composer, TemplateComposer, topic_of_ones_own
from prism.social._feeds import Feeds
from prism.social._parameters import Parameters
from prism.social._population import KINDS_OF_ACTS
from prism.social._posts import Draft, Post, PostKind, Words
from prism.social._publishing import Network
from prism.social._readers import Reader
from prism.social._results import Activity
from prism.social._treatments import PostTreatment
from prism.social._weighing import (
    dislike_odds,
    herding_pulls,
    odds_of,
    recollect,
    virality_of,
)
from prism.social._writing import PostTexts, situation_in_feed
from prism.statechart import AgentState, Question, TextCall
from prism.statechart.social import (
    ACTION_DONE,
    COMPOSE_DONE,
    DECIDES,
    FEED_READY,
    HAS_IDEA,
    IGNORES,
    ROUND_ENDS,
    SEES_POST,
)
from prism.telemetry.events import POST_DISLIKED, POST_LIKED, POST_PUBLISHED, POST_WEIGHED
from prism.telemetry.loggers import active_logger
from prism.worlds import during
from prism.worlds._agent import Asked, Writing
from prism.worlds._agent_set import AgentSet
from prism.worlds._host import RunHost
from prism.worlds._treatments import tell_assigned

Running = Coroutine[Any, Any, None]
"""The rest of a step, which waits for an answer."""

_STEPS_TO_FINISH = 2
"""Composing and publishing."""

MEANINGS_OF_ACTS: Mapping[AgentState, str] = {
    AgentState.COMPOSING: "Write a post of your own",
}
"""Meanings of the options beside replying and resharing."""

_COUNTERS = {"post": "posts", "reply": "replies", "reshare": "reshares"}


@dataclass(slots=True)
class Playing:
    """The state of a feed while it runs.

    Args:
        host: The run.
        acts: Whether agents may choose among all acts.
        chooses_acts_for: Returns the agents for which a model decides.
        texts: The requests to the writer; None without a writer.
        has_ideas: Whether the chart has the event with which agents begin to write.
        values: The values of the parameters at the beginning of this tick.

    Attributes:
        agents: The population, in the order in which it was given.
        network: The posts, and the readers they reach.
        feeds: Makes the readers' feeds.
        hours: When agents are awake; None for always.
        counts: The counts of this round.
        of_posts: The treatments of posts as they are published.
    """

    host: RunHost
    acts: bool
    chooses_acts_for: Callable[[Any], bool]
    texts: PostTexts | None
    has_ideas: bool
    values: tuple[Any, ...]
    agents: AgentSet[Any] = field(default_factory=AgentSet)
    network: Network = field(default_factory=Network)
    feeds: Feeds = field(init=False)
    hours: Hours | None = None
    counts: Activity = field(default_factory=Activity)
    of_posts: list[PostTreatment] = field(default_factory=list)


class FeedSteps(Parameters):
    """The steps of a feed's agents; `prism.social.Feed` describes them."""

    __slots__ = ("_playing",)

    if TYPE_CHECKING:
        # slots, not fields that users set
        _playing: ClassVar[Playing]
        composer: Composer | None = None

    @during(AgentState.IDLE)
    def open_feed(self, reader: Reader) -> None:
        """Begin to scroll if there is anything to read, or to write if there is an idea."""
        if self._has_idea(reader):
            return
        if self.visit_chance < 1 and not self._visits(reader):
            return
        if self._playing.feeds.refresh(reader):
            reader.fire(FEED_READY)

    @during(AgentState.SCROLLING)
    def look_at_next(self, reader: Reader) -> None:
        """Look at the next post, or begin to write if there is an idea."""
        if reader.passed is not None:
            passed, reader.passed = reader.passed, None
            self._pass_by(reader, passed)
        if not self._has_idea(reader) and reader.unread:
            reader.fire(SEES_POST, reader.look_at_next())

    @during(AgentState.EVALUATING)
    def weigh_post(self, reader: Reader) -> Asked | None:
        """Decide how to react to a post, if there is a choice."""
        agent, post, playing = reader.agent, reader.post, self._playing
        options = reader._chart.enabled_targets(agent, DECIDES, post)
        is_model = playing.acts and playing.chooses_acts_for(agent)
        if playing.acts:
            options = [option for option in options if self._offers(reader, option, is_model)]

        self._log_weighing(reader)
        if len(options) > 1:
            meanings = MEANINGS_OF_ACTS if is_model else None
            question = self._question(reader, tuple(options), meanings)
            reader.has_chosen = is_model
            return Asked(reader, DECIDES, post, None, None, question, self._decided)

        # with one option, there is nothing to decide
        reader.fire(IGNORES, post)
        if self.dislike_chance and post is not None:
            self._pass_by(reader, post)

        return None

    @during(AgentState.COMPOSING)
    def write_draft(self, reader: Reader) -> Running | None:
        """Draft a text; publish it if it is a new post."""
        agent, post, texts = reader.agent, reader.post, self._playing.texts
        draft = self._drafted(reader)
        if draft is None:
            return None
        if not self._may_write(draft.kind, reader):
            agent.pending_action = None
            reader.fire(COMPOSE_DONE, post)
            return None

        reader.draft = draft
        running = None if texts is None else self._ask_for_words(reader, texts)
        agent.pending_action = draft.kind
        if draft.kind == "post":
            self._publish(reader, draft)

        reader.fire(COMPOSE_DONE, post)
        if draft.kind == "post":
            agent.pending_action = None

        return running

    @during(AgentState.ENGAGING_LIKE)
    def like_post(self, reader: Reader) -> None:
        """Like the post."""
        post, playing = reader.post, self._playing
        if post is not None:
            playing.network.like(post, reader)
            playing.counts.likes += 1
            playing.host.emit(
                POST_LIKED,
                agent_id=reader.agent_id,
                post_id=post.post_id,
                author_id=post.author_id,
            )

        reader.fire(ACTION_DONE, post)

    @during(AgentState.ENGAGING_REPLY)
    def publish_reply(self, reader: Reader) -> Running | None:
        """Publish a reply to the post."""
        return self._publish_draft(reader, "reply")

    @during(AgentState.ENGAGING_RESHARE)
    def publish_reshare(self, reader: Reader) -> Running | None:
        """Reshare the post, with a comment."""
        return self._publish_draft(reader, "reshare")

    # Methods of a feed, which the user's own feed may override

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Write what an agent publishes. By default, the feed's composer does.

        Args:
            agent: The agent that writes.
            post: The post it was looking at when it decided to write.
            stream: Random numbers for this text only.
        """
        return self._composing().compose(agent, post, stream)

    def compose_as(
        self, agent: SocialAgent, post: Post, kind: PostKind, stream: RandomStream
    ) -> Draft:
        """Write a reply or reshare, which the agent has already chosen to publish.

        By default, the composer writes it. If the composer draws the kind itself, only its words
        are used.

        Args:
            agent: The agent that writes.
            post: The post it was looking at when it decided to write.
            kind: ``reply`` or ``reshare``.
            stream: Random numbers for this text only.
        """
        write: Any = getattr(self._composing(), "compose_as", None)
        if write is None or type(self).compose is not FeedSteps.compose:
            return replace(self.compose(agent, post, stream), kind=kind)

        draft: Draft = write(agent, post, kind, stream)
        return draft

    def compose_post(
        self, agent: SocialAgent, topics: tuple[str, ...], stream: RandomStream
    ) -> Draft:
        """Write what an agent publishes on its own initiative. By default, the composer does.

        Args:
            agent: The agent that writes.
            topics: Its topics.
            stream: Random numbers for this text only.
        """
        # the user's own composer may write only about posts
        composer: Any = self._composing()
        write = getattr(composer, "compose_post", TemplateComposer().compose_post)
        draft: Draft = write(agent, topics, stream)

        return draft

    def _composing(self) -> Composer:
        given = self.composer
        shares = self.reply_share, self.reshare_share, self.post_share
        return TemplateComposer(*shares) if given is None else given

    # Ideas

    def _has_idea(self, reader: Reader) -> bool:
        """Make an agent begin a post on its own initiative, if one is due."""
        ideas = reader.ideas
        if ideas is None:
            return False
        if reader.before_idea:
            reader.before_idea -= 1
            return False

        reader.before_idea = next(ideas)
        reader.post = None
        reader.choose(None)
        reader.agent.pending_action = "post"
        reader.fire(HAS_IDEA)
        return True

    def _visits(self, reader: Reader) -> bool:
        """Return whether an idle agent opens its feed."""
        playing = self._playing
        clock, chance = playing.host.clock, self.visit_chance
        stream = RandomStream(playing.host.seed, "visits", reader.agent_id, clock.round, clock.tick)
        return stream.chance(chance)

    # Weighing

    def _offers(self, reader: Reader, option: AgentState, is_model: bool) -> bool:
        """Return whether an agent may choose an option; only models choose among acts."""
        kind = KINDS_OF_ACTS.get(option)
        return kind is None or (is_model and self._may_write(kind, reader))

    def _log_weighing(self, reader: Reader) -> None:
        """Log how an agent weighs a post."""
        agent, post, playing = reader.agent, reader.post, self._playing
        logger = active_logger(playing.host.logger)
        if post is None or logger is None:
            return

        weighing = {
            "post_id": post.post_id,
            "relevance": _weighed(agent, post),
            "threshold": getattr(agent, "engagement_threshold", None),
        }
        if self.shows_scores:
            weighing |= playing.network.votes(post)
        logger.info(POST_WEIGHED, agent_id=reader.agent_id, **weighing)

    def _details(self, reader: Reader) -> Mapping[str, Any]:
        """Return what a model is told about a post and its reader, besides the post itself."""
        post = reader.post
        if post is None:
            return {}

        told: dict[str, Any] = {}
        if self.shows_scores:
            told |= self._playing.network.votes(post)
            told["relevance"] = _weighed(reader.agent, post)
        if self.shows_activity:
            told["you_write"] = in_means_of_all(reader.activity)

        return told

    def _question(
        self,
        reader: Reader,
        options: tuple[AgentState, ...],
        meanings: Mapping[AgentState, str] | None,
    ) -> Question | ToDraw:
        agent, post, playing = reader.agent, reader.post, self._playing
        network = playing.network
        pulls = herding_pulls(self, network, post)
        odds, state = self._odds(reader, pulls), AgentState.EVALUATING
        asked = ToDraw(agent, state, DECIDES, options, post, odds, pulls, self.relevance_pull)
        if playing.host.draws is not None:
            return asked

        return Question(
            **asked._asdict(),
            prompt=situation_in_feed(post),
            chart=reader._chart.definition,
            parameters=playing.host.parameters,
            recall=partial(recollect, network, agent),
            details=self._details(reader),
            meanings=meanings,
        )

    def _odds(
        self, reader: Reader, pulls: Mapping[Any, float] | None
    ) -> Mapping[AgentState, float] | None:
        """Return the probabilities of the options, if the parameters give them."""
        post = reader.post
        if self.compose_chance is None or post is None:
            return None

        rating = getattr(reader.agent, "relevance", None)
        relevance = 0.0 if rating is None else rating(post)

        virality = virality_of(self, self._playing.host.seed, post)
        return odds_of(self, reader.activity, relevance, post, pulls, virality)

    def _decided(self, asked: Asked) -> None:
        """Store the consequences of a decision."""
        # a policy's choice is no more than that
        reader, decision = asked.agent, asked.decision
        is_own_choice = reader.has_chosen
        reader.choose(None if decision is None else decision.said, by_model=is_own_choice)
        if asked.answer is AgentState.COMPOSING:
            # a time-out discards what the agent was about to do
            reader.agent.pending_action = "post" if is_own_choice else None

        scrolls_on = asked.answer is AgentState.SCROLLING
        is_own = decision is None or decision.source != "fallback"
        if scrolls_on and is_own and self.dislike_chance:
            # other agents may already be further, so a dislike is left for its next turn
            reader.passed = asked.context

    def _pass_by(self, reader: Reader, post: Post) -> None:
        """Dislike, with some probability, a post that the agent has weighed and scrolls past."""
        playing = self._playing
        # a separate stream, so dislikes shift no other random number
        stream = RandomStream(playing.host.seed, "dislikes", reader.agent_id, post.post_id)
        pulls = herding_pulls(self, playing.network, post)
        if stream.random() >= dislike_odds(self.dislike_chance, pulls):
            return

        playing.network.vote(post, 0, 1)
        playing.host.emit(
            POST_DISLIKED,
            agent_id=reader.agent_id,
            post_id=post.post_id,
            author_id=post.author_id,
        )

    # Writing

    def _drafted(self, reader: Reader) -> Draft | None:
        """Return what an agent is about to publish, or None."""
        agent, post = reader.agent, reader.post
        stream = self._text_stream(reader)
        # if a model decides, composing already means a post on its own initiative
        if post is not None and not reader.has_chosen:
            return self.compose(agent, post, stream)
        if agent.pending_action == "post":
            size = len(self._playing.agents)
            topics = topic_of_ones_own(agent, size, self.common_topics, self.common_share, stream)
            return self.compose_post(agent, topics, stream)

        return None

    def _text_stream(self, reader: Reader) -> RandomStream:
        """Return random numbers for one text; drawing more of them changes no decision."""
        playing = self._playing
        clock = playing.host.clock
        return RandomStream(playing.host.seed, reader.agent_id, clock.round, clock.tick)

    def _may_write(self, kind: PostKind, reader: Reader) -> bool:
        """Return whether an agent may write about a cascade again."""
        if kind == "post" or reader.post is None:
            return True

        root = reader.post.root
        if kind == "reshare":
            return not self.reshares_once or root.number not in reader.reshared

        most = self.replies_per_cascade
        return most is None or reader.replied.get(root.number, 0) < most

    def _ask_for_words(self, reader: Reader, texts: PostTexts) -> Running:
        """Ask for the words of a draft; the agent acts on the draft at once."""
        assert reader.draft is not None
        words = reader.words = Words(reader.draft)
        return _take_words(reader, texts.ask(reader, reader.post), words)

    def _publish_draft(self, reader: Reader, kind: PostKind) -> Running | None:
        agent, post, playing, running = reader.agent, reader.post, self._playing, None
        if reader.draft is None and post is not None and reader.has_chosen:
            # it has chosen this act itself, so there is no draft yet
            reader.draft = self.compose_as(agent, post, kind, self._text_stream(reader))
            if playing.texts is not None:
                running = self._ask_for_words(reader, playing.texts)
        if reader.draft is not None:
            self._publish(reader, reader.draft)

        agent.pending_action = None
        reader.fire(ACTION_DONE, post)

        return running

    def _publish(self, reader: Reader, draft: Draft) -> None:
        playing = self._playing
        words, reader.words = reader.words, None
        draft = draft if words is None else words.draft()
        # the turn may belong to an earlier tick than the current one
        playing.network.now = playing.host.clock()
        post = playing.network.publish(reader.agent_id, draft, reader.post)
        reader.draft = None
        counter = _COUNTERS[post.kind]
        setattr(playing.counts, counter, getattr(playing.counts, counter) + 1)
        self._announce_post(post, **({} if words is None else words.told_of(post)))

    def _announce_post(self, post: Post, **words: Any) -> None:
        self._playing.host.emit(
            POST_PUBLISHED,
            agent_id=post.author_id,
            post_id=post.post_id,
            kind=post.kind,
            parent_id=None if post.parent is None else post.parent.post_id,
            root_id=post.root.post_id,
            topics=list(post.topics),
            **{"text": post.text, **words},
        )
        self._treat_new(post)

    def _treat_new(self, post: Post) -> None:
        """Apply the treatments of posts to a new post, unless it is older than the run."""
        playing = self._playing
        if playing.of_posts and playing.host.round:
            for treatment in playing.of_posts:
                treatment.treat(self, [post])

            tell_assigned(playing.host)

    # The end of a round

    def _prism_last_step(self) -> Callable[[Any, Any], Any] | None:
        """Return a step that publishes drafts and sends agents to IDLE, unless they carry over."""
        return None if self.carries_over else _finish


_UNDER_WAY: Mapping[AgentState, Callable[[Any, Reader], Running | None]] = {
    AgentState.COMPOSING: FeedSteps.write_draft,
    AgentState.ENGAGING_LIKE: FeedSteps.like_post,
    AgentState.ENGAGING_REPLY: FeedSteps.publish_reply,
    AgentState.ENGAGING_RESHARE: FeedSteps.publish_reshare,
}


def _weighed(agent: Any, post: Post) -> Any:
    # an agent of another engine may weigh posts in its own way
    weighed = getattr(agent, "weighed_relevance", None)
    return None if weighed is None else weighed(post)


def _finish(feed: Any, reader: Reader) -> Running | None:
    """Publish what an agent is composing, so that no decision is lost, and send it to IDLE."""
    running = None
    for _ in range(_STEPS_TO_FINISH):
        step = _UNDER_WAY.get(reader.agent.state)
        if step is not None:
            running = step(feed, reader) or running

    if reader.agent.state is not AgentState.IDLE:
        reader.fire(ROUND_ENDS)

    return running


async def _take_words(reader: Reader, call: TextCall, words: Words) -> None:
    words.arrive(await Writing(reader, call))

"""The social feed: people who read, weigh, write, like and reshare posts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from prism.agents import SocialAgent, load_population, synthetic_population
from prism.errors import AgentError
from prism.randomness import RandomStream
from prism.social._acting import (
    ACTS_IN_WORDS,
    RULE,
    dislikes,
    in_words,
    odds_of,
    prompt_of,
    quoted,
    situation_of,
    template_text,
    unprompted_topics,
    with_common_topic,
)
from prism.social._differences import is_awake, wait
from prism.social._posting import Posting
from prism.social._posts import Draft, Post, PostKind
from prism.social._rankings import RANKINGS, Ranking, by_own_method, refresh
from prism.social._readers import KINDS_OF_ACTS, Reader, chart_of, reader_of
from prism.social.parameters import HOURS, SECONDS_PER_HOUR
from prism.statechart import AgentState, social
from prism.telemetry.events import POST_DISLIKED, POST_LIKED, POST_WEIGHED
from prism.worlds import Agent, during
from prism.worlds.decisions import Writing

_UNDER_WAY = (AgentState.COMPOSING, AgentState.ENGAGING_LIKE, *KINDS_OF_ACTS)
_ALL_KINDS: tuple[PostKind, ...] = ("reply", "reshare", "post")


class Feed(Posting):
    """Social agents who read, weigh, write, like and reshare posts.

    It is an ordinary world: derive from it to declare parameters, state, measures and treatments,
    to override a step, or to decide who engages and what is written::

        class Warned(Feed):
            threshold: float = 0.3

            def should_engage(self, reader: Reader, post: Post) -> bool:
                return reader.relevance(post) > self.threshold

            @treatment
            def warning(self) -> None:
                self.threshold = 0.6

            @measure
            def replies(self) -> float:
                return sum(post.kind == "reply" for post in self.posts)

    Its agents are readers, made of the fields of social agents. A class that defines ``setup``
    begins it with ``super().setup()``.

    Attributes:
        posts: All posts, oldest first.
    """

    rounds = 10
    ticks = 12
    input_files: ClassVar[Sequence[str]] = ("first_posts",)

    # The population

    def populate(self, agents: int) -> Iterable[Any]:
        """Make the population of a run that was given only a number; by default a synthetic one."""
        return synthetic_population(agents, seed=self.seed).agents

    def members(self, agents: int | Path | Iterable[Any]) -> list[Reader]:
        """Make readers of social agents, which do not change, or of a file of them.

        It may be any that `load_population` reads; other columns are attributes.
        """
        if isinstance(agents, Path):
            population = load_population(agents, seed=self.seed)
            if population.posts and self.first_posts is None:
                self.first_posts: Any = population.posts
            agents = population.agents
        social = [*super().members(agents)]
        return [self._reader_of(each, len(social)) for each in social]

    def add(self, agent: Any, at: Agent | None = None, *, neighbours: Iterable[Agent] = ()) -> Any:
        """Let a social agent join the run as a reader that has all that the first ones have.

        It sees the posts of those whom it follows, and those who follow its id see its posts.
        """
        reader = super().add(self._reader_of(agent, len(self.agents)), at, neighbours=neighbours)
        self._equip(reader)
        return reader

    def _reader_of(self, agent: Any, size: int) -> Reader:
        """Return the reader for a social agent in a population of some size."""
        if not isinstance(agent, SocialAgent):
            raise AgentError(f"the agents of a feed are social agents, got {agent!r}")
        acts = bool(getattr(self._run_turns.answers.reasoner, "chooses_acts", False))
        chart = chart_of(has_ideas=self.posts_per_tick > 0, acts=acts)
        interests = with_common_topic(agent, size, self.common_topics, self.seed)
        return reader_of(agent, chart, interests)

    def setup(self) -> None:
        """Prepare the agents, and publish the posts from before the first round."""
        self._run_turns.clock.seconds_per_tick = SECONDS_PER_HOUR / self.ticks_per_hour
        self._first_hour = RandomStream(self.seed, "first hour").index(HOURS)
        for reader in self.agents:
            reader.ticks_in_state = reader.first_ticks
        super().setup()

    # Rounds and ticks

    async def tick(self) -> None:
        """Give a turn to every agent that is awake."""
        if self.hours == "always":
            await self.activate()
            return
        turns = self._run_turns
        hour = self._first_hour + (turns.now - 1) // self.ticks_per_hour
        awake = [each for each in self.agents if is_awake(each, hour, self.seed)]
        for reader in self.agents:
            if reader.state is not AgentState.IDLE and not is_awake(reader, hour, self.seed):
                turns.pause(reader)
        await self.activate(agent for _, agent in turns.in_order(awake))

    async def close_round(self) -> None:
        """Publish what agents are composing, so that no decision is lost, and send them to IDLE."""
        if self.carries_over:
            return

        for _ in ("compose", "publish"):
            busy = [each for each in self.agents if each.state in _UNDER_WAY]
            await self.activate(agent for _, agent in self._run_turns.in_order(busy))
        for _, reader in self._run_turns.in_order(self.agents):
            if reader.state is not AgentState.IDLE:
                reader.fire(social.ROUND_ENDS)

    # The steps

    @during(AgentState.IDLE)
    def open_feed(self, reader: Reader) -> None:
        """Begin to scroll if there is anything to read, or to write if there is an idea."""
        if self._has_idea(reader):
            return
        if self.visit_chance < 1 and not reader.random.chance(self.visit_chance):
            return
        if refresh(self, reader):
            reader.fire(social.FEED_READY)

    @during(AgentState.SCROLLING)
    def look_at_next(self, reader: Reader) -> None:
        """Look at the next post, or begin to write if there is an idea."""
        if not self._has_idea(reader) and reader.unread:
            reader.post = post = reader.unread.pop(0)
            reader.looked_at.append(post.number)
            reader.fire(social.SEES_POST, post)

    @during(AgentState.EVALUATING)
    async def weigh_post(self, reader: Reader) -> None:
        """Decide how to react to a post, if it is relevant enough."""
        post = reader.post
        if post is None:
            reader.fire(social.IGNORES)
            return
        is_engaged = self.should_engage(reader, post)
        self._log_weighing(reader, post)
        if not is_engaged:
            reader.fire(social.IGNORES, post)
            self._pass_by(reader, post)
            return

        answers, prompt = self._run_turns.answers, None
        if answers.policy is None:
            reader.acts = self._acts_of(reader, post)
            prompt = situation_of(self, post)
        weights = odds_of(self, reader, post)
        chosen = await reader.decide(social.DECIDES, post, weights=weights, prompt=prompt)
        if chosen is AgentState.COMPOSING:
            # of those who choose among all acts, composing means a post of their own
            reader.pending_action = "post" if reader.acts else None
        elif chosen is AgentState.SCROLLING:
            self._pass_by(reader, post)
        if self._run_turns.remembers and chosen is not None:
            reader.remember(f"You saw {in_words(post)}, and {ACTS_IN_WORDS[chosen]}.")

    @during(AgentState.COMPOSING)
    async def write_draft(self, reader: Reader) -> None:
        """Draft a text; publish it if it is a new post."""
        post, kind, stream = reader.post, reader.pending_action, self._stream_of_text(reader)
        if post is not None and kind is None:
            weights = (self.reply_share, self.reshare_share, self.post_share)
            kind = _ALL_KINDS[stream.weighted_index(weights)]
        if kind is None or not self._may_write(reader, kind, post):
            reader.pending_action = None
            reader.fire(social.COMPOSE_DONE, post)
            return
        reader.pending_action = kind
        await self._draft(reader, kind, stream)
        if kind == "post":
            self._publish_draft(reader, kind)
        reader.fire(social.COMPOSE_DONE, post)
        if kind == "post":
            reader.pending_action = None

    @during(AgentState.ENGAGING_REPLY, AgentState.ENGAGING_RESHARE)
    async def publish_about(self, reader: Reader) -> None:
        """Publish a reply to the post, or reshare it."""
        kind = KINDS_OF_ACTS[reader.state]
        # it may have begun the run here, with no post
        if reader.post is not None:
            if reader.draft is None:
                # it has chosen this act itself
                await self._draft(reader, kind, self._stream_of_text(reader))
            self._publish_draft(reader, kind)
        reader.pending_action = None
        reader.fire(social.ACTION_DONE, reader.post)

    @during(AgentState.ENGAGING_LIKE)
    def like_post(self, reader: Reader) -> None:
        """Like the post."""
        post = reader.post
        if post is not None:
            post.likes += 1
            self._run_turns.counts["likes"] += 1
            self._log_vote(POST_LIKED, reader, post)
        reader.fire(social.ACTION_DONE, post)

    # What your own feed may override

    def should_engage(self, reader: Reader, post: Post) -> bool:
        """Return whether a post is relevant enough for an agent."""
        return reader.relevance(post) >= self.engagement * reader.engagement_threshold

    def rank(
        self,
        reader: Reader,  # noqa: ARG002
        posts: Sequence[Post],
        stream: RandomStream,  # noqa: ARG002
    ) -> Iterable[Post]:
        """Return posts in the order in which an agent's feed shows them.

        By default, the parameter ``feed`` selects the ranking. Override this method to use your
        own.

        Args:
            reader: The agent whose feed it is.
            posts: The newest posts that it has not seen, newest first: up to ``candidates`` by
                authors whom it follows, and the same number by anybody.
            stream: Random numbers for this feed only.
        """
        return posts

    def compose(
        self,
        reader: Reader,  # noqa: ARG002
        kind: PostKind,
        post: Post | None,  # noqa: ARG002
        topics: tuple[str, ...],
        stream: RandomStream,
    ) -> str:
        """Return what an agent writes without a model, which is also the fallback of one.

        Args:
            reader: The agent that writes.
            kind: What it writes.
            post: The post that it looked at when it decided to write, if any.
            topics: Its topics.
            stream: Random numbers for this text only.
        """
        return template_text(kind, topics, stream)

    def writing_prompt(
        self, reader: Reader, kind: PostKind, post: Post | None, draft: Draft
    ) -> str:
        """Return the prompt for a model that writes the words of a draft, made by `compose`."""
        return prompt_of(reader, kind, post, draft)

    # For rankings

    @property
    def ranking(self) -> Ranking:
        """The function that ranks the posts of a feed."""
        return RANKINGS[self.feed] if type(self).rank is Feed.rank else by_own_method

    def stream_of_feed(self, reader: Reader) -> RandomStream:
        """Return random numbers for one feed."""
        return RandomStream(self.seed, "feed", reader.agent_id, self.round, self.tick_number)

    # Details of the steps

    def _stream_of_text(self, reader: Reader) -> RandomStream:
        """Return random numbers for one text; drawing more of them changes no decision."""
        return RandomStream(self.seed, reader.agent_id, self.round, self.tick_number)

    def _has_idea(self, reader: Reader) -> bool:
        """Make an agent begin a post on its own initiative, if one is due."""
        rate = self.posts_per_tick * reader.activity
        if rate != reader.idea_rate:
            reader.idea_rate, reader.before_idea = rate, wait(rate, reader.random)
        if reader.before_idea:
            reader.before_idea -= 1
            return False

        reader.before_idea = wait(rate, reader.random)
        reader.post, reader.pending_action = None, "post"
        reader.fire(social.HAS_IDEA)
        return True

    def _acts_of(self, reader: Reader, post: Post) -> frozenset[PostKind]:
        """Return what a model may choose to publish about a post; nothing for a policy."""
        reasoner = self._run_turns.answers.reasoner
        # of a run that switches later, the part that decides at present
        decides = getattr(reasoner, "part", reasoner)
        if not getattr(decides, "chooses_acts", False):
            return frozenset()
        return frozenset(kind for kind in _ALL_KINDS if self._may_write(reader, kind, post))

    def _may_write(self, reader: Reader, kind: PostKind, post: Post | None) -> bool:
        """Return whether an agent may write about a cascade again."""
        if kind == "post" or post is None:
            return True
        most = self.replies_per_cascade if kind == "reply" else 1 if self.reshares_once else None
        return most is None or reader.written[kind, post.root.number] < most

    def _log_weighing(self, reader: Reader, post: Post) -> None:
        if self._run_turns.events.are_heard:
            self._log(
                POST_WEIGHED,
                agent_id=reader.agent_id,
                post_id=post.post_id,
                relevance=reader.relevance(post),
                threshold=reader.engagement_threshold,
                **(post.votes if self.shows_scores else {}),
            )

    def _pass_by(self, reader: Reader, post: Post) -> None:
        """Dislike, with some probability, a post that the agent has weighed and scrolls past."""
        if self.dislike_chance and dislikes(self, reader, post):
            post.dislikes += 1
            self._log_vote(POST_DISLIKED, reader, post)

    def _log_vote(self, event: str, reader: Reader, post: Post) -> None:
        self._log(event, agent_id=reader.agent_id, post_id=post.post_id, author_id=post.author_id)

    async def _draft(self, reader: Reader, kind: PostKind, stream: RandomStream) -> None:
        """Draft a text, whose words a model writes if the run has a writer."""
        post, answers = reader.post, self._run_turns.answers
        if kind == "post" or post is None:
            topics = unprompted_topics(reader, len(self.agents), self, stream)
        else:
            topics = post.topics
        text = self.compose(reader, kind, post, topics, stream)
        reader.draft = draft = Draft(text, topics)
        if answers.has_writer:
            prompt = self.writing_prompt(reader, kind, post, draft)
            call = answers.wording.call(reader, kind, prompt, persona=RULE, fallback=text)
            written = await Writing(reader, call)
            reader.draft = Draft(str(written.value), topics, text, written.source)

    def _publish_draft(self, reader: Reader, kind: PostKind) -> None:
        draft, reader.draft = reader.draft, None
        assert draft is not None
        parent = None if kind == "post" else reader.post
        if parent is not None:
            reader.written[kind, parent.root.number] += 1
        self._publish(reader.agent_id, kind, draft, parent, None)
        if self._run_turns.remembers:
            reader.remember(f"You published a {kind}: {quoted(draft.text)}")

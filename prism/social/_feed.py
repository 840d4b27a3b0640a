"""The social feed as a world, which can be given parameters, treatments and measures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, cast

from prism.agents import (
    SeedPost,
    SocialAgent,
    load_population,
    synthetic_population,
)
from prism.errors import FieldValueError, SimulationError
from prism.social._composing import Composer, TemplateComposer
from prism.social._feeds import Rank
from prism.social._parameters import Parameters
from prism.social._posts import Draft, Post
from prism.social._presets import DEFAULT_PRESET
from prism.social._stage import FeedHost, FeedStage, opened_by
from prism.social._treatments import (
    Dislikes,
    Likes,
    PostTreatment,
    PublishPost,
    RemoveAgents,
    SwitchFeed,
)
from prism.statechart import Guard, RandomStream
from prism.worlds import World

DEFAULTS = Parameters.preset(DEFAULT_PRESET)
DEFAULT_ROUNDS = 10
DEFAULT_TICKS_PER_ROUND = 12


class Feed(World[Any]):
    """Social agents who read, weigh, write, like and reshare posts; see `prism.social.Simulation`.

    Derive from it to declare parameters, state, measures and treatments as in any world, to log
    events of your own, or to say yourself who engages and what is written::

        class Warned(Feed):
            threshold: float = 0.3

            def should_engage(self, agent: SocialAgent, post: Post) -> bool:
                return agent.relevance(post) > self.threshold

            @treatment
            def warning(self) -> None:
                self.threshold = 0.6

            @measure
            def replies(self) -> float:
                return sum(post.kind == "reply" for post in self.posts)

    What the agents do in their states is the feed's own: steps, messages and networks of other
    worlds are not part of it.

    Attributes:
        parameters: All numbers of the feed's behaviour; each is set and told by its own name, too.
    """

    __slots__ = ("_composer", "_guard", "_seeds", "parameters")

    rounds = DEFAULT_ROUNDS
    ticks = DEFAULT_TICKS_PER_ROUND
    overlap = True
    treatment_classes: ClassVar[Sequence[type]] = (
        Likes,
        Dislikes,
        PublishPost,
        RemoveAgents,
        SwitchFeed,
    )
    _prism_stage: ClassVar[Any] = FeedStage

    parameters: Parameters = DEFAULTS

    @property
    def posts(self) -> Sequence[Post]:
        """All posts, oldest first."""
        return self._played().network.posts

    def agent(self, agent_id: str) -> SocialAgent:
        """Return the agent of an id.

        Raises:
            FieldValueError: If there is none.
        """
        return self._played().treated.agent(agent_id)

    def likes_of(self, post: Post) -> int:
        """Return how often a post has been liked."""
        return self._played().network.likes.get(post.post_id, 0)

    def publish(self, author: SocialAgent | str, text: str, topics: Iterable[str] = ()) -> Post:
        """Publish a post in an agent's name, from a treatment or a hook of a round.

        Args:
            author: The agent, or its id.
            text: What it says.
            topics: What it is about.

        Raises:
            SimulationError: If no round is under way, or in a measure.
            FieldValueError: If the author is nobody among the agents.
        """
        self._require_round("publish")
        name = author if isinstance(author, str) else author.agent_id

        return self._played().publish_as(name, text, topics)

    def vote(self, post: Post, *, likes: int = 0, dislikes: int = 0) -> None:
        """Give a post likes or dislikes that are no agent's, from a treatment.

        Args:
            post: The post.
            likes: How many likes.
            dislikes: How many dislikes.

        Raises:
            SimulationError: If no round is under way, or in a measure.
        """
        self._require_round("vote")
        self._played().treated.vote(post, likes, dislikes)

    def score_of(self, post: Post) -> int:
        """Return the likes of a post less its dislikes."""
        return self._played().network.score(post)

    def remove(self, agent: SocialAgent | str) -> None:
        """Have an agent take no further step, from a treatment or a hook of a round.

        It follows and is followed by nobody from then on; what it has published stays.

        Args:
            agent: The agent, or its id.

        Raises:
            SimulationError: If no round is under way, or in a measure.
            FieldValueError: If it is nobody among the agents.
        """
        self._require_round("remove an agent")
        name = agent if isinstance(agent, str) else agent.agent_id
        self._played().treated.remove(name)

    def treat_posts(self, treatment: PostTreatment) -> None:
        """Have a treatment treat every post as it is published, from now on.

        Args:
            treatment: What has a method ``treat(feed, posts)``; it is called again on resuming, by
                its own ``go_on``.
        """
        self._played().treated.of_posts.append(treatment)

    # What a feed of your own may say

    def populate(self, agents: int) -> Iterable[SocialAgent]:
        """Make the population of a run that says a number only; by default a synthetic one."""
        now, seed = self.parameters, self._played().seed

        return synthetic_population(
            agents, seed=seed, archetypes=now.archetypes(), communities=now.communities()
        ).agents

    def _from_table(self, table: Any) -> Iterable[SocialAgent]:
        """Make the population from any file that `load_population` reads."""
        population = load_population(
            table.path,
            seed=self._played().seed,
            keep=table.keep,
            archetypes=self.parameters.archetypes(),
            most_keywords=self.parameters.most_keywords,
        )
        # such a file need not hold posts
        self.give(posts=population.posts or None)

        return population.agents

    def opening(self) -> Iterable[SeedPost]:
        """Return what was posted before the first round, oldest first."""
        given: Iterable[SeedPost] | None = getattr(self, "_seeds", None)
        if given is not None:
            return given

        return opened_by(self.agents, self.parameters.opening, self._played().seed)

    def should_engage(self, agent: Any, post: Post) -> bool:
        """Return whether a post is relevant enough for an agent; by default the agent says so."""
        return bool(agent.should_engage(post))

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Write what an agent publishes; by default the composer of the simulation does.

        Args:
            agent: Who writes.
            post: What it looked at when it decided to.
            stream: Random numbers for this text alone.
        """
        return self._composing().compose(agent, post, stream)

    def compose_post(
        self, agent: SocialAgent, topics: tuple[str, ...], stream: RandomStream
    ) -> Draft:
        """Write what an agent publishes of its own accord; by default the composer does.

        Args:
            agent: Who writes.
            topics: What about.
            stream: Random numbers for this text alone.
        """
        # a composer of the user's own may write about posts only
        composer: Any = self._composing()
        write = getattr(composer, "compose_post", TemplateComposer(self.parameters).compose_post)
        draft: Draft = write(agent, topics, stream)

        return draft

    def rank(
        self,
        agent: SocialAgent,  # noqa: ARG002
        posts: Sequence[Post],
        stream: RandomStream,  # noqa: ARG002
    ) -> Iterable[Post]:
        """Return posts in the order in which an agent's feed shows them.

        By default the parameter ``feed`` says how feeds are made; define it to say so yourself.

        Args:
            agent: Whose feed it is.
            posts: The newest posts that it has not seen, of those that it follows and of anybody,
                newest first; as many of either as the parameter ``candidates`` says.
            stream: Random numbers for this feed alone.
        """
        return posts

    # The run's side

    def give(
        self,
        *,
        posts: Iterable[SeedPost] | None = None,
        composer: Composer | None = None,
        guard: Guard | None = None,
    ) -> None:
        """Take what a `Simulation` was given."""
        given = {"_seeds": posts, "_composer": composer, "_guard": guard}
        for name, value in given.items():
            if value is not None:
                object.__setattr__(self, name, value)

    def guard(self) -> Guard | None:
        """Return who says whether a post is relevant enough; None if each agent does."""
        given: Guard | None = getattr(self, "_guard", None)
        if type(self).should_engage is Feed.should_engage:
            return given
        if given is not None:
            raise FieldValueError(
                f"{type(self).__name__} has a should_engage of its own: leave out the other one"
            )

        return self.should_engage

    def ranking(self) -> Rank | None:
        """Return `rank` if a feed of the user's own has defined it."""
        return None if type(self).rank is Feed.rank else self.rank

    def _composing(self) -> Composer:
        given: Composer | None = getattr(self, "_composer", None)
        return TemplateComposer(self.parameters) if given is None else given

    def _require_round(self, doing: str) -> None:
        host = self._played().host
        reason = host.refusing
        if host.is_setting_up:
            reason = "the first round has not begun; let opening return what is there before it"
        if reason is not None:
            raise SimulationError(f"{type(self).__name__} cannot {doing}: {reason}")

    def _played(self) -> FeedStage:
        host = cast(FeedHost, self._hosted("posts"))
        return host.stage

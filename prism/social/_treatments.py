"""Ready-made treatments of the feed, and what they have done: votes, posts, removals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, get_args

from prism.agents import SocialAgent
from prism.errors import FieldValueError, InputError
from prism.social._posts import Network, Post, PostKind
from prism.telemetry.events import AGENT_REMOVED, POST_VOTED
from prism.worlds import SharedTreatment, Treatment, World
from prism.worlds._host import RunHost
from prism.worlds._parameters import set_parameters
from prism.worlds._treatments import check_parameters, tell_assigned


@dataclass(frozen=True, slots=True)
class _Votes(SharedTreatment):
    """Votes for a share of the posts, as they are published."""

    number: int = field(default=1, kw_only=True, metadata={"declared": {"ge": 1}})
    posts: tuple[PostKind, ...] = field(
        default=("post", "reply", "reshare"),
        kw_only=True,
        metadata={"declared": {"min_length": 1}},
    )
    existing: bool = field(default=False, kw_only=True)
    until: int | None = field(default=None, kw_only=True, metadata={"declared": {"ge": 1}})

    def __post_init__(self) -> None:
        """Refuse numbers and kinds of posts that there are not."""
        SharedTreatment.__post_init__(self)
        object.__setattr__(self, "posts", tuple(self.posts))
        number: Any = self.number
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            problem = f"must be a whole number, 1 or more, got {number!r}"
            raise InputError(problem, field="number")
        if self.until is not None and self.until < self.round:
            problem = f"must not be before round {self.round}, got {self.until!r}"
            raise InputError(problem, field="until")

        known = get_args(PostKind)
        for each in self.posts or ("none",):
            if each not in known:
                raise InputError(f"must be some of {', '.join(known)}, got {each!r}", field="posts")

    def apply(self, world: World[Any]) -> None:
        """Treat the posts that are there, as far as they are meant, and from now on new ones."""
        feed: Any = world
        # nobody has read the opening posts when the first round begins
        if self.existing or self.round == 1:
            self.treat(world, feed.posts)

        self.go_on(world)

    def go_on(self, world: World[Any]) -> None:
        """Treat new posts from now on."""
        feed: Any = world
        feed.treat_posts(self)

    def treat(self, world: World[Any], posts: Sequence[Post]) -> None:
        """Give those of some posts their votes that are drawn.

        Args:
            world: The feed.
            posts: The posts.
        """
        if self.until is not None and world.round > self.until:
            return

        feed: Any = world
        meant = {post.post_id: post for post in posts if self._is_meant(feed, post)}
        arms = self.arms_of(world)
        for post_id in arms.assign("post_id", meant, self.experiment, self.name):
            # a class is called as what it gives
            feed.vote(meant[post_id], **{self.kind: self.number})

    def _is_meant(self, feed: Any, post: Post) -> bool:
        if post.kind not in self.posts:
            return False
        if not self.agents and not self.where:
            return True

        return self.concerns(feed.agent(post.author_id))


@dataclass(frozen=True, slots=True)
class Likes(_Votes):
    """Likes for a share of the posts as they are published, from a round on.

    They are no agent's: the log has them as ``post.voted``, and counts of likes by agents leave
    them out. The posts that a run begins with are published in round 1. Votes for a share of the
    posts are what Muchnik, Aral and Taylor (2013) call up-treated, and so does the herd experiment
    of OASIS (Yang et al. 2024).

    Args:
        round: The round from whose beginning on posts are treated.
        number: Likes for each treated post.
        posts: Kinds of posts that come into question.
        existing: Whether older posts than those of the round come into question, too.
        until: The last round whose posts are treated; by default there is none.
        share: The share of the posts that is treated, above 0 and at most 1.
        agents: Ids of the authors whose posts come into question; by default all.
        where: What these authors have.
        experiment: Name of the experiment; by default the treatment's own name.
        name: Name of the arm; ``likes`` by default.
    """

    kind: ClassVar[str] = "likes"


@dataclass(frozen=True, slots=True)
class Dislikes(_Votes):
    """Dislikes for a share of the posts as they are published, from a round on.

    As `Likes`; a post's score is its likes less its dislikes.

    Args:
        round: The round from whose beginning on posts are treated.
        number: Dislikes for each treated post.
        posts: Kinds of posts that come into question.
        existing: Whether older posts than those of the round come into question, too.
        until: The last round whose posts are treated; by default there is none.
        share: The share of the posts that is treated, above 0 and at most 1.
        agents: Ids of the authors whose posts come into question; by default all.
        where: What these authors have.
        experiment: Name of the experiment; by default the treatment's own name.
        name: Name of the arm; ``dislikes`` by default.
    """

    kind: ClassVar[str] = "dislikes"


@dataclass(frozen=True, slots=True)
class PublishPost(Treatment):
    """A post that is published in an agent's name when a round begins.

    Args:
        round: The round at whose beginning it is published.
        author: Id of the agent.
        text: What it says.
        topics: What it is about.
        name: What the log calls it; ``post`` by default.
    """

    kind: ClassVar[str] = "post"

    author: str
    text: str = field(metadata={"declared": {"json_schema_extra": {"pattern": r"\S"}}})
    topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a post without text."""
        Treatment.__post_init__(self)
        object.__setattr__(self, "topics", tuple(self.topics))
        if not self.text.strip():
            raise InputError("must not be empty", field="text")

    def check(self, world: World[Any]) -> None:
        """Refuse an author who is nobody among the agents."""
        if all(agent.agent_id != self.author for agent in world.agents):
            raise FieldValueError(
                f"treatment {self.name!r}: there is no agent {self.author!r} in the run"
            )

    def apply(self, world: World[Any]) -> None:
        """Publish the post; the log says which one it is."""
        feed: Any = world
        post = feed.publish(self.author, self.text, self.topics)
        arms: Any = world._hosted("a treatment").assignments
        arms.add_arm(self.name, self.name, 1.0)
        arms.assign("post_id", [post.post_id], self.name, self.name)


@dataclass(frozen=True, slots=True)
class RemoveAgents(SharedTreatment):
    """Agents who leave: they take no further step, and follow and are followed by nobody.

    They stay in the log, and so does what they have published.

    Args:
        round: The round at whose beginning they leave.
        share: The share of the agents who leave, above 0 and at most 1.
        agents: Ids of the agents who come into question; by default all.
        where: What these agents have.
        experiment: Name of the experiment; by default the treatment's own name.
        name: What the log calls it; ``remove`` by default.
    """

    kind: ClassVar[str] = "remove"

    def apply(self, world: World[Any]) -> None:
        """Remove the agents."""
        feed: Any = world
        for agent in self.treated(world, self.candidates(world)):
            feed.remove(agent)


@dataclass(frozen=True, slots=True)
class SwitchFeed(Treatment):
    """Another feed from a round on: sugar for another value of the feed's parameter ``feed``.

    Args:
        round: The round from whose beginning on posts are ranked in another way.
        feed: How they are ranked.
        name: What the log calls it; ``feed`` by default.
    """

    kind: ClassVar[str] = "feed"

    feed: str

    def check(self, world: World[Any]) -> None:
        """Refuse a feed that there is not."""
        check_parameters(world, {"feed": self.feed}, self.name)

    def apply(self, world: World[Any]) -> None:
        """Switch to the feed."""
        set_parameters(world, {"feed": self.feed})


class PostTreatment(Protocol):
    """What is done to posts as they are published."""

    def treat(self, world: Any, posts: Sequence[Post]) -> None:
        """Do it to some posts."""


class Treated:
    """What treatments have done to a feed.

    Args:
        world: The feed.
        agents: The population.
        network: Its posts.
        host: The run.
        emit: Writes an event.

    Attributes:
        acting: The agents who have not been removed, in their order.
        of_posts: What is done to posts as they are published.
    """

    def __init__(
        self,
        world: Any,
        agents: Sequence[SocialAgent],
        network: Network,
        host: RunHost,
        emit: Callable[..., None],
    ) -> None:
        self.acting: Sequence[SocialAgent] = agents
        self.of_posts: list[PostTreatment] = []
        self._world = world
        self._agents = agents
        self._by_id = {agent.agent_id: agent for agent in agents}
        self._network = network
        self._host = host
        self._emit = emit

    def published(self, post: Post) -> None:
        """Do to a new post what treatments do to posts, unless it is older than the run."""
        if self.of_posts and self._host.round:
            for treatment in self.of_posts:
                treatment.treat(self._world, [post])

            tell_assigned(self._host, self._emit)

    def agent(self, agent_id: str) -> SocialAgent:
        """Return the agent of an id.

        Raises:
            FieldValueError: If there is none.
        """
        found = self._by_id.get(agent_id)
        if found is None:
            raise FieldValueError(f"there is no agent {agent_id!r} in the run")

        return found

    def vote(self, post: Post, likes: int, dislikes: int) -> None:
        """Give a post likes or dislikes that are no agent's."""
        self._network.vote(post, likes, dislikes)
        self._emit(POST_VOTED, post_id=post.post_id, likes=likes, dislikes=dislikes)

    def remove(self, agent_id: str) -> None:
        """Have an agent take no further step.

        Raises:
            FieldValueError: If there is no such agent.
        """
        agent = self.agent(agent_id)
        if agent_id in self._network.removed:
            return

        self._network.remove(agent_id)
        self.leave_out_removed()
        self._emit(
            AGENT_REMOVED,
            agent_id=agent_id,
            state=agent.state.value,
            ticks_in_state=agent.ticks_in_state,
        )

    def leave_out_removed(self) -> None:
        """Have those agents act that the network has not removed."""
        gone = self._network.removed
        self.acting = [agent for agent in self._agents if agent.agent_id not in gone]

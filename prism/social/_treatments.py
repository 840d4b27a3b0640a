"""Ready-made treatments of the feed: votes, posts, removals, another feed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, get_args

from prism.errors import InputError
from prism.social._posts import Post, PostKind
from prism.worlds import SharedTreatment, Treatment, World
from prism.worlds._treatments import require_agents, require_count


@dataclass(frozen=True, slots=True)
class _Votes(SharedTreatment):
    """Votes for a share of the posts, as they are published."""

    number: int = field(default=1, kw_only=True)
    posts: tuple[PostKind, ...] = field(default=("post", "reply", "reshare"), kw_only=True)
    existing: bool = field(default=False, kw_only=True)
    until: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse impossible numbers and unknown kinds of posts."""
        SharedTreatment.__post_init__(self)
        object.__setattr__(self, "posts", tuple(self.posts))
        require_count("number", self.number)
        if self.until is not None and self.until < self.round:
            problem = f"must not be before round {self.round}, got {self.until!r}"
            raise InputError(problem, field="until")

        known = get_args(PostKind)
        for each in self.posts or ("none",):
            if each not in known:
                raise InputError(f"must be among {', '.join(known)}, got {each!r}", field="posts")

    def apply(self, world: World[Any]) -> None:
        """Treat existing posts, if they are included, and new posts from now on."""
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
        """Draw some of the given posts, and give them their votes.

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
            # a class is named after what it gives
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

    They come from no agent: the log records them as ``post.voted``, and the likes of agents do not
    include them. The opening posts are published in round 1. Muchnik, Aral and Taylor (2013)
    and the herd experiment of OASIS (Yang et al. 2024) call such posts up-treated.

    Args:
        round: The round at whose beginning the treatment starts.
        number: Likes for each treated post.
        posts: Kinds of posts to treat.
        existing: Whether posts from before that round are treated, too.
        until: The last round whose posts are treated; by default there is none.
        share: The share of the posts that is treated, above 0 and at most 1.
        agents: Ids of the authors whose posts are treated; by default all.
        where: Attributes that these authors have.
        experiment: Name of the experiment; by default the treatment's own name.
        name: Name of the arm; ``likes`` by default.
    """

    kind: ClassVar[str] = "likes"


@dataclass(frozen=True, slots=True)
class Dislikes(_Votes):
    """Dislikes for a share of the posts as they are published, from a round on.

    Works like `Likes`; a post's score is its likes minus its dislikes.

    Args:
        round: The round at whose beginning the treatment starts.
        number: Dislikes for each treated post.
        posts: Kinds of posts to treat.
        existing: Whether posts from before that round are treated, too.
        until: The last round whose posts are treated; by default there is none.
        share: The share of the posts that is treated, above 0 and at most 1.
        agents: Ids of the authors whose posts are treated; by default all.
        where: Attributes that these authors have.
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
        text: Its text.
        topics: Its topics.
        name: Its name in the log; ``post`` by default.
    """

    kind: ClassVar[str] = "post"

    author: str
    text: str
    topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a post without text."""
        Treatment.__post_init__(self)
        object.__setattr__(self, "topics", tuple(self.topics))
        if not self.text.strip():
            raise InputError("must not be empty", field="text")

    def check(self, world: World[Any]) -> None:
        """Refuse an unknown author."""
        require_agents(world, self.name, [self.author])

    def apply(self, world: World[Any]) -> None:
        """Publish the post. Its id is in the log."""
        feed: Any = world
        post = feed.publish(self.author, self.text, self.topics)
        arms = world._hosted("a treatment").assignments
        arms.add_arm(self.name, self.name, 1.0)
        arms.assign("post_id", [post.post_id], self.name, self.name)


@dataclass(frozen=True, slots=True)
class RemoveAgents(SharedTreatment):
    """Agents that leave: they take no further step, follow nobody, and nobody follows them.

    They and their posts stay in the log.

    Args:
        round: The round at whose beginning they leave.
        share: The share of the agents that leave, above 0 and at most 1.
        agents: Ids of the agents that may leave; by default all.
        where: Attributes that these agents have.
        experiment: Name of the experiment; by default the treatment's own name.
        name: Its name in the log; ``remove`` by default.
    """

    kind: ClassVar[str] = "remove"

    def apply(self, world: World[Any]) -> None:
        """Remove the agents."""
        feed: Any = world
        for agent in self.treated(world, self.candidates(world)):
            feed.remove(agent)


class PostTreatment(Protocol):
    """A treatment of posts as they are published."""

    def treat(self, world: Any, posts: Sequence[Post]) -> None:
        """Treat some posts."""

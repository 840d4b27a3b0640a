"""Runs of the social feed."""

from typing import Any

from prism import Run
from prism.agents import SocialAgent
from prism.social import Feed, Post


def run_of_feed(
    agents: Any, posts: Any = (), *, world: Feed | None = None, **options: Any
) -> Run[Any]:
    """Return a run of a feed that begins with some posts; None for the posts that it makes."""
    parameters = options.pop("parameters", None) or {}
    if world is None:
        world = Feed(first_posts=posts, **parameters)
    return Run(world, agents, **options)


def parameters_of(feed: Feed) -> dict[str, Any]:
    """Return a feed's parameters as JSON has them."""
    fields = type(feed).fields.items()
    values = {name: getattr(feed, name) for name, each in fields if not each.is_state}
    return {name: list(each) if isinstance(each, tuple) else each for name, each in values.items()}


class Scene(Feed):
    """A feed in which nobody looks until the last round, when everybody opens their feed.

    ``script`` has, for each round, what is published: an author's id and the topics. ``acts`` is
    called at the beginning of the last round.
    """

    rounds = 1
    ticks = 1
    posts_per_tick = 0.0
    common_topics = 0
    visit_chance = 0.0
    engagement = 0.0
    feed_length = 8

    script: Any = ()
    acts: Any = None

    def round_begins(self) -> None:
        """Publish what is due."""
        if self.round <= len(self.script):
            for author, *topics in self.script[self.round - 1]:
                self.publish(author, "text", topics)
        if self.round == max(1, len(self.script)):
            if self.acts is not None:
                self.acts(self)
            self.visit_chance = 1.0


def shown(
    agents: list[SocialAgent], script: Any, *, seed: int = 3, acts: Any = None, **parameters: Any
) -> Scene:
    """Return a scene that has been played, in which ``unread`` is everybody's feed."""
    scene = Scene(first_posts=(), script=script, acts=acts, **parameters)
    Run(scene, agents, rounds=max(1, len(script)), seed=seed).run()
    return scene


def feeds_of(scene: Feed) -> dict[str, list[Post]]:
    """Return the feed of each agent."""
    return {reader.agent_id: list(reader.unread) for reader in scene.agents}

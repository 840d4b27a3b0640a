"""The results of a run of the feed, with the largest cascades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from prism.social._posts import Post
from prism.worlds import WorldResults

LARGEST_CASCADES = 5


@dataclass(frozen=True, slots=True)
class Cascade:
    """A post with all replies and reshares that lead back to it.

    Args:
        root_id: The post that began it.
        author_id: Its author.
        text: Its text.
        size: Posts in it, including the root.
        depth: Most steps from the root to any post.
        breadth: Largest number of posts at any one depth.
    """

    root_id: str
    author_id: str
    text: str
    size: int
    depth: int
    breadth: int


@dataclass(frozen=True, slots=True)
class Results(WorldResults):
    """The results of a run of a feed.

    Args:
        agents: Number of agents.
        rounds: Every round, in order.
        cascades: The largest cascades of more than one post, largest first.
    """

    cascades: tuple[Cascade, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, identical for identical runs."""
        # without arguments, super() does not work in a class with slots
        plain = WorldResults.to_dict(self)
        return {**plain, "cascades": [asdict(cascade) for cascade in self.cascades]}


def largest_cascades(posts: Iterable[Post], most: int = LARGEST_CASCADES) -> tuple[Cascade, ...]:
    """Return the largest cascades of more than one post; among equals, the deepest first."""
    depths: dict[Post, Counter[int]] = {}
    for post in posts:
        depths.setdefault(post.root, Counter())[post.depth] += 1

    cascades = [
        Cascade(
            root.post_id,
            root.author_id,
            root.text,
            counts.total(),
            max(counts),
            max(counts.values()),
        )
        for root, counts in depths.items()
        if counts.total() > 1
    ]
    # the sort is stable, so of equal cascades, the earlier one comes first
    cascades.sort(key=lambda cascade: (-cascade.size, -cascade.depth))
    return tuple(cascades[:most])

"""The cascades of a run."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from prism import Run
from prism.agents import SocialAgent
from prism.social import Draft, Feed
from prism.social._posts import PostKind


class Forest(Feed):
    """A feed in which one agent publishes a forest of posts, and nobody reads."""

    ticks = 1
    visit_chance = 0.0
    posts_per_tick = 0.0
    answers: Any = ()

    def round_begins(self) -> None:
        """Publish posts, each an answer to the post of that number, or of its own."""
        for number in self.answers:
            about = self.posts[number] if 0 <= number < len(self.posts) else None
            kind: PostKind = "post" if about is None else "reply"
            self._publish("ann", kind, Draft(f"text {number}", ()), about, None)


def played(answers: Sequence[int]) -> Forest:
    forest = Forest(first_posts=(), answers=tuple(answers))
    Run(forest, [SocialAgent("ann")], rounds=1).run()
    return forest


@given(st.lists(st.integers(-1, 25), max_size=30))
@settings(max_examples=30)
def test_a_post_knows_its_root_and_its_depth(answers: list[int]) -> None:
    """They are those of the chain of parents."""
    forest = played(answers)
    for post in forest.posts:
        root, steps = post, 0
        while root.parent is not None:
            root, steps = root.parent, steps + 1
        assert (post.root, post.depth) == (root, steps)


def test_a_post_of_a_long_cascade_can_be_shown() -> None:
    """A post at the end of thousands of replies has a short representation."""
    forest = played(range(-1, 3000))
    assert forest.posts[-1].depth == 3000
    assert len(repr(forest.posts[-1])) < 400

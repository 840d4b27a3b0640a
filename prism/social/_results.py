"""The results of a run: counts for every round, totals, and the largest cascades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from prism.social._posts import Post
from prism.social._publishing import Network
from prism.worlds._results import Measured, Measuring

LARGEST_CASCADES = 5
_ONLY_IF_ANY = ("fallback_examples", "texts")


@dataclass(slots=True)
class Activity:
    """Counts of what happened in a part of a run.

    Attributes:
        agent_ticks: Steps taken: agents times ticks.
        transitions: Transitions made.
        posts: Posts that are neither replies nor reshares.
        replies: Replies.
        reshares: Reshares.
        likes: Likes.
        decisions_asked: Questions put to the reasoner.
        decisions_answered: Questions that it answered; the others took the fallback.
        timeouts: Time-outs, by the state that the agent was in.
        fallbacks: Decisions that took the fallback, by the kind of reason and the server, such as
            ``"TimedOutError at http://127.0.0.1:11434"``.
        fallback_examples: One reason of each kind, in full.
        texts: Texts of posts, by their source; only with a writer.
    """

    agent_ticks: int = 0
    transitions: int = 0
    posts: int = 0
    replies: int = 0
    reshares: int = 0
    likes: int = 0
    decisions_asked: int = 0
    decisions_answered: int = 0
    timeouts: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)
    fallback_examples: dict[str, str] = field(default_factory=dict)
    texts: Counter[str] = field(default_factory=Counter)

    def add(self, other: Activity) -> None:
        """Add the counts of another part to these."""
        for name in count_names():
            setattr(self, name, getattr(self, name) + getattr(other, name))

        self.texts.update(other.texts)
        self.fallback_examples = {**other.fallback_examples, **self.fallback_examples}

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain data, with examples only if there are any."""
        counts = {name: getattr(self, name) for name in count_names()}
        counts["timeouts"] = dict(sorted(self.timeouts.items()))
        counts["fallbacks"] = dict(sorted(self.fallbacks.items()))
        if self.fallback_examples:
            counts["fallback_examples"] = dict(sorted(self.fallback_examples.items()))
        if self.texts:
            counts["texts"] = dict(sorted(self.texts.items()))

        return counts


def count_names() -> list[str]:
    """Return the names of the counts that every `Activity` lists."""
    return [each.name for each in fields(Activity) if each.name not in _ONLY_IF_ANY]


@dataclass(frozen=True, slots=True)
class RoundSummary:
    """One round.

    Args:
        number: The round, counted from 1.
        states: Agents in each state at the round's last tick, before ``round_ends`` sends them to
            IDLE.
        activity: What happened in the round.
        measures: The measures of your own feed, by name; None if there was nothing to measure.
    """

    number: int
    states: Mapping[str, int]
    activity: Activity
    measures: Mapping[str, Measured] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the round as plain data, with measures only if there are any."""
        return {
            "round": self.number,
            "states": dict(self.states),
            **self.activity.to_dict(),
            **({"measures": dict(self.measures)} if self.measures else {}),
        }


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
class Results(Measuring):
    """A whole run.

    Args:
        agents: Number of agents.
        rounds: Every round, in order.
        totals: All rounds together.
        cascades: The largest cascades of more than one post, largest first.
    """

    agents: int
    rounds: tuple[RoundSummary, ...]
    totals: Activity
    cascades: tuple[Cascade, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, identical for identical runs."""
        return {
            "agents": self.agents,
            "totals": self.totals.to_dict(),
            "rounds": [summary.to_dict() for summary in self.rounds],
            "cascades": [asdict(cascade) for cascade in self.cascades],
        }


def summarize(network: Network, rounds: Iterable[RoundSummary]) -> Results:
    """Return the results of a run."""
    done = tuple(rounds)
    totals = Activity()
    for summary in done:
        totals.add(summary.activity)

    return Results(len(network.readers), done, totals, largest_cascades(network.posts))


def largest_cascades(posts: Iterable[Post], most: int = LARGEST_CASCADES) -> tuple[Cascade, ...]:
    """Return the largest cascades of more than one post; among equals, the deepest first."""
    depths: dict[str, Counter[int]] = {}
    roots: dict[str, Post] = {}
    for post in posts:
        roots[post.root.post_id] = post.root
        depths.setdefault(post.root.post_id, Counter())[post.depth] += 1

    found = [
        _cascade(root, depths[root_id])
        for root_id, root in roots.items()
        if depths[root_id].total() > 1
    ]
    # the sort is stable, so of equal cascades, the earlier one comes first
    found.sort(key=lambda cascade: (-cascade.size, -cascade.depth))

    return tuple(found[:most])


def _cascade(root: Post, depths: Counter[int]) -> Cascade:
    return Cascade(
        root.post_id, root.author_id, root.text, depths.total(), max(depths), max(depths.values())
    )

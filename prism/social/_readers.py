"""Readers: the agents of a feed, made of the fields of social agents, and their charts."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any, ClassVar

from prism.agents import Archetype, SocialAgent
from prism.agents.words import Terms, relevance, terms_of
from prism.social._posts import Draft, Post, PostKind
from prism.statechart import AgentState, Statechart, social_media_chart
from prism.statechart.names import identify
from prism.statechart.social import DECIDES
from prism.worlds import Agent, state

KINDS_OF_ACTS: Mapping[AgentState, PostKind] = {
    AgentState.ENGAGING_REPLY: "reply",
    AgentState.ENGAGING_RESHARE: "reshare",
}
"""The kinds of posts that an agent publishes about another one, by its state."""

_MEANINGS_OF_ACTS = {AgentState.COMPOSING: "Write a post of your own"}


def _may(kind: PostKind) -> Any:
    """Return a guard: a model decides for the agent, which may write this about the post."""
    return lambda reader, _post: kind in reader.acts


@lru_cache(maxsize=64)
def chart_of(*, has_ideas: bool, acts: bool) -> Statechart[AgentState]:
    """Return the chart of a feed's agents.

    Args:
        has_ideas: Whether agents write on their own initiative.
        acts: Whether agents choose among all acts if a model decides.
    """
    chart = social_media_chart(acts=acts, has_ideas=has_ideas)
    # an agent that is not engaged is never asked, so the options need no guard
    guards: dict[Any, Any] = dict.fromkeys((AgentState.COMPOSING, AgentState.ENGAGING_LIKE))
    if acts:
        guards |= {act: _may(kind) for act, kind in KINDS_OF_ACTS.items()}
    evaluating = AgentState.EVALUATING
    by_arrow = {(DECIDES, evaluating, target): guard for target, guard in guards.items()}
    return chart.extended(guards=by_arrow)


class Reader(Agent):
    """An agent at its feed, made of the fields of a `SocialAgent`.

    Args:
        interests: Topics that interest it.
        personality: Description in words.
        archetype: Kind of user.
        engagement_threshold: Relevance from which it engages, 0.0 to 1.0.

    Attributes:
        follows: Ids of the authors that it follows.
        unread: Its feed, in the order in which it is shown.
        post: The post that it is looking at.
        pending_action: The kind of post that it is about to publish.
        draft: What it is about to publish.
        activity: How much it writes, as a multiple of the population's mean.
    """

    chart: ClassVar[Statechart[Any]] = chart_of(has_ideas=True, acts=False)
    # it remembers what it did about posts
    _notes_transitions = False

    interests: Sequence[str] = ()
    personality: str = ""
    archetype: Archetype | None = None
    engagement_threshold: float = 0.5
    terms: Terms
    follows: dict[str, None]
    first_ticks: int

    unread: list[Post] = state(list)
    post: Post | None = state(None)
    pending_action: PostKind | None = state(None)
    draft: Draft | None = state(None)
    activity: float = state(1.0)
    # where its posts come from, and what its feed has taken in of them
    pool: deque[Post] = state(deque)
    sources: tuple[Sequence[Post], ...] = state(())
    next_number: int = state(0)
    looked_at: list[int] = state(list)
    # what it has written in which cascade, by the number of its root
    written: Counter[tuple[PostKind, int]] = state(Counter)
    # among what it may choose to publish about the post that it weighs
    acts: frozenset[PostKind] = state(frozenset)
    rated: tuple[Any, float] = state((None, 0.0))
    # the last hour that it was looked at, and whether it is awake in it
    awake: tuple[int, bool] = state((-1, False))
    # when it begins to write on its own initiative
    idea_rate: float = state(0.0)
    before_idea: float = state(inf)

    def relevance(self, post: Any) -> float:
        """Return the relevance of a post, from 0.0 to 1.0."""
        if self.rated[0] is not post:
            self.rated = post, relevance(self.terms, post)
        return self.rated[1]

    @property
    def meanings(self) -> Mapping[Any, str]:
        """Meanings of the options, for a model."""
        return _MEANINGS_OF_ACTS if self.acts else self.world.meanings

    def persona(self) -> str:
        """Describe the agent for a model."""
        lines = [f"You are {self.name}, a social media user."]
        if self.interests:
            lines.append(f"Your interests: {', '.join(self.interests)}")
        if self.personality:
            lines.append(f"Your personality: {self.personality}")
        return "\n".join(lines)

    def described(self) -> dict[str, Any]:
        """Return what the log says about the agent when it joins."""
        return {
            "archetype": None if self.archetype is None else self.archetype.name,
            "interests": [*self.interests],
            "following": len(self.follows),
            "follows": [*self.follows],
            "timeout_threshold": type(self).timeout_threshold,
            **({"attributes": identify(self.attributes)} if self.attributes else {}),
        }


@lru_cache(maxsize=256)
def _kind_of(chart: Statechart[AgentState], timeout: int) -> type[Reader]:
    body = {"chart": chart, "timeout_threshold": timeout, "__module__": __name__}
    return type("Reader", (Reader,), body)


def reader_of(
    agent: SocialAgent, chart: Statechart[AgentState], interests: Sequence[str]
) -> Reader:
    """Return the reader for a social agent.

    Args:
        agent: The social agent, which does not change.
        chart: The chart of the feed's agents.
        interests: Its interests in this feed.
    """
    names = ("agent_id", "name", "personality", "archetype", "engagement_threshold")
    reader = _kind_of(chart, agent.timeout_threshold)(
        interests=tuple(interests),
        terms=terms_of(interests),
        follows=dict.fromkeys(agent.following),
        first_ticks=agent.ticks_in_state,
        **{name: getattr(agent, name) for name in names},
    )
    vars(reader)["attributes"] = dict(agent.attributes)
    if agent.state is not AgentState.IDLE:
        reader.begin_in(agent.state)
    return reader

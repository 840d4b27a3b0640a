"""The agent of a social media simulation, and kinds of such agents.

Their proportions follow the 90-9-1 rule of participation inequality (Nielsen 2006): most users of a
large community only read, some contribute occasionally, and very few write most of the posts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, cast

from prism.agents._mixin import StatechartMixin
from prism.agents.words import checked_texts, relevance, terms_of
from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.statechart import AgentState, Decider, Statechart, StateTransition
from prism.statechart.social import DECIDES
from prism.statechart.transitions import DEFAULT_MAX_HISTORY_DEPTH

_THRESHOLDS = ("engagement_threshold", "timeout_threshold")

PendingAction = Literal["reply", "reshare", "post"]


@dataclass(frozen=True, slots=True)
class Archetype:
    """A kind of user.

    Args:
        name: Its name in population files.
        engagement_threshold: Relevance from which its agents engage, 0.0 to 1.0.
        timeout_threshold: Longest dwell time of its agents in a state, in ticks.
        share: Its proportion of a population without archetypes, 0.0 to 1.0.
        inclinations: Utility of each option for `PolicyReasoner`, by the name of the state; 0 for
            states that are not listed.
    """

    name: str
    engagement_threshold: float
    timeout_threshold: int
    share: float
    inclinations: Mapping[str, float] = field(default_factory=dict)


def _inclined(scrolling: float, liking: float, composing: float) -> Mapping[str, float]:
    return {"scrolling": scrolling, "engaging_like": liking, "composing": composing}


_ALL = (
    Archetype("lurker", 0.7, 8, 0.90, _inclined(2.5, 0.0, -1.0)),
    Archetype("contributor", 0.5, 5, 0.09, _inclined(1.5, 0.5, 1.0)),
    Archetype("superuser", 0.3, 3, 0.01, _inclined(0.5, 0.5, 2.0)),
)
ARCHETYPES: Mapping[str, Archetype] = {kind.name: kind for kind in _ALL}
"""The archetypes that a population file can name."""


class SocialAgent(StatechartMixin):
    """A user of a social network with a persona and a behavioural state.

    For a chart with other states than `AgentState`, such as one that `Statechart.extended` returns,
    set ``state_type = chart.state_type`` in a subclass.

    Args:
        agent_id: Unique name of the agent.
        name: Display name; the id by default.
        interests: Topics that interest it.
        personality: Description in words; part of the prompt for a model.
        archetype: Kind of user, or its name, which sets thresholds that are not given.
        following: Ids of the agents whose posts it sees.
        state: Behavioural state, a member of ``state_type``; its first member by default.
        state_history: Past transitions, oldest first.
        ticks_in_state: Ticks since the last transition.
        engagement_threshold: Relevance from which it engages, 0.0 to 1.0; 0.5 by default.
        timeout_threshold: Longest dwell time in one state in ticks, above 0; 5 by default.
        max_history_depth: Maximum length of the history.
        attributes: Further data about it, such as columns of a file, for guards, actions and
            analysis. The log describes a value that JSON cannot represent.

    Attributes:
        pending_action: Kind of post that a composing agent is about to publish.
        random: The agent's stream of random numbers; a simulation sets a new one every round.

    Raises:
        FieldTypeError: If the state is not a member of ``state_type``.
        FieldValueError: If a field lies outside its range; the message names the field.
    """

    if TYPE_CHECKING:
        state: AgentState

    def __init__(
        self,
        agent_id: str,
        name: str = "",
        interests: Iterable[str] = (),
        personality: str = "",
        *,
        archetype: Archetype | str | None = None,
        following: Iterable[str] = (),
        state: Enum | None = None,
        state_history: Iterable[StateTransition] = (),
        ticks_in_state: int = 0,
        engagement_threshold: float | None = None,
        timeout_threshold: int | None = None,
        max_history_depth: int = DEFAULT_MAX_HISTORY_DEPTH,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(agent_id, str) or not agent_id:
            raise FieldValueError(f"agent_id must be a non-empty string, got {agent_id!r}")

        self.agent_id = agent_id
        self.name: str = name or agent_id
        self.interests = interests
        self.personality: str = personality
        kind = ARCHETYPES.get(archetype) if isinstance(archetype, str) else archetype
        if archetype is not None and kind is None:
            raise FieldValueError(f"archetype must be one of {[*ARCHETYPES]}, got {archetype!r}")
        self.archetype: Archetype | None = kind
        self.following: tuple[str, ...] = tuple(checked_texts("following", following))
        self.pending_action: PendingAction | None = None
        self.random: RandomStream | None = None
        if state is not None:
            self.state = cast(Any, state)

        self.max_history_depth = max_history_depth
        self.state_history = state_history
        self.ticks_in_state = ticks_in_state
        self.attributes: dict[str, Any] = dict(attributes or {})
        thresholds = (engagement_threshold, timeout_threshold)
        for name, threshold in zip(_THRESHOLDS, thresholds, strict=True):
            value = getattr(kind, name, None) if threshold is None else threshold
            if value is not None:
                setattr(self, name, value)

    @property
    def interests(self) -> list[str]:
        """Topics that interest it; to change them, assign a new list."""
        return self._prism_interests

    @interests.setter
    def interests(self, topics: Iterable[str]) -> None:
        self._prism_interests = checked_texts("interests", topics)

        # relevance is rated for every post of a feed, so its terms are computed once
        self._prism_terms = terms_of(self._prism_interests)

    def relevance(self, context: Any) -> float:
        """Return the relevance of an event's context to this agent, from 0.0 to 1.0.

        Args:
            context: A relevance number, a mapping, or a post.
        """
        return relevance(self._prism_terms, context)

    def should_engage(self, context: Any) -> bool:
        """Return True if an event's context is relevant enough to engage with.

        Args:
            context: A relevance number, a mapping, or a post.
        """
        return self.relevance(context) >= self._prism_engagement

    async def decide(
        self,
        context: Any = None,
        *,
        chart: Statechart[AgentState],
        reasoner: Decider,
        trigger: str = DECIDES,
    ) -> AgentState | None:
        """Decide what to do about a post: `Statechart.afire` on this agent (specification, FR-8.4).

        The chart drives the agent. Simulations, and loops that call ``afire``, do not need this
        method.

        Args:
            context: The event's context, such as a post.
            chart: The chart that drives the agent.
            reasoner: Chooses among the enabled targets.
            trigger: Name of the event.

        Returns:
            The new state; None if no transition was made.
        """
        return await chart.afire(self, trigger, context, reasoner=reasoner)

    def to_dict(self) -> dict[str, Any]:
        """Return state and history as JSON data, in the form of the specification (Serialization).

        Attributes, if there are any, are under ``attributes``.
        """
        return {
            "agent_id": self.agent_id,
            "current_state": self.state.value,
            "ticks_in_state": self.ticks_in_state,
            "state_history": [record.to_dict() for record in self.state_history],
            **({"attributes": self.attributes} if self.attributes else {}),
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def __repr__(self) -> str:
        """Show id and state."""
        return f"{type(self).__name__}({self.agent_id!r}, state={self.state.value!r})"

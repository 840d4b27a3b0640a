"""The agent of a social media simulation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import orjson

from prism.agents._archetypes import Archetype, archetype_named
from prism.agents._mixin import StatechartMixin
from prism.agents._relevance import Terms, overlap, relevance, terms_of
from prism.errors import FieldValueError
from prism.statechart import AgentState, Decider, RandomStream, Statechart, StateTransition
from prism.statechart._engine.writing import DEFAULT_MAX_HISTORY_DEPTH
from prism.statechart.social import DECIDES
from prism.statechart.states import state_text

PendingAction = Literal["reply", "reshare", "post"]

_KEYS = ("agent_id", "current_state", "ticks_in_state", "state_history")
_RECORD_KEYS = ("from_state", "to_state", "trigger", "timestamp", "context")


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
        attributes: Further plain data about it, for guards, actions and analysis.

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
        self.archetype: Archetype | None = (
            archetype_named(archetype) if isinstance(archetype, str) else archetype
        )
        self.following: tuple[str, ...] = tuple(_texts("following", following))
        self.pending_action: PendingAction | None = None
        self.random: RandomStream | None = None
        if state is not None:
            self.state = cast(Any, state)

        self.max_history_depth = max_history_depth
        self.state_history = state_history
        self.ticks_in_state = ticks_in_state
        self._attributes = plain_attributes(attributes) if attributes else {}
        given = {
            "engagement_threshold": engagement_threshold,
            "timeout_threshold": timeout_threshold,
        }
        for field, value in given.items():
            chosen = getattr(self.archetype, field, None) if value is None else value
            if chosen is not None:
                setattr(self, field, chosen)

    @property
    def interests(self) -> list[str]:
        """Topics that interest it; to change them, assign a new list."""
        return self._interests

    @interests.setter
    def interests(self, topics: Iterable[str]) -> None:
        self._interests = _texts("interests", topics)

        # Relevance is rated for every post of a feed, so its terms are computed once, and the last
        # rating is kept: a guard and the reasoner ask for the same post in turn.
        self._terms = terms_of(self._interests)
        self._rated: object = None
        self._rating = 0.0

        # The guard's rating is kept separately: a class may rate posts in its own way, and calling
        # it again for the log could change the run.
        self._weighed: object = None
        self._weight = 0.0

    @property
    def attributes(self) -> dict[str, Any]:
        """Further data about the agent, such as columns of a file; values that JSON can hold."""
        return self._attributes

    @attributes.setter
    def attributes(self, values: Mapping[str, Any]) -> None:
        self._attributes = plain_attributes(values)

    def relevance(self, context: Any) -> float:
        """Return the relevance of an event's context to this agent, from 0.0 to 1.0.

        Args:
            context: A relevance number, a mapping, or a post.
        """
        if context is self._rated:
            return self._rating

        terms = getattr(context, "terms", None)
        if not isinstance(terms, Terms):
            return relevance(self._terms, context)

        self._rated, self._rating = context, overlap(self._terms, terms)
        return self._rating

    def should_engage(self, context: Any) -> bool:
        """Return True if an event's context is relevant enough to engage with.

        Args:
            context: A relevance number, a mapping, or a post.
        """
        self._weighed, self._weight = context, self.relevance(context)
        return self._weight >= self._prism_engagement

    def weighed_relevance(self, context: Any) -> float | None:
        """Return the relevance that `should_engage` last found, if it was for this context.

        Args:
            context: The object that was weighed, by identity.
        """
        return self._weight if context is not None and context is self._weighed else None

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

        Raises:
            FieldValueError: If an attribute was given a value that JSON cannot hold.
        """
        of_its_own = {"attributes": plain_attributes(self.attributes)} if self.attributes else {}

        return {
            "agent_id": self.agent_id,
            "current_state": self.state.value,
            "ticks_in_state": self.ticks_in_state,
            "state_history": [record.to_dict() for record in self.state_history],
            **of_its_own,
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **fields: Any) -> Self:
        """Return an agent with the state and history that `to_dict` returned.

        Args:
            data: State and history.
            fields: Further arguments of the constructor, such as the persona. The default of
                ``max_history_depth`` is large enough for the whole history.

        Raises:
            FieldValueError: If a key is missing or unknown, or its value is not valid.
        """
        _require_keys("agent", data, _KEYS, optional=("attributes",))
        history = data["state_history"]
        if not isinstance(history, list):
            raise FieldValueError(f"state_history must be a list of transitions, got {history!r}")

        fields.setdefault("max_history_depth", max(DEFAULT_MAX_HISTORY_DEPTH, len(history)))
        if "attributes" in data:
            fields.setdefault("attributes", plain_attributes(data["attributes"]))

        return cls(
            data["agent_id"],
            state=_state(cls.state_type, data["current_state"]),
            ticks_in_state=data["ticks_in_state"],
            state_history=[_record(cls.state_type, entry) for entry in history],
            **fields,
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the data that a world keeps about the agent; a subclass adds its own fields."""
        return {
            **self.to_dict(),
            "interests": list(self.interests),
            "personality": self.personality,
            "following": list(self.following),
            "pending_action": self.pending_action,
            "thresholds": [self.engagement_threshold, self.timeout_threshold],
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Restore the agent to what it was when `snapshot` returned the data.

        Raises:
            FieldValueError: If a value is not valid.
        """
        self.state = cast(Any, _state(self.state_type, data["current_state"]))
        self.ticks_in_state = data["ticks_in_state"]
        self.state_history = [_record(self.state_type, entry) for entry in data["state_history"]]
        self.attributes = data.get("attributes", {})
        self.interests = data["interests"]
        self.personality = data["personality"]
        self.following = tuple(data["following"])
        self.pending_action = data["pending_action"]
        self.engagement_threshold, self.timeout_threshold = data["thresholds"]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the last rated posts, so that a copy does not include their whole cascades."""
        return {**self.__dict__, "_rated": None, "_weighed": None}

    def __repr__(self) -> str:
        """Show id and state."""
        return f"{type(self).__name__}({self.agent_id!r}, state={self.state.value!r})"


def _texts(field: str, values: Iterable[str]) -> list[str]:
    if isinstance(values, str):
        raise FieldValueError(
            f"{field} must be a list of strings, got the text {values!r}: write [{values!r}]"
        )

    texts = list(values)
    wrong = [text for text in texts if not isinstance(text, str) or not text.strip()]
    if wrong:
        raise FieldValueError(
            f"{field} must be non-empty strings, got {', '.join(map(repr, wrong))}"
        )

    return texts


def _require_keys(
    what: str, data: Any, keys: tuple[str, ...], *, optional: tuple[str, ...] = ()
) -> None:
    if not isinstance(data, Mapping):
        raise FieldValueError(
            f"{what} must be an object with the keys {', '.join(keys)}, got {data!r}"
        )

    missing = [key for key in keys if key not in data]
    unknown = [str(key) for key in data if key not in (*keys, *optional)]
    if missing or unknown:
        found = "; ".join(
            f"{label} {', '.join(names)}"
            for label, names in (("missing", missing), ("unknown", unknown))
            if names
        )
        raise FieldValueError(f"{what}: {found}: its keys are {', '.join(keys)}")


def _state(states: type[Enum], text: Any) -> Enum:
    try:
        return states(text)
    except ValueError:
        known = ", ".join(map(state_text, states))
        raise FieldValueError(f"{text!r} is not a state: use one of {known}") from None


def _record(states: type[Enum], entry: Any) -> StateTransition:
    _require_keys("state_history entry", entry, _RECORD_KEYS)
    trigger, context = entry["trigger"], entry["context"]
    if not isinstance(trigger, str) or not trigger:
        raise FieldValueError(f"trigger must be a non-empty string, got {trigger!r}")
    if context is not None and not isinstance(context, Mapping):
        raise FieldValueError(f"context must be an object or null, got {context!r}")

    return StateTransition.from_dict(entry, lambda text: _state(states, text))


def plain_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as a dict, if JSON gives them back unchanged.

    Raises:
        FieldValueError: If they are not a mapping, or a value is not plain. The message names the
            attribute.
    """
    if not isinstance(values, Mapping):
        raise FieldValueError(f"attributes must be a mapping of names to values, got {values!r}")

    for name, value in values.items():
        if not isinstance(name, str) or not _survives(name, value):
            raise FieldValueError(
                f"attribute {name!r} must have a text as its name, and a value that JSON gives "
                f"back unchanged, got {value!r}"
            )

    return dict(values)


def _survives(name: str, value: Any) -> bool:
    # JSON would turn NaN into null, a tuple into a list, and an enum member into its value
    try:
        pair = orjson.loads(orjson.dumps([name, value]))
    except orjson.JSONEncodeError:  # a TypeError, also for integers beyond 64 bits
        return False

    return bool(pair == [name, value])

"""What a chart is made of, `Transition`, and what a history is made of, `StateTransition`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache, partial
from typing import Any, Generic, Literal, TypeVar

from prism.errors import DefinitionError
from prism.statechart._identity import Keys, pack, unpack
from prism.statechart.states import is_state, state_text

StateT = TypeVar("StateT", bound=Enum)
StateT_co = TypeVar("StateT_co", bound=Enum, covariant=True)

Guard = Callable[[Any, Any], object]
"""``guard(agent, context)``: the transition may fire if the result is truthy."""

Action = Callable[[Any, Any], object]
"""``action(agent, context)``: side effect that runs just before the transition commits."""

ANY_STATE: Literal["*"] = "*"

_MOST_VARIANTS = 64
"""Variants of one edge; contexts whose keys are data would make it grow without bound."""


@dataclass(frozen=True, slots=True)
class Transition(Generic[StateT_co]):
    """One transition that a chart allows. Immutable, so one chart can serve every agent.

    Args:
        trigger: Name of the event that causes it.
        source: State it leaves, or ``"*"`` for every state of the chart.
        target: State it leads to.
        guard: ``guard(agent, context)``; the transition is enabled while the result is truthy. None
            means always. A guard only looks: it must not change the agent or fire on it.
        action: ``action(agent, context)``; runs just before the transition commits.

    Raises:
        DefinitionError: (a ValueError) if the trigger is empty, source or target is not a state, or
            guard or action is not a plain function of two arguments (async and generator functions
            are not). All offences are listed at once.
    """

    trigger: str
    source: StateT_co | Literal["*"]
    target: StateT_co
    guard: Guard | None = None
    action: Action | None = None

    def __post_init__(self) -> None:
        """Refuse what could never work."""
        problems = [
            *_trigger_problems(self.trigger),
            *([] if is_any_state(self.source) else _state_problems("source", self.source)),
            *_state_problems("target", self.target),
            *callable_problems("guard", self.guard),
            *callable_problems("action", self.action),
        ]
        if problems:
            raise DefinitionError(f"transition {self.trigger!r}: " + "; ".join(problems))

    def __str__(self) -> str:
        """Return ``source --trigger--> target``."""
        return f"{state_text(self.source)} --{self.trigger}--> {state_text(self.target)}"


def is_any_state(source: object) -> bool:
    """Return True for the wildcard, not for a state whose text is an asterisk."""
    return source == ANY_STATE and not is_state(source)


def _trigger_problems(trigger: object) -> list[str]:
    if isinstance(trigger, str) and trigger.strip():
        return []
    return [f"trigger must be a non-empty string, got {trigger!r}"]


def _state_problems(field: str, value: object) -> list[str]:
    if is_state(value):
        return []
    return [f"{field} must be a member of a str-based Enum such as AgentState.IDLE, got {value!r}"]


class Edge:
    """What all records of one transition have in common: ends, trigger and keys of the context.

    A record refers to its edge instead of having five fields of its own, which halves its size.
    """

    __slots__ = (
        "from_state",
        "from_text",
        "keys",
        "leaves",
        "to_state",
        "to_text",
        "trigger",
        "variants",
    )

    def __init__(self, from_state: Any, to_state: Any, trigger: str, keys: Keys = None) -> None:
        self.from_state: Any = from_state
        # what the engine compares with an agent's state: nothing that a self-transition leaves
        self.leaves: Any = None if from_state == to_state else from_state
        self.from_text: str = state_text(from_state)
        self.to_state: Any = to_state
        self.to_text: str = state_text(to_state)
        self.trigger: str = trigger
        self.keys: Keys = keys
        self.variants: dict[Keys, Edge] = {keys: self}

    def with_keys(self, keys: Keys) -> Edge:
        """Return the variant of this edge for contexts with these keys; made once, then shared."""
        variant = self.variants.get(keys)
        if variant is None:
            variant = Edge(self.from_state, self.to_state, self.trigger, keys)
            if len(self.variants) < _MOST_VARIANTS:
                variant.variants = self.variants
                self.variants[keys] = variant

        return variant


@lru_cache(maxsize=4096, typed=True)
def shared_edge(from_state: Any, to_state: Any, trigger: str) -> Edge:
    """Return the one edge for these ends and this trigger, for records made without a chart."""
    return Edge(from_state, to_state, trigger)


class StateTransition:
    """One entry of an agent's history: a transition that was made, when, and about what.

    Records are immutable and compact (56 bytes and one float); `timestamp` and `context` are built
    when read.

    Args:
        from_state: State before the transition.
        to_state: State after the transition.
        trigger: Event that caused it.
        timestamp: When it happened. An aware time of any zone is kept as UTC; a naive one is taken
            as UTC.
        context: What the event was about, such as ``{"post_id": "p1"}``. An object is reduced to
            its identifying fields, never kept.
    """

    __slots__ = ("_edge", "_time", "_value")
    _edge: Edge
    _time: float
    _value: Any

    def __init__(
        self,
        from_state: Any,
        to_state: Any,
        trigger: str,
        timestamp: datetime,
        context: Mapping[str, Any] | object | None = None,
    ) -> None:
        keys, value = pack(context)
        aware = timestamp if timestamp.tzinfo is not None else timestamp.replace(tzinfo=UTC)
        self._edge = shared_edge(from_state, to_state, trigger).with_keys(keys)
        self._time = aware.timestamp()
        self._value = value

    @property
    def from_state(self) -> Any:
        """State before the transition."""
        return self._edge.from_state

    @property
    def to_state(self) -> Any:
        """State after the transition."""
        return self._edge.to_state

    @property
    def trigger(self) -> str:
        """Event that caused the transition."""
        return self._edge.trigger

    @property
    def timestamp(self) -> datetime:
        """When the transition was made, as an aware UTC time with microseconds."""
        return datetime.fromtimestamp(self._time, UTC)

    @property
    def context(self) -> dict[str, Any] | None:
        """What the event was about: a new dict of plain data, or None."""
        return unpack(self._edge.keys, self._value)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values, in the shape of the specification."""
        return {
            "from_state": state_text(self.from_state),
            "to_state": state_text(self.to_state),
            "trigger": self.trigger,
            "timestamp": self.timestamp.isoformat().replace("+00:00", "Z"),
            "context": self.context,
        }

    def __eq__(self, other: object) -> bool:
        """Compare all five fields."""
        if not isinstance(other, StateTransition):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        """Hash the fields that are always hashable."""
        return hash(self._fields()[:4])

    def __repr__(self) -> str:
        """Show the record as the call that makes it."""
        return (
            f"StateTransition(from_state={self.from_state!r}, to_state={self.to_state!r}, "
            f"trigger={self.trigger!r}, timestamp={self.timestamp!r}, context={self.context!r})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the public constructor."""
        return StateTransition, self._fields()

    def _fields(self) -> tuple[Any, ...]:
        return self.from_state, self.to_state, self.trigger, self.timestamp, self.context


# What a guard or an action must be: a plain function of agent and context

_IS_ASYNC = "is async, but runs without an event loop: use 'def'"
_IS_GENERATOR = "is a generator, whose body does not run when it is called: leave out 'yield'"


def callable_problems(kind: str, value: object) -> list[str]:
    """Return what keeps a value from being a guard or an action; None is fine.

    Args:
        kind: ``guard`` or ``action``.
        value: What was given.
    """
    if value is None:
        return []
    if not callable(value):
        return [f"{kind} must be callable as {kind}(agent, context), got {value!r}"]

    problem = _kind_problem(value) or _arity_problem(kind, value)

    return [f"{kind} {_name_of(value)} {problem}"] if problem else []


def _kind_problem(value: Any) -> str | None:
    while isinstance(value, partial):
        value = value.func

    # an instance is called by the code of its class
    for called in (value, type(value).__call__):
        if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
            return _IS_ASYNC
        if inspect.isgeneratorfunction(called):
            return _IS_GENERATOR

    return None


def _arity_problem(kind: str, value: Any) -> str | None:
    try:
        # a decorator is called itself, whatever it wraps
        signature = inspect.signature(value, follow_wrapped=False)
    except (TypeError, ValueError):
        # some callables of C code do not tell
        return None

    try:
        signature.bind("agent", "context")
    except TypeError:
        return f"must take two arguments, {kind}(agent, context), but is {_call_of(signature)}"

    return None


def _call_of(signature: inspect.Signature) -> str:
    return f"called as {signature.replace(return_annotation=inspect.Signature.empty)}"


def _name_of(value: object) -> str:
    return repr(getattr(value, "__name__", value))

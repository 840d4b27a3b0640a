"""Transitions: as a chart defines them, and as histories record them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from math import inf
from operator import attrgetter
from sys import intern
from typing import Any, Generic, Literal, TypeVar

from prism._numbers import plain_number
from prism.errors import DefinitionError, FieldValueError
from prism.statechart._parts import Action, Guard, History, StateT_co, as_tuple, call_problems
from prism.statechart.names import pack, unpack
from prism.statechart.states import joined, state_text

StateT = TypeVar("StateT", bound=Enum)

Rate = Callable[[Any, Any], float]
"""``rate(agent, context)``: how often a tick a transition is made; 0 means never."""

Delay = Callable[[Any], int]
"""``after(agent)``: after how many ticks a transition is made."""

TIMING = ("after", "rate", "probability")
"""The fields that say when, or with which probability, a transition is made."""

ANY_STATE: Literal["*"] = "*"

TIMEOUT = "timeout"
"""The trigger that `Statechart.tick` fires."""

DEFAULT_NAME = "statechart"
"""Name of a chart that is given none."""

DEFAULT_TIMEOUT_THRESHOLD = 5
"""Ticks after which an agent times out where neither it nor its chart says otherwise."""

DEFAULT_MAX_HISTORY_DEPTH = 50
"""Records that an agent keeps where it does not say otherwise."""

ALWAYS = "always"
"""The name of an eventless transition's trigger in logs and pictures."""


@dataclass(frozen=True, slots=True)
class Transition(Generic[StateT_co]):
    """One transition that a chart allows. Immutable, so one chart can serve every agent.

    Args:
        trigger: Name of the event that causes it. None for an eventless transition, which is taken
            as soon as its guard passes.
        source: State it leaves, a list of them, or ``"*"`` for every state of the chart. A chart
            has one transition for each.
        target: State it leads to: a member, a `History`, or a tuple with one of them for each
            region. None runs only the action and leaves no state.
        guard: ``guard(agent, context)``; the transition is enabled while the result is truthy. None
            means always. A guard must not change the agent or fire events on it.
        action: ``action(agent, context)``; runs just before the transition commits.
        internal: Whether a transition to a state inside a composite stays in the composite; one
            that leads elsewhere leaves its source (SCXML, 3.13).
        after: Ticks since the source was entered; at that tick `Statechart.tick` makes this
            transition, if its guard passes. A function, ``after(agent)``, is called
            each time the source is entered.
        rate: How often a tick `Statechart.tick` makes this transition: a number above 0, or
            ``rate(agent, context)``. An agent leaves by it within a tick with the probability
            ``1 - exp(-rate)``.
        probability: Share, above 0 and up to 1, with which this transition is drawn among those of
            the same trigger and source.

    Raises:
        DefinitionError: (a ValueError) if the trigger is empty, or guard or action is not a plain
            function of two arguments (async and generator functions are not). All offences are
            listed at once.
    """

    trigger: str | None
    source: StateT_co | Literal["*"] | Sequence[StateT_co]
    target: StateT_co | History[StateT_co] | tuple[StateT_co | History[StateT_co], ...] | None
    guard: Guard | None = None
    action: Action | None = None
    _: KW_ONLY
    internal: bool = False
    after: int | Delay | None = None
    rate: float | Rate | None = None
    probability: float | None = None

    def __post_init__(self) -> None:
        """Check the fields that need no chart."""
        # a frozen dataclass refuses plain assignment, in its own constructor too
        for name, ends in (("source", self.source), ("target", self.target)):
            if isinstance(ends, (list, tuple)):
                object.__setattr__(self, name, ends[0] if len(ends) == 1 else tuple(ends))
        trigger, source, target = self.trigger, self.source, self.target
        for name in TIMING:
            object.__setattr__(self, name, plain_number(getattr(self, name)))
        calls = *call_problems("guard", self.guard), *call_problems("action", self.action)
        problems = [*calls, *_timing_problems(self)]
        if source in ((), None) or target == ():
            problems.append("source and target must name a state each")
        if trigger is not None and not (isinstance(trigger, str) and trigger.strip()):
            problems.append(f"trigger must be a non-empty string, got {trigger!r}")
        if problems:
            raise DefinitionError(f"transition {trigger!r}: {'; '.join(problems)}")

    def __str__(self) -> str:
        """Return ``source --trigger--> target``."""
        source = joined([*map(state_text, as_tuple(self.source))])
        return f"{source} --{trigger_text(self.trigger)}--> {target_text(self.target)}"


def _timing_problems(item: Any) -> Iterator[str]:
    """Yield what is wrong with the times, rates and shares of a transition."""
    timing = {name: getattr(item, name) for name in TIMING if getattr(item, name) is not None}
    if len(timing) > 1:
        yield f"{' and '.join(timing)} cannot be combined"
    if item.trigger is None and timing.keys() - {"probability"}:
        yield "after and rate need a trigger, under which the log has them"
    for name, value in timing.items():
        kind: Any = int if name == "after" else (int, float)
        if callable(value) and name != "probability":
            yield from call_problems(name, value)
        elif type(value) is bool or not isinstance(value, kind) or not 0 < value < inf:
            yield f"{name} must be a {'whole ' * (kind is int)}number above 0, got {value!r}"


def trigger_text(trigger: str | None) -> str:
    """Return the text of a trigger for logs and pictures; eventless transitions have one, too."""
    return ALWAYS if trigger is None else trigger


def target_text(target: Any) -> str:
    """Return a target as messages show it."""
    return "(no target)" if target is None else joined([*map(state_text, as_tuple(target))], " + ")


class EventDescriptor(str):
    """The trigger of a transition in an SCXML document: ``error``, ``error.*`` or ``*`` (3.12.1).

    It names all events that begin with the same parts between dots.
    """

    def matches(self, event: object) -> bool:
        """Return whether an event is meant."""
        prefix = self.removesuffix("*").removesuffix(".")
        return isinstance(event, str) and (not prefix or f"{event}.".startswith(f"{prefix}."))


def is_meant(event: object, trigger: str | None) -> bool:
    """Return whether an event causes the transitions of a trigger; None causes eventless ones."""
    return trigger.matches(event) if isinstance(trigger, EventDescriptor) else trigger == event


# Records


@dataclass(slots=True, eq=False)
class Edge:
    """The part that all records of a transition share: ends and trigger."""

    from_state: Any
    to_state: Any
    trigger: str
    from_text: str = field(init=False)
    to_text: str = field(init=False)
    # what the engine compares with an agent's state: nothing that a self-transition leaves
    leaves: Any = field(init=False)
    # states and trigger as the log has them
    ends: Mapping[str, str] = field(init=False)
    # in a chart with composites: what is exited and entered
    plan: Any = field(default=None, init=False)
    # of the last context that had one
    key: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.from_text, self.to_text = state_text(self.from_state), state_text(self.to_state)
        self.leaves = None if self.from_state == self.to_state else self.from_state
        states = {"from_state": self.from_text, "to_state": self.to_text}
        self.ends = {**states, "trigger": self.trigger}


@lru_cache(maxsize=4096, typed=True)
def shared_edge(from_state: Any, to_state: Any, trigger: str) -> Edge:
    """Return the one edge for these ends and this trigger, for records made without a chart."""
    return Edge(from_state, to_state, trigger)


def read_only(get: Callable[[Any], Any]) -> Any:
    """Return a property of which only the class's annotation says the type."""
    return property(get)


@dataclass(init=False)
class StateTransition:
    """An entry of an agent's history: a transition with its time and its event's context.

    Records are immutable and compact (64 bytes and a float); ``timestamp`` and ``context`` are
    built when they are read.

    Args:
        from_state: State before the transition.
        to_state: State after the transition.
        trigger: Event that caused it.
        timestamp: When it happened. Aware times are converted to UTC; naive ones are taken as UTC.
        context: The event's context, such as ``{"post_id": "p1"}``. Objects are reduced to their
            identifying fields, never kept.
    """

    __slots__ = ("_edge", "_keys", "_time", "_value")

    from_state: Any = read_only(attrgetter("_edge.from_state"))
    to_state: Any = read_only(attrgetter("_edge.to_state"))
    trigger: str = read_only(attrgetter("_edge.trigger"))
    timestamp: datetime = read_only(lambda entry: _in_utc(entry._time))
    context: dict[str, Any] | None = read_only(lambda entry: unpack(entry._keys, entry._value))

    def __init__(
        self, from_state: Any, to_state: Any, trigger: str, timestamp: datetime, context: Any = None
    ) -> None:
        self._edge: Edge = shared_edge(from_state, to_state, trigger)
        self._time: float = _in_utc(timestamp).timestamp()
        self._keys, self._value = pack(context)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values, in the form of the specification."""
        time = self.timestamp.isoformat().replace("+00:00", "Z")
        return {**self._edge.ends, "timestamp": time, "context": self.context}

    @classmethod
    def from_dict(
        cls, record: Mapping[str, Any], state_of: Callable[[str], Any] = str
    ) -> StateTransition:
        """Return the record that `to_dict` wrote.

        Args:
            record: What it wrote.
            state_of: Returns the state that a text stands for: the enum of the states, or a chart's
                `Statechart.state_of`. By default states stay texts.

        Raises:
            FieldValueError: (a ValueError) if something is missing or wrong.
        """
        try:
            time = datetime.fromisoformat(record["timestamp"])
            before, after = state_of(record["from_state"]), state_of(record["to_state"])
            return cls(before, after, record["trigger"], time, record["context"])
        except (KeyError, TypeError, ValueError) as error:
            problem = f"a record of a transition cannot be read ({error!r}): {record!r}"
            raise FieldValueError(problem) from None

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        """Let a field of a pydantic model hold records, and read them from what `to_dict` wrote."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.from_dict(value),
            serialization=core_schema.plain_serializer_function_ser_schema(cls.to_dict),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> dict[str, Any]:
        """Describe what `to_dict` writes, as for the OpenAPI of a service."""
        texts = "from_state", "to_state", "trigger", "timestamp"
        keys: dict[str, Any] = {key: {"type": "string"} for key in texts}
        keys["context"] = {"type": ["object", "null"]}
        return {"type": "object", "properties": keys, "required": [*keys]}

    def __hash__(self) -> int:
        """Hash the fields that are always hashable."""
        return hash(self._fields()[:4])

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the public constructor."""
        return StateTransition, self._fields()

    def _fields(self) -> tuple[Any, ...]:
        return self.from_state, self.to_state, self.trigger, self.timestamp, self.context


def _in_utc(time: float | datetime) -> datetime:
    """Return the time of a record, which its chart's clock may have as a datetime.

    Raises:
        FieldValueError: If it is no time.
    """
    if isinstance(time, datetime):
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    try:
        return datetime.fromtimestamp(time, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        problem = f"the clock returned {time!r}: it must return seconds since the epoch"
        raise FieldValueError(problem) from None


_new_record = StateTransition.__new__


def make_record(edge: Edge, time: Any, context: Any) -> StateTransition:
    """Make a history entry from a chart's own edge."""
    # not by the constructor, which would check again what the chart has checked
    record = _new_record(StateTransition)
    record._edge, record._time = edge, time
    if context is None:
        record._keys = record._value = None
        return record

    # the usual context, in a third of the time: one text, under the key of the last one
    if context.__class__ is dict and len(context) == 1:
        value = context.get(edge.key)
        if value.__class__ is str:
            record._keys, record._value = edge.key, intern(value)
            return record

    record._keys, record._value = pack(context)
    if type(record._keys) is str:
        edge.key = record._keys
    return record


def append_record(history: Any, record: StateTransition, depth: int | None) -> None:
    """Append a transition to a history, of which only the last ones stay if it has a depth."""
    history.append(record)
    while depth is not None and len(history) > depth:
        del history[0]

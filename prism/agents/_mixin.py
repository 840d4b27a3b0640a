"""The fields and methods of an agent, for any class to inherit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from copy import copy, deepcopy
from enum import Enum
from functools import partial
from operator import attrgetter
from time import time
from typing import Any, ClassVar, Self, SupportsIndex, cast

from prism._numbers import plain_number
from prism.agents.words import checked_relevance
from prism.errors import AgentError, FieldTypeError, FieldValueError
from prism.statechart import AgentState, Configuration, StateTransition
from prism.statechart.memory import restart_times
from prism.statechart.states import state_text
from prism.statechart.transitions import (
    DEFAULT_MAX_HISTORY_DEPTH,
    DEFAULT_TIMEOUT_THRESHOLD,
    Edge,
    append_record,
    make_record,
    shared_edge,
)

_WRITTEN = ("state", "ticks_in_state", "state_history", "max_history_depth", "transition_to")


def _checked(stored: str, check: Callable[[Any], Any]) -> Any:
    """Return a property for a stored value that is checked when it is assigned."""

    def assign(agent: Any, value: Any) -> None:
        setattr(agent, stored, check(value))

    # attrgetter runs in C: every fire reads some of these
    return property(attrgetter(stored), assign)


def _whole_number(field: str, least: int, value: Any) -> int:
    number = plain_number(value)
    if type(number) is not int or number < least:
        raise FieldValueError(f"{field} must be a whole number, {least} or more, got {value!r}")
    return number


def _write(agent: Any, edge: Edge, time: float, context: object) -> int:
    """Write what a transition leaves behind, and return the ticks that the agent spent before."""
    record = make_record(edge, time, context)
    dwell: int = agent._prism_ticks
    agent._prism_state = edge.to_state
    agent._prism_ticks = 0
    agent._prism_history.append(record)
    return dwell


class StatechartMixin:
    """Adds state, history and time-out fields to a class, each validated when it is assigned.

    The fields exist as soon as the object does, whether or not the class calls
    ``super().__init__()``. For states of another enum, set ``state_type = Mood`` in the class; new
    agents start in its first member.

    Equality, hash, repr and serialisation do not change for a class that names its fields, such as
    a dataclass. Code that lists ``vars(self)`` finds more names there, each beginning with
    ``_prism_``. Copies and pickles include the fields, unless the class defines ``__reduce_ex__``,
    ``__copy__`` or ``__deepcopy__`` and leaves them out.

    Attributes:
        state: Current state, a member of ``state_type``, or a configuration of such members in a
            chart with regions; anything else raises a TypeError.
        state_memory: What a chart with histories or timers remembers about the agent; None until it
            remembers something.
        ticks_in_state: Ticks since the last transition, 0 or more.
        state_history: The last ``max_history_depth`` transitions, oldest first, as a deque.
        engagement_threshold: Relevance from which the agent engages, 0.0 to 1.0.
        timeout_threshold: Longest dwell time in one state in ticks, above 0.
        max_history_depth: Maximum length of ``state_history``, above 0.

    Raises:
        AgentError: (a TypeError) if the class is a model or a dataclass of pydantic.
    """

    state_type: ClassVar[type[Enum]] = AgentState

    # writes the underscored fields directly, past the properties, which is faster; None in a class
    # that overrides one of the properties
    _prism_writer: ClassVar[Callable[..., Any] | None]

    # until an agent gets values of its own
    _prism_ticks = 0
    _prism_engagement = 0.5
    _prism_timeout = DEFAULT_TIMEOUT_THRESHOLD
    _prism_memory: dict[str, Any] | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Create the object with its fields set."""
        # with the first object, since Django and pydantic change a class that has been made
        if "_prism_writer" not in cls.__dict__:
            cls._prism_writer = _writer_for(cls)
        # `object.__new__` refuses the arguments of ``__init__``, which another base may need.
        make = super().__new__
        agent: Any = make(cls) if make is object.__new__ else make(cls, *args, **kwargs)
        agent._prism_state = next(iter(cls.state_type))
        agent._prism_history = deque(maxlen=DEFAULT_MAX_HISTORY_DEPTH)
        return cast(Self, agent)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Include the fields in copies and pickles, even if a ``__getstate__`` omits them."""
        reduced: Any = super().__reduce_ex__(protocol)
        # the name of a global object, which is its own copy
        if isinstance(reduced, str):
            return reduced
        make, args, *rest = reduced
        fields = {name: value for name, value in vars(self).items() if name.startswith("_prism_")}
        if rest:
            rest[0] = _without(fields, rest[0])

        # a copy shares neither history nor memory
        fields["_prism_history"] = copy(self._prism_history)
        if self._prism_memory is not None:
            fields["_prism_memory"] = deepcopy(self._prism_memory)
        return _restore, (make, args, fields), *rest

    def _prism_set_state(self, value: Any) -> None:
        if not _is_state_of(value, self.state_type):
            problem = f"state must be a member of {self.state_type.__name__}, got {value!r}"
            members = ", ".join(self.state_type.__members__)
            raise FieldTypeError(f"{problem}: use one of {members}")

        restart_times(self.state_memory or {})
        self._prism_state, self._prism_ticks = value, 0

    state: Any = property(attrgetter("_prism_state"), _prism_set_state)
    state_memory: dict[str, Any] | None = _checked("_prism_memory", lambda memory: memory)
    ticks_in_state: int = _checked("_prism_ticks", partial(_whole_number, "ticks_in_state", 0))
    engagement_threshold: float = _checked(
        "_prism_engagement", partial(checked_relevance, "engagement_threshold")
    )
    timeout_threshold: int = _checked(
        "_prism_timeout", partial(_whole_number, "timeout_threshold", 1)
    )

    @property
    def state_history(self) -> deque[StateTransition]:
        """The last transitions, oldest first."""
        return self._prism_history

    @state_history.setter
    def state_history(self, value: Iterable[StateTransition]) -> None:
        records = list(value)
        if not all(isinstance(each, StateTransition) for each in records):
            raise FieldTypeError(
                "state_history holds StateTransition records: keep other entries under another name"
            )
        self._prism_history = deque(records, maxlen=self.max_history_depth)

    @property
    def max_history_depth(self) -> int:
        """Maximum length of the history."""
        return int(self._prism_history.maxlen or 0)

    @max_history_depth.setter
    def max_history_depth(self, value: int) -> None:
        depth = _whole_number("max_history_depth", 1, value)
        self._prism_history = deque(self._prism_history, maxlen=depth)

    def is_timed_out(self) -> bool:
        """Return True if the agent has dwelt longer than its ``timeout_threshold``."""
        return self.ticks_in_state > self.timeout_threshold

    def transition_to(self, new_state: Any, trigger: str, context: Any = None) -> None:
        """Change the state and record the transition, whether or not a chart allows it.

        To fire an event on a chart, use `Statechart.fire`. A transition to the current state
        changes and records nothing.

        Args:
            new_state: A member of ``state_type``.
            trigger: Event that caused the transition.
            context: The event's payload; recorded by its identifying fields.

        Raises:
            FieldTypeError: If ``new_state`` is not a member of ``state_type``.
        """
        previous = self.state
        if new_state == previous and _is_state_of(new_state, self.state_type):
            return

        record = make_record(shared_edge(previous, new_state, trigger), time(), context)
        # a class may keep its state as text, in a column
        self.state = state_text(new_state) if type(previous) is str else new_state
        self.ticks_in_state = 0
        append_record(self.state_history, record, self.max_history_depth)


def _writer_for(cls: Any) -> Callable[..., Any] | None:
    """Return the writer of a class, and refuse pydantic's, which lose the fields without a word."""
    if hasattr(cls, "__pydantic_validator__"):
        raise AgentError(
            f"{cls.__name__} is a class of pydantic, which keeps only declared fields: declare "
            "'state', 'ticks_in_state' and 'state_history' as such, without StatechartMixin"
        )
    is_usual = all(getattr(cls, name) is getattr(StatechartMixin, name) for name in _WRITTEN)
    return _write if is_usual else None


def _is_state_of(value: object, state_type: type[Enum]) -> bool:
    leaves = value.leaves if isinstance(value, Configuration) else (value,)
    return all(isinstance(leaf, state_type) for leaf in leaves)


def _without(fields: Mapping[str, Any], state: Any) -> Any:
    """Return the state of an object without some fields; with slots, it is a pair of dicts."""
    if type(state) is tuple:
        return tuple(_without(fields, each) for each in state)
    if type(state) is not dict or fields.keys().isdisjoint(state):
        return state
    return {name: value for name, value in state.items() if name not in fields}


def _restore(make: Callable[..., Any], args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
    agent = make(*args)
    vars(agent).update(fields)
    return agent

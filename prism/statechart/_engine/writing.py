"""What a transition leaves behind in its agent: state, ticks and a record.

Any object with a writable ``state`` can be driven. The other fields (`FIELD_DEFAULTS`) are used
where they are prism's: `history_of` and `count_of` tell. An agent's own things are never damaged.
A function writes the agents of one kind of classes (`writer_of`):

* the class's ``_prism_writer`` writes agents of a world, and those built on
  `prism.agents.StatechartMixin`: the fields of such a class live in
  ``_prism_state``, ``_prism_ticks`` and ``_prism_history`` (a deque), so they are written without
  validating the engine's own values.
* `write_by_method` writes those with a ``transition_to(new_state, trigger, context)``, by that.
* `write_plain` writes all others.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from prism.errors import AgentError
from prism.statechart.memory import beside_of, copy_apart, count_of, field_of, in_row, kept_beside
from prism.statechart.names import pack, unpack
from prism.statechart.states import is_text, state_text
from prism.statechart.transitions import (
    DEFAULT_MAX_HISTORY_DEPTH,
    DEFAULT_TIMEOUT_THRESHOLD,
    Edge,
    StateTransition,
    append_record,
    make_record,
)
from prism.telemetry.loggers import warn_standard

FIELD_DEFAULTS: dict[str, Any] = {
    "ticks_in_state": 0,
    "engagement_threshold": 0.5,
    "timeout_threshold": DEFAULT_TIMEOUT_THRESHOLD,
    "max_history_depth": DEFAULT_MAX_HISTORY_DEPTH,
}

_FIELDS = (*FIELD_DEFAULTS, "state_history")

Writer = Callable[[Any, Edge, Any, object], int | None]
"""``(agent, edge, time, context)``: returns the ticks that the agent spent in the state it left."""


# Whose fields they are


def depth_of(agent: Any) -> int:
    """Return how many records an agent keeps."""
    return count_of(agent, "max_history_depth") or DEFAULT_MAX_HISTORY_DEPTH


def history_of(agent: Any) -> Sequence[StateTransition]:
    """Return an agent's records: where they are kept, or nothing if they are kept nowhere.

    An agent's ``state_history`` is prism's if it begins and ends with a record of prism's, or if it
    is empty and either a deque or beside a whole ``ticks_in_state`` or ``max_history_depth``.
    Whatever else has that name is the application's, and is neither read nor written.
    """
    history = _usable_history(agent)
    return beside_of(agent).records or () if history is None else history


def _usable_history(agent: Any) -> Any:
    """Return an agent's ``state_history`` if it is prism's, else None."""
    history = field_of(agent, "state_history")
    # a property may return a copy, to which nothing can be added
    if not isinstance(history, (list, deque)) or history is not agent.state_history:
        return None
    if history or beside_of(agent).records is not None:
        ends = [history[0], history[-1]] if history else [None]
        is_prisms = all(isinstance(each, StateTransition) for each in ends)
    else:
        counts = (count_of(agent, name) for name in ("ticks_in_state", "max_history_depth"))
        is_prisms = type(history) is deque or any(count is not None for count in counts)
    return history if is_prisms else None


def records_for(agent: Any) -> Any:
    """Return where the records of an agent are to be written, beside it if there is no room."""
    if (history := _usable_history(agent)) is not None:
        depth = count_of(agent, "max_history_depth")
        if depth and getattr(history, "maxlen", None) not in (None, depth):
            # a bound that has been changed since
            with suppress(Exception):
                agent.state_history = deque(history, depth)
        if in_row(agent, "state_history"):
            agent.state_history = agent.state_history.copy()
        return agent.state_history

    cls = type(agent)
    if cls not in _warned_of and field_of(agent, "state_history") is not None:
        _warned_of.add(cls)
        whose = "is the application's own, so chart.history(agent) has the records"
        warn_standard(f"{cls.__name__}.state_history {whose}")
    entry = kept_beside(agent)
    if entry.records is None:
        entry.records = deque(maxlen=DEFAULT_MAX_HISTORY_DEPTH)
    return entry.records


_warned_of: WeakSet[type] = WeakSet()


# Writing


def writer_of(agent: Any) -> tuple[Writer, bool]:
    """Return the writer for agents of a class, of which one is at hand.

    The other result is whether code of the application's may run when it writes.

    Raises:
        AgentError: If the class has a ``transition_to`` that cannot be called with state, trigger
            and context.
        AttributeError: If the class takes no new state.
    """
    cls: Any = type(agent)
    if (writer := getattr(cls, "_prism_writer", None)) is not None:
        return writer, False
    if callable(getattr(cls, "transition_to", None)):
        _require_arguments(cls)
        return write_by_method, True
    fields = [inspect.getattr_static(cls, name, None) for name in ("state", "ticks_in_state")]
    # slots run no code
    fields = [each for each in fields if not inspect.ismemberdescriptor(each)]
    setters = [getattr(each, "fset", None) for each in filter(inspect.isdatadescriptor, fields)]
    has_code = cls.__setattr__ is not object.__setattr__
    # frozen classes and named tuples refuse both, as may models: let them, before an action has run
    if has_code or None in setters:
        agent.state = agent.state
        if count_of(agent, "ticks_in_state") is not None:
            agent.ticks_in_state += 0
    return (write_plain, True) if has_code or setters else (write_usual, False)


def _require_arguments(cls: Any) -> None:
    if inspect.iscoroutinefunction(cls.transition_to):
        raise AgentError(f"{cls.__name__}.transition_to is async, but nobody awaits it: use 'def'")
    # of another kind of callable the signature may be unknown
    if not inspect.isfunction(cls.transition_to):
        return
    try:
        inspect.signature(cls.transition_to).bind("self", "new_state", "trigger", "context")
    except TypeError as error:
        raise AgentError(
            f"{cls.__name__}.transition_to cannot write a transition ({error}): "
            "define it as  def transition_to(self, new_state, trigger, context=None)"
        ) from None


def write_by_method(agent: Any, edge: Edge, _time: float, context: object) -> int | None:
    """Let an agent's own ``transition_to`` write it.

    Raises:
        AgentError: If it left the agent in another state.
    """
    dwell = count_of(agent, "ticks_in_state")
    agent.transition_to(edge.to_state, edge.trigger, unpack(*pack(context)))
    if agent.state != edge.to_state:
        problem = f"must set self.state to {edge.to_text!r}, but it is {state_text(agent.state)!r}"
        raise AgentError(f"{type(agent).__name__}.transition_to {problem}")
    return dwell


def write_usual(agent: Any, edge: Edge, time: float, context: object) -> int | None:
    """Write a plain object, whose records are usually in a deque with a bound of its own."""
    try:
        dwell: int | None = agent.ticks_in_state
        history, state = agent.state_history, edge.to_state
        is_usual = (
            history[-1].__class__ is StateTransition
            and agent.state.__class__ is state.__class__
            and history.__class__ is deque
            and history.maxlen == agent.max_history_depth
            and dwell.__class__ is int
        )
    except Exception:
        is_usual = False
    if not is_usual:
        return write_plain(agent, edge, time, context)
    agent.state = state
    agent.ticks_in_state = 0
    history.append(make_record(edge, time, context))
    return dwell


def write_plain(agent: Any, edge: Edge, time: float, context: object) -> int | None:
    """Write any other object, using the fields that are prism's.

    A state that is plain text stays plain text. If a field refuses its new value, be it after it
    was set, as the validator of a model may, nothing has changed.
    """
    before, dwell = agent.state, count_of(agent, "ticks_in_state")
    history = None if field_of(agent, "state_history") is None else records_for(agent)
    record = make_record(edge, time, context)
    try:
        agent.state = edge.to_text if is_text(before) else edge.to_state
        restart_time(agent)
    except Exception:
        agent.state = before
        if dwell is not None:
            agent.ticks_in_state = dwell
        raise
    if history is not None:
        append_record(history, record, depth_of(agent))
    return dwell


def keep_record(dwell: int | None, agent: Any, edge: Edge, time: float, context: Any) -> int | None:
    """Write what a Machine of the application's, which has set the state, does not write."""
    restart_time(agent)
    append_record(records_for(agent), make_record(edge, time, context), depth_of(agent))
    return dwell


def set_state(agent: Any, state: Any) -> None:
    """Put an agent into a state without a transition, its dwell time begun anew."""
    agent.state = state_text(state) if is_text(getattr(agent, "state", None)) else state
    restart_time(agent)


def restart_time(agent: Any) -> None:
    """Begin an agent's time in its state anew, where the agent keeps it."""
    if count_of(agent, "ticks_in_state"):
        agent.ticks_in_state = 0


def add_missing_fields(agent: Any, names: Iterable[str] = _FIELDS) -> None:
    """Give an object the fields it lacks.

    Raises:
        AgentError: If its class leaves no room for one.
    """
    values = {**FIELD_DEFAULTS, "state_history": deque(maxlen=depth_of(agent))}
    for name in names:
        if not hasattr(agent, name):
            try:
                setattr(agent, name, values[name])
            except Exception as error:
                problem = f"{type(agent).__name__} has no room for {name!r} ({error}): declare it"
                raise AgentError(problem) from None
            copy_apart(type(agent))

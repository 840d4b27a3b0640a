"""The traces of a transition: in its agent, in the history, and in the log.

Any object with a writable ``state`` can be driven. The other fields (`FIELD_DEFAULTS`) are used
where the object has them. There are four kinds of classes:

* **kept**: built on `prism.agents.StatechartMixin`. Such a class says ``_prism_kept = True`` and
  promises that its fields live in ``_state``, ``_ticks_in_state`` and ``_state_history`` (a deque),
  so the engine may write them without validating its own values.
* **agents of a world**: say by ``_prism_writer`` what writes them as the engine would.
* **own**: has a ``transition_to(new_state, trigger, context)``, which alone writes its agents.
* **plain**: everything else; the fields that exist are written.
"""

from __future__ import annotations

import inspect
import logging
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal
from weakref import WeakSet

from prism.errors import AgentError, DefinitionError
from prism.statechart._identity import (
    Asked,
    agent_name,
    announcer,
    identify,
    pack,
    unpack,
)
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge, StateTransition
from prism.telemetry._loggers import (
    EventLogger,
    Frame,
    active_logger,
    pass_over,
    report_fault,
    report_warning,
    tell_whole,
    warn_standard,
)
from prism.telemetry.events import ACTION_FAILED, ANSWER_DISCARDED, GUARD_FAILED, TRANSITION

DEFAULT_TIMEOUT_THRESHOLD = 5
DEFAULT_MAX_HISTORY_DEPTH = 50

FIELD_DEFAULTS: dict[str, Any] = {
    "ticks_in_state": 0,
    "engagement_threshold": 0.5,
    "timeout_threshold": DEFAULT_TIMEOUT_THRESHOLD,
    "max_history_depth": DEFAULT_MAX_HISTORY_DEPTH,
}

IF_FROZEN = "if it is frozen, keep it in a field of an agent with StatechartMixin"
"""Advice for an object in which nothing can be written."""

_WAYS_OUT = {
    "state": (
        "keep the frozen value in a field of an agent, or give the class a "
        "transition_to(self, new_state, trigger, context) that sets it"
    ),
    "ticks_in_state": ("keep the frozen value in a field of an agent, or leave out ticks_in_state"),
}

Writer = Callable[[Any, Edge, float, object], int | None]
"""``(agent, edge, time, context)``: returns the ticks that the agent spent in the state it left."""

Discarded = Literal["moved", "not_enabled"]
"""Why an answer was discarded: the agent had moved, or no guard lets it take the transition now."""

_MOST_FRAMES = 1024
"""Most transitions of which a log remembers what their lines share."""

_new_record = StateTransition.__new__


def make_record(edge: Edge, time: float, context: object) -> StateTransition:
    """Make a history entry from a chart's own edge."""
    # not by the constructor, which would check again what the chart has checked
    record = _new_record(StateTransition)
    record._time = time
    if context is None:
        record._edge, record._value = edge, None
        return record

    keys, record._value = pack(context)
    # looked up here first, to save the call of `with_keys`
    record._edge = edge.variants.get(keys) or edge.with_keys(keys)

    return record


def write_kept(agent: Any, edge: Edge, time: float, context: object) -> int | None:
    """Write an agent of a kept class."""
    record = make_record(edge, time, context)
    dwell: int = agent._ticks_in_state
    agent._state = edge.to_state
    agent._ticks_in_state = 0
    agent._state_history.append(record)

    return dwell


def write_own(agent: Any, edge: Edge, _time: float, context: object) -> int | None:
    """Let an agent's own ``transition_to`` write it.

    Raises:
        AgentError: If it left the agent in another state.
    """
    dwell = ticks_of(agent)
    agent.transition_to(edge.to_state, edge.trigger, unpack(*pack(context)))
    if agent.state != edge.to_state:
        raise AgentError(
            f"{type(agent).__name__}.transition_to left the agent in "
            f"{state_text(agent.state)!r} instead of {state_text(edge.to_state)!r}: "
            "it must set self.state to the state it is given"
        )

    return dwell


def holds_records(history: Any) -> bool:
    """Return whether a history is prism's: a list or a deque of its records, or empty."""
    # whoever keeps entries of another kind there has them at one of the ends
    return isinstance(history, (list, deque)) and (
        not history
        or (isinstance(history[0], StateTransition) and isinstance(history[-1], StateTransition))
    )


def ticks_of(agent: Any) -> int | None:
    """Return the ticks that an object counts; None if its field is missing or another thing."""
    ticks = getattr(agent, "ticks_in_state", None)
    return ticks if type(ticks) is int else None


def write_plain(agent: Any, edge: Edge, time: float, context: object) -> int | None:
    """Write any other object, using the fields it has.

    A history with entries of another kind stays as it is, as do ticks that are no whole number.

    Raises:
        AgentError: If the object takes no new values, or its ``max_history_depth`` is no number.
            Nothing has changed then, except that a full deque beside a wrong depth has lost its
            oldest record.
        Exception: Whatever else a field's own code raises; nothing has changed then, either.
    """
    record = make_record(edge, time, context)
    # as `ticks_of`, without its call
    ticks = getattr(agent, "ticks_in_state", None)
    dwell = ticks if type(ticks) is int else None
    history = getattr(agent, "state_history", None)
    if history is not None and not holds_records(history):
        _warn_once(type(agent))
        history = None

    # the history comes last: what a full one drops cannot be brought back
    try:
        agent.state = edge.to_state
    except Exception as error:
        _undo(agent, "state", error, state=edge.from_state)
        raise

    try:
        if dwell is not None:
            agent.ticks_in_state = 0
    except Exception as error:
        _undo(agent, "ticks_in_state", error, ticks_in_state=dwell, state=edge.from_state)
        raise

    try:
        if history is not None:
            append_record(
                history, record, getattr(agent, "max_history_depth", DEFAULT_MAX_HISTORY_DEPTH)
            )
    except Exception as error:
        if history and history[-1] is record:
            history.pop()
        _undo(agent, "state_history", error, ticks_in_state=dwell, state=edge.from_state)
        raise

    return dwell


_with_own_history: WeakSet[type] = WeakSet()


def _warn_once(cls: type) -> None:
    if cls not in _with_own_history:
        _with_own_history.add(cls)
        warn_standard(
            f"state_history of a {cls.__name__} holds entries that are not prism's, so it stays as "
            "it is, and no records of transitions are kept: rename the attribute, or derive the "
            "class from prism.agents.StatechartMixin"
        )


def set_state(agent: Any, state: Any) -> None:
    """Put an agent into a state without a transition, its dwell time begun anew.

    Raises:
        AgentError: If the object takes no new values.
    """
    if getattr(type(agent), "_prism_kept", False):
        agent._state, agent._ticks_in_state = state, 0
        return

    try:
        agent.state = state
        if ticks_of(agent) is not None:
            agent.ticks_in_state = 0
    except AttributeError as error:
        raise AgentError(
            f"{type(agent).__name__} rejects a new state ({error}), which begin sets without a "
            "transition: make it writable, or keep the frozen value in a field of an agent"
        ) from error


def append_record(history: Any, record: StateTransition, depth: int | None) -> None:
    """Append a transition to a history, of which only the last ones stay if it has a depth."""
    history.append(record)
    while depth is not None and len(history) > depth:
        del history[0]


def count_tick(agent: Any, ticks: int) -> int:
    """Count one more tick in an object's ``ticks_in_state``, and return the ticks now.

    Raises:
        AgentError: If it takes no new values.
        Exception: Whatever else the field's own code raises; nothing has changed then, either.
    """
    try:
        agent.ticks_in_state = ticks + 1
    except Exception as error:
        _undo(agent, "ticks_in_state", error, ticks_in_state=ticks)
        raise

    return ticks + 1


def _undo(agent: Any, refused: str, error: Exception, **before: Any) -> None:
    """Restore an object that refused what the engine wrote.

    Args:
        agent: The object.
        refused: The field that refused the new value.
        error: What the object raised; gets a note about the refusal.
        before: Earlier values of the fields written so far; None for a field that it does not have.

    Raises:
        AgentError: In place of an error that says only that the field, or the history, cannot be
            written.
    """
    for field, value in before.items():
        if value is not None and getattr(agent, field) != value:
            setattr(agent, field, value)

    kind = type(agent).__name__
    if refused == "state_history" and isinstance(error, (AttributeError, TypeError)):
        needs = "a number or None for max_history_depth"
        raise AgentError(f"{kind}.state_history needs {needs}: {error}") from error

    if isinstance(error, AttributeError):
        raise AgentError(
            f"{kind} rejects a new {refused} ({error}): {_WAYS_OUT[refused]}"
        ) from error

    error.add_note(
        f"{kind} rejected what prism wrote into {refused!r} and is unchanged; {IF_FROZEN}"
    )


def writer_of(cls: type) -> Writer:
    """Return the writer for agents of a class.

    Raises:
        AgentError: If the class has a ``transition_to`` that cannot be called with state, trigger
            and context.
    """
    own: Writer | None = getattr(cls, "_prism_writer", None)
    if own is not None:
        return own
    if getattr(cls, "_prism_kept", False):
        return write_kept
    if not callable(getattr(cls, "transition_to", None)):
        return write_plain

    _require_arguments(cls)

    return write_own


def _require_arguments(cls: type) -> None:
    own = inspect.getattr_static(cls, "transition_to")
    if not inspect.isfunction(own):
        # of another kind of callable the signature may be unknown
        return

    is_async = inspect.iscoroutinefunction(own)
    problem = "it is async, but transitions are synchronous" if is_async else ""
    try:
        inspect.signature(own).bind("self", "new_state", "trigger", "context")
    except TypeError as error:
        problem = str(error)

    if problem:
        raise AgentError(
            f"{cls.__name__}.transition_to cannot write a transition ({problem}): "
            "define it as  def transition_to(self, new_state, trigger, context=None)"
        )


def writes_quietly(cls: type) -> bool:
    """Return True if writing an agent of this class runs no code of the user's."""
    if inspect.getattr_static(cls, "__setattr__") is not object.__setattr__:
        return False
    if writer_of(cls) is not write_plain:
        return writer_of(cls) is not write_own

    fields = [
        inspect.getattr_static(cls, name, None)
        for name in ("state", "ticks_in_state", "state_history")
    ]

    return all(
        inspect.ismemberdescriptor(field) or not inspect.isdatadescriptor(field) for field in fields
    )


def add_missing_fields(agent: Any, initial: Any, **more: Any) -> None:
    """Give an object the fields it lacks, those of every chart and more.

    Raises:
        AgentError: If the object's class leaves no room for them (``__slots__``, a frozen class, or
            a strict model).
    """
    fields = FIELD_DEFAULTS | more
    missing = {name: value for name, value in fields.items() if not hasattr(agent, name)}
    if not hasattr(agent, "state_history"):
        depth = getattr(agent, "max_history_depth", DEFAULT_MAX_HISTORY_DEPTH)
        missing["state_history"] = deque(maxlen=depth)

    if getattr(agent, "state", None) is None:
        missing["state"] = initial

    refused = []
    for name, value in missing.items():
        try:
            setattr(agent, name, value)
        except (AttributeError, TypeError, ValueError):
            refused.append(name)

    if refused:
        cls = type(agent)
        mixin = "" if is_pydantic(cls) else ", or derive it from prism.agents.StatechartMixin"
        if not {"state", *more} & {*refused}:
            mixin += ", or do without adopt, since the chart needs only its 'state'"
        raise AgentError(
            f"{cls.__name__} has no fields {', '.join(sorted(refused))}: declare them in the "
            f"class{mixin}; {IF_FROZEN}"
        )


def is_pydantic(cls: type) -> bool:
    """Return True for a pydantic model, which has declared fields only."""
    return any(base.__module__.partition(".")[0] == "pydantic" for base in cls.__mro__)


@lru_cache(maxsize=_MOST_FRAMES)
def transition_frame(chart: str, source: str, target: str, trigger: str) -> Frame:
    """Return what the events of a transition share."""
    return Frame({"chart": chart}, {"from_state": source, "to_state": target, "trigger": trigger})


class Reporter:
    """Writes a chart's events to its log.

    Args:
        chart: Name of the chart.
        logger: Where to write; None means structlog's own logger, once it is configured.
        strict: Whether to raise faults of guards and actions instead.

    Attributes:
        logger: The chart's own logger, if it has one.
        has_logger: Whether it has.

    Raises:
        DefinitionError: If the logger is one of the standard library, which takes no keys.
    """

    __slots__ = ("_chart", "_strict", "has_logger", "logger")

    def __init__(self, chart: str, logger: EventLogger | None, *, strict: bool) -> None:
        if isinstance(logger, logging.Logger):
            raise DefinitionError(
                f"chart {chart!r}: logger must be a structlog logger, got the standard library's "
                f"{logger.name!r}: wrap it with structlog.wrap_logger, or leave it out and "
                "configure structlog"
            )

        self._chart = chart
        self.logger: EventLogger | None = logger
        self._strict = strict
        self.has_logger: bool = logger is not None

    def moved(self, agent: Any, edge: Edge, dwell: int | None, context: Any) -> None:
        """Report a transition, with the ticks that the agent spent in the state it left."""
        logger = active_logger(self.logger)
        if logger is None:
            return

        name, about = agent_name(agent), identify(context)
        frame = transition_frame(self._chart, edge.from_text, edge.to_text, edge.trigger)
        tell = getattr(type(logger), "_prism_tell", tell_whole)
        try:
            tell(logger, TRANSITION, name, frame, {"ticks_in_state": dwell, "context": about})
        except Exception as error:
            pass_over(error, TRANSITION)

    def decided(
        self,
        agent: Any,
        state: Any,
        trigger: str,
        options: list[Any],
        chosen: Any,
        context: Any,
    ) -> None:
        """Announce the decision of a reasoner that does not announce its own."""
        asked = Asked(agent, state, trigger, options, context)
        announcer(self.logger)(asked, chosen, "policy")

    def discarded(
        self, agent: Any, trigger: str, asked_in: Any, chosen: Any, reason: Discarded
    ) -> None:
        """Warn of an answer that no longer applied when it came."""
        report_warning(
            self.logger,
            ANSWER_DISCARDED,
            chart=self._chart,
            agent_id=agent_name(agent),
            trigger=trigger,
            asked_in=state_text(asked_in),
            now_in=state_text(agent.state),
            chosen=state_text(chosen),
            reason=reason,
        )

    def guard_failed(self, error: Exception, agent: Any, edge: Edge) -> None:
        """Report a guard that raised; it counts as failed."""
        self._failed(GUARD_FAILED, error, agent, edge)

    def action_failed(self, error: Exception, agent: Any, edge: Edge) -> None:
        """Report an action that raised; the transition is still made."""
        self._failed(ACTION_FAILED, error, agent, edge)

    def _failed(self, event: str, error: Exception, agent: Any, edge: Edge) -> None:
        if self._strict:
            raise error

        report_fault(
            self.logger,
            event,
            error,
            chart=self._chart,
            agent_id=agent_name(agent),
            from_state=edge.from_text,
            to_state=edge.to_text,
            trigger=edge.trigger,
        )

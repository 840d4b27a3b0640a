"""What a transition leaves behind: in its agent, in the history, and in the log.

Any object with a writable ``state`` can be driven. The other fields (`FIELD_DEFAULTS`) are used
where they are prism's: `history_of` and `count_of` tell. An agent's own things are never damaged.
There are four kinds of classes:

* **kept**: built on `prism.agents.StatechartMixin`. Such a class says ``_prism_kept = True`` and
  promises that its fields live in ``_prism_state``, ``_prism_ticks`` and ``_prism_history`` (a
  deque), so the engine may write them without validating its own values.
* **agents of a world**: say by ``_prism_writer`` what writes them as the engine would.
* **own**: has a ``transition_to(new_state, trigger, context)``, which alone writes its agents.
* **plain**: everything else; the fields that are prism's are written.
"""

from __future__ import annotations

import inspect
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Literal
from weakref import WeakSet, ref

from prism.errors import AgentError, DefinitionError
from prism.statechart._identity import (
    Asked,
    announcer,
    identify,
    name_or_number,
    pack,
    unpack,
)
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge, StateTransition
from prism.telemetry.events import (
    ACTION_FAILED,
    ANSWER_DISCARDED,
    EVENT_REFUSED,
    GUARD_FAILED,
    TRANSITION,
)
from prism.telemetry.instruments import join_hooks
from prism.telemetry.loggers import (
    EventLogger,
    active_logger,
    debug_logger,
    pass_over,
    report,
    report_fault,
    synchronous,
    warn_standard,
)

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

_WAY_OUT = (
    "keep the frozen value in a field of an agent, or give the class a "
    "transition_to(self, new_state, trigger, context) that sets it"
)

Writer = Callable[[Any, Edge, float, object], int | None]
"""``(agent, edge, time, context)``: returns the ticks that the agent spent in the state it left."""

Discarded = Literal["moved", "not_enabled"]
"""Why an answer was discarded: the agent had moved, or no guard lets it take the transition now."""

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


# Whose fields they are


def field_of(agent: Any, name: str) -> Any:
    """Return a field; None if the object has none, or cannot be asked for what it lacks."""
    try:
        return getattr(agent, name, None)
    except Exception:
        return None


def count_of(agent: Any, name: str) -> int | None:
    """Return a field that holds a whole number; a mock's, or anything else, is none."""
    value = field_of(agent, name)
    return value if type(value) is int else None


def history_of(agent: Any) -> Any:
    """Return an agent's records: where they are kept, or nothing if they are kept nowhere.

    An agent's ``state_history`` is prism's if it begins and ends with a record of prism's, or if it
    is empty and either a deque or beside a whole ``ticks_in_state`` or ``max_history_depth``.
    Whatever else has that name is the application's, and is neither read nor written.
    """
    own = field_of(agent, "state_history")
    if is_prisms(agent, own) or (isinstance(own, tuple) and _holds_records(own)):
        return own
    beside = _beside.get(id(agent))
    return () if beside is None else beside[1]


def is_prisms(agent: Any, history: Any) -> bool:
    """Return whether an agent's ``state_history`` is prism's to write."""
    if not isinstance(history, (list, deque)):
        return False
    if history:
        return _holds_records(history)
    return type(history) is deque or any(
        count_of(agent, name) is not None for name in ("ticks_in_state", "max_history_depth")
    )


def _holds_records(history: Any) -> bool:
    ends = (history[0], history[-1]) if history else ()
    return bool(ends) and all(isinstance(each, StateTransition) for each in ends)


_beside: dict[int, tuple[object, deque[StateTransition], dict[str, Any]]] = {}
"""The records and the memory of agents whose own fields are something else, by their address."""


def _kept_beside(agent: Any, history: Any) -> Any:
    """Return where the records of an agent go whose own ``state_history`` is something else."""
    if history is None:
        return None
    cls = type(agent)
    if cls not in _told_of and hasattr(agent, "state_history"):
        _told_of.add(cls)
        warn_standard(
            f"{cls.__name__}.state_history is the application's own, so chart.history(agent) has "
            "the records"
        )
    return _entry_beside(agent)[1]


def memory_beside(agent: Any) -> dict[str, Any]:
    """Return the memory of an agent whose own ``state_memory`` is something else."""
    return _entry_beside(agent)[2]


def _entry_beside(agent: Any) -> tuple[object, deque[StateTransition], dict[str, Any]]:
    key = id(agent)
    if key not in _beside:
        try:
            life: object = ref(agent, lambda _: _beside.pop(key, None))
        except TypeError:
            # what weak references cannot follow is kept alive, so that its address stays its own
            life = agent
            while len(_beside) >= _MOST_BESIDE:
                del _beside[next(iter(_beside))]
        _beside[key] = life, deque(maxlen=DEFAULT_MAX_HISTORY_DEPTH), {}
    return _beside[key]


_MOST_BESIDE = 10_000


def records_for(agent: Any) -> Any:
    """Return where the records of an agent are to be written, beside it if there is no room."""
    history = field_of(agent, "state_history")
    return history if is_prisms(agent, history) else _kept_beside(agent, history or ())


_told_of: WeakSet[type] = WeakSet()


# Writing


class MovedError(Exception):
    """The agent is not in the state that the transition leaves: a guard has moved it."""


def write_kept(agent: Any, edge: Edge, time: float, context: object) -> int | None:
    """Write an agent of a kept class."""
    if agent._prism_state is not edge.from_state and agent._prism_state != edge.from_state:
        raise MovedError
    record = make_record(edge, time, context)
    dwell: int = agent._prism_ticks
    agent._prism_state = edge.to_state
    agent._prism_ticks = 0
    agent._prism_history.append(record)

    return dwell


def write_own(agent: Any, edge: Edge, _time: float, context: object) -> int | None:
    """Let an agent's own ``transition_to`` write it.

    Raises:
        AgentError: If it left the agent in another state.
    """
    dwell = count_of(agent, "ticks_in_state")
    agent.transition_to(edge.to_state, edge.trigger, unpack(*pack(context)))
    if agent.state != edge.to_state:
        raise AgentError(
            f"{type(agent).__name__}.transition_to left the agent in "
            f"{state_text(agent.state)!r} instead of {state_text(edge.to_state)!r}: "
            "it must set self.state to the state it is given"
        )

    return dwell


def write_plain(agent: Any, edge: Edge, time: float, context: object) -> int | None:
    """Write any other object, using the fields that are prism's.

    A state that is plain text stays plain text.

    Raises:
        AgentError: If the object takes no new values. Nothing has changed then.
        MovedError: If it is in another state.
        Exception: Whatever else a field's own code raises; nothing has changed then, either.
    """
    before = agent.state
    if before is not edge.from_state and before != edge.from_state:
        raise MovedError
    record = make_record(edge, time, context)
    dwell: int | None
    try:
        dwell, history = agent.ticks_in_state, agent.state_history
    except Exception:
        dwell, history = field_of(agent, "ticks_in_state"), field_of(agent, "state_history")
    if type(dwell) is not int:
        dwell = None
    # the usual case, without calls: a deque with a bound of its own that ends with a record
    is_usual = (
        history.__class__ is deque
        and history.maxlen
        and history
        and history[-1].__class__ is StateTransition
    )
    if not (is_usual or is_prisms(agent, history)):
        history = _kept_beside(agent, history)

    field = "state"
    try:
        agent.state = edge.to_text if type(before) is str else edge.to_state
        field = "ticks_in_state"
        if dwell is not None:
            agent.ticks_in_state = 0
        # the history comes last: what a full one drops cannot be brought back
        field = "state_history"
        if is_usual:
            history.append(record)
        elif history is not None:
            append_record(history, record, depth_of(agent))
    except Exception as error:
        if history and history[-1] is record:
            history.pop()
        _undo(agent, field, error, ticks_in_state=dwell, state=before)
        raise

    return dwell


def set_state(agent: Any, state: Any) -> None:
    """Put an agent into a state without a transition, its dwell time begun anew.

    Raises:
        AgentError: If the object takes no new values.
    """
    if getattr(type(agent), "_prism_kept", False):
        agent._prism_state, agent._prism_ticks = state, 0
        return

    try:
        agent.state = state_text(state) if type(getattr(agent, "state", None)) is str else state
        restart_time(agent)
    except AttributeError as error:
        raise AgentError(
            f"{type(agent).__name__} rejects a new state ({error}), which begin sets without a "
            "transition: make it writable, or keep the frozen value in a field of an agent"
        ) from error


def restart_time(agent: Any) -> None:
    """Begin an agent's time in its state anew, where the agent keeps it."""
    if count_of(agent, "ticks_in_state"):
        agent.ticks_in_state = 0


def depth_of(agent: Any) -> int | None:
    """Return how many records an agent keeps; None for all of them."""
    try:
        depth = getattr(agent, "max_history_depth", DEFAULT_MAX_HISTORY_DEPTH)
    except Exception:
        return DEFAULT_MAX_HISTORY_DEPTH
    # that of a mock, or whatever else is no number, is none of prism's
    return depth if type(depth) is int or depth is None else DEFAULT_MAX_HISTORY_DEPTH


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
        before: Earlier values of the fields written so far.

    Raises:
        AgentError: In place of an error that says only that the field cannot be written.
    """
    for field, value in before.items():
        if value is not None and getattr(agent, field) != value:
            setattr(agent, field, value)

    kind = type(agent).__name__
    if refused != "state_history" and isinstance(error, AttributeError):
        raise AgentError(f"{kind} rejects a new {refused} ({error}): {_WAY_OUT}") from error

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


def may_be_frozen(cls: type) -> bool:
    """Return whether objects of a class may refuse what is written; `require_writable` tells."""
    fields = [inspect.getattr_static(cls, name, None) for name in ("state", "ticks_in_state")]
    return (
        any(isinstance(field, property) and field.fset is None for field in fields)
        or issubclass(cls, tuple)
        # a frozen class refuses both, and so do models
        or (cls.__setattr__ is not object.__setattr__ and cls.__delattr__ is not object.__delattr__)
    )


def require_writable(agent: Any) -> None:
    """Refuse an object that takes no new state or ticks, which are what they were afterwards.

    Raises:
        AgentError: If it is frozen.
        Exception: Whatever else its own code raises.
    """
    ticks, field = count_of(agent, "ticks_in_state"), "state"
    try:
        agent.state = agent.state
        if ticks is not None:
            field = "ticks_in_state"
            agent.ticks_in_state = 0
            agent.ticks_in_state = ticks
    except Exception as error:
        _undo(agent, field, error)
        raise


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
        self.logger: EventLogger | None = synchronous(logger)
        self._strict = strict
        self.has_logger: bool = logger is not None

    def moved(self, agent: Any, edge: Edge, dwell: int | None, context: Any) -> None:
        """Report a transition, with the ticks that the agent spent in the state it left."""
        logger = active_logger(self.logger)
        if logger is None:
            return

        name, about = name_or_number(agent), identify(context)
        if join_hooks:
            self.met(agent, edge.from_text)
        try:
            logger.info(
                TRANSITION,
                chart=self._chart,
                agent_id=name,
                from_state=edge.from_text,
                to_state=edge.to_text,
                trigger=edge.trigger,
                ticks_in_state=dwell,
                context=about,
            )
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
        report(
            self.logger,
            "warning",
            ANSWER_DISCARDED,
            chart=self._chart,
            agent_id=name_or_number(agent),
            trigger=trigger,
            asked_in=state_text(asked_in),
            now_in=state_text(agent.state),
            chosen=state_text(chosen),
            reason=reason,
        )

    def met(self, agent: Any, state: str) -> None:
        """Tell who counts the agents of charts that have no logger of their own."""
        for join in join_hooks if self.logger is None else ():
            join(self._chart, name_or_number(agent), state)

    def refused(
        self, agent: Any, state: str, trigger: str, guards: Iterable[str], context: Any
    ) -> None:
        """Report an event that made no transition, if anybody listens to details.

        Args:
            agent: The agent.
            state: The text of its state.
            trigger: Name of the event.
            guards: The names of the guards that did not pass; none where nothing reacts to it.
            context: The event's context.
        """
        self.met(agent, state)
        logger = debug_logger(self.logger)
        if logger is None:
            return

        names = [name for name in guards if name]
        try:
            logger.debug(
                EVENT_REFUSED,
                chart=self._chart,
                agent_id=name_or_number(agent),
                state=state,
                trigger=trigger,
                reason="guards" if names else "no_transition",
                guards=names,
                ticks_in_state=count_of(agent, "ticks_in_state"),
                context=identify(context),
            )
        except Exception as error:
            pass_over(error, EVENT_REFUSED)

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
            agent_id=name_or_number(agent),
            from_state=edge.from_text,
            to_state=edge.to_text,
            trigger=edge.trigger,
        )

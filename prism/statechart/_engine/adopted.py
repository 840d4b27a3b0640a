"""An application's own Machine as a chart: its models keep records, ticks and a log.

Nothing about the Machine changes but three callbacks that are added to it, first of their lists.
Any two of them suffice, so that a list which the application assigns anew loses no record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from itertools import chain
from typing import Any, Self

from prism.errors import AgentError, DefinitionError
from prism.statechart._definition import TIMEOUT, Definition
from prism.statechart._engine.deciding import Deciding, distinct
from prism.statechart._engine.machine import (
    ChartMachine,
    EventData,
    Machine,
    MachineError,
    arcs_of,
    callback_name,
    context_of,
    definition_of,
    is_async,
    is_hierarchical,
    snapshot_of,
    value_text,
)
from prism.statechart._engine.pending import Choice
from prism.statechart._engine.reporting import Reporter
from prism.statechart._engine.writing import (
    DEFAULT_MAX_HISTORY_DEPTH,
    append_record,
    count_of,
    count_tick,
    depth_of,
    make_record,
    records_for,
    restart_time,
)
from prism.statechart.transitions import Edge
from prism.telemetry.instruments import (
    ChartBuilt,
    GuardEvaluated,
    TransitionDetails,
    engine_hooks,
    observe,
)
from prism.telemetry.loggers import EventLogger, somebody_listens

DEFAULT_TIMEOUT = 5


class _Note:
    """What is known of an event of a Machine while it is under way.

    Attributes:
        source: The value of the state that the agent leaves.
        ticks: The ticks that it has been there.
        is_done: Whether its record is written.
    """

    __slots__ = ("is_done", "source", "ticks")

    def __init__(self, source: Any, ticks: int | None) -> None:
        self.source, self.ticks, self.is_done = source, ticks, False


class _Callback:
    """A callback of an adopted Machine that belongs to its chart.

    Args:
        chart: The chart.
        method: The name of the chart's method to call.
    """

    def __init__(self, chart: AdoptedEngine, method: str) -> None:
        self.chart, self.method = chart, method

    def __call__(self, event: Any) -> None:
        """Tell the chart."""
        getattr(self.chart, self.method)(event)


_CALLBACKS = {
    "before_state_change": "_begin_event",
    "after_state_change": "_end_event",
    "finalize_event": "_close_event",
}


class _CallbackWithEvent:
    """In place of the ``callback`` of a Machine whose callbacks get plain arguments.

    The chart's own still need the event.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def __call__(self, func: Any, event_data: EventData) -> Any:
        """Call one callback; that of an `AsyncMachine` is awaited by who calls this."""
        if isinstance(func, _Callback):
            func(event_data)
            return _nothing() if is_async(self.machine) else None
        return type(self.machine).callback(self.machine, func, event_data)


async def _nothing() -> None:
    pass


class AdoptedEngine(Deciding[Any]):
    """What runs a chart that `Statechart.from_machine` made: the application's Machine."""

    _machine: Any

    def __init__(
        self,
        machine: Machine,
        name: str | None,
        timeouts: Mapping[Any, int],
        timeout_trigger: str,
        logger: EventLogger | None,
        clock: Callable[[], float],
    ) -> None:
        _require_free(machine)
        # past the constructor of a chart, which would make a Machine of its own
        self._title = name or (machine.name or "").removesuffix(": ") or "machine"
        self._machine = machine
        self._attribute: str = machine.model_attribute
        self._state_limits = {
            value_text(_state_of(machine, state).value): ticks for state, ticks in timeouts.items()
        }
        self._timeout_trigger = timeout_trigger
        self._reporter = Reporter(self._title, logger, strict=False)
        self._has_logger = logger is not None
        self._clock = clock
        self._callbacks = {hook: _Callback(self, method) for hook, method in _CALLBACKS.items()}
        self._under_way: dict[int, list[Any]] = {}
        self._made: dict[int, int] = {}
        self._edges = {}
        self._described: Definition[Any] | None = None
        self._attach()
        if not machine.send_event:
            self._machine.callback = _CallbackWithEvent(machine)
        for model in machine.models:
            self.adopt(model)
        if engine_hooks and not is_hierarchical(machine):
            observe("chart_built", ChartBuilt, self._definition)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the Machine, without what is only known while the chart is used."""
        unused: dict[str, Any] = {"_under_way": {}, "_made": {}, "_edges": {}}
        unused |= {"_described": None, "_built": []}
        return object.__new__, (type(self),), vars(self) | unused

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy with the Machine, which calls its chart."""
        make, arguments, state = self.__reduce__()
        twin: Self = memo.setdefault(id(self), make(*arguments))
        own = {name: deepcopy(state[name], memo) for name in ("_machine", "_callbacks")}
        vars(twin).update(state | own)
        return twin

    @property
    def _definition(self) -> Definition[Any]:  # type: ignore[override]
        """The Machine as it is now, as a definition."""
        self._require_flat("definition")
        built = snapshot_of(self._machine)
        if self._described is None or built != self._built:
            # a definition has limits for the trigger of that name alone
            limits = self._state_limits if self._timeout_trigger == TIMEOUT else {}
            self._described = definition_of(self._machine, self._title, None, limits)
            self._built = built
        return self._described

    def _attach(self) -> None:
        for name, callback in self._callbacks.items():
            hooks = getattr(self._machine, name)
            if callback not in hooks:
                hooks.insert(0, callback)

    def release(self) -> None:
        """Take the chart's callbacks off the Machine again."""
        for name, callback in self._callbacks.items():
            hooks = getattr(self._machine, name)
            hooks[:] = [each for each in hooks if each is not callback]
        if isinstance(vars(self._machine).get("callback"), _CallbackWithEvent):
            del self._machine.callback

    def adopt(self, agent: Any) -> Any:
        """Give a model the fields of an agent that it lacks."""
        fields: dict[str, Any] = {
            "ticks_in_state": 0,
            "state_history": deque(maxlen=DEFAULT_MAX_HISTORY_DEPTH),
        }
        for field, value in fields.items():
            # classes with slots, and strict models, have no room: their records are kept beside
            if getattr(agent, field, None) is None:
                with suppress(Exception):
                    setattr(agent, field, value)
        self._reporter.met(agent, value_text(self._value(agent)))
        return agent

    def _ticks_of(self, agent: Any) -> int | None:
        """Return the ticks of an agent in its state.

        A model that was added after the Machine was adopted gets what the others have.
        """
        ticks = count_of(agent, "ticks_in_state")
        if ticks is None and any(each is agent for each in self._machine.models):
            ticks = count_of(self.adopt(agent), "ticks_in_state")
        return ticks

    # What the Machine tells

    def _begin_event(self, event: Any) -> None:
        """Note where the agent is, and close what an event around this one has already done."""
        agent = event.model
        ticks = self._ticks_of(agent)
        around = self._under_way.setdefault(id(agent), [])
        for each in around:
            self._commit_event(each)
        event.note = _Note(self._value(agent), ticks)
        around.append(event)

    def _end_event(self, event: Any) -> None:
        """Write what the transition leaves behind."""
        if not hasattr(event, "note"):  # the first callback was replaced
            source = event.machine.get_state(event.transition.source).value
            event.note = _Note(source, count_of(event.model, "ticks_in_state"))
        self._finish_event(event)
        if engine_hooks and not is_hierarchical(self._machine):
            self._observe_made(event)

    def _close_event(self, event: Any) -> None:
        """Write what failed after its state had changed, and tell of an event that was refused."""
        if event.result and id(event.model) in self._made:
            self._made[id(event.model)] += 1
        if hasattr(event, "note"):
            self._finish_event(event)
        elif event.error is None or isinstance(event.error, MachineError):
            self._tell_refused(event)

    def _finish_event(self, event: Any) -> None:
        self._commit_event(event)
        key = id(event.model)
        under_way = self._under_way.get(key, [])
        if event in under_way:
            under_way.remove(event)
        if not under_way:
            self._under_way.pop(key, None)

    def _commit_event(self, event: Any) -> None:
        """Write the record of a transition whose state has changed, once."""
        agent, note = event.model, event.note
        now = self._value(agent)
        if note.is_done:
            return
        if now == note.source:
            if event.transition is not None and event.transition.dest is not None:
                restart_time(agent)
            return

        note.is_done = True
        for other in self._under_way.get(id(agent), ()):
            if not other.note.is_done:
                # it has not moved yet: it will leave from here
                other.note.source = now
        trigger = getattr(event.event, "name", None) or "?"
        edge = self._edge(_recorded(note.source), _recorded(now), trigger)
        # the package calls a state by its name, whatever its value is
        edge.from_text, edge.to_text = value_text(note.source), value_text(now)
        self._write(agent, edge, context_of(event), note.ticks)

    def _write(self, agent: Any, edge: Edge, context: Any, dwell: int | None) -> None:
        record = make_record(edge, self._clock(), context)
        if dwell is not None:
            agent.ticks_in_state = 0
        history = records_for(agent)
        append_record(history, record, depth_of(agent))
        if self._has_logger or somebody_listens():
            self._reporter.moved(agent, edge, dwell, context)

    def _tell_refused(self, event: Any) -> None:
        arcs = _arcs_from(event)
        if engine_hooks and not is_hierarchical(self._machine):
            self._observe_guards(event, arcs, "failed")
        guards = (callback_name(each.func) for arc in arcs for each in arc.conditions)
        trigger = getattr(event.event, "name", None) or "?"
        state = value_text(self._value(event.model))
        self._reporter.refused(event.model, state, trigger, guards, context_of(event))

    # Observing

    def _observe_made(self, event: Any) -> None:
        arcs = _arcs_from(event, note=True)
        if event.transition not in arcs:
            return
        at = arcs.index(event.transition)
        self._observe_guards(event, arcs[:at], "failed")
        self._observe_guards(event, arcs[at : at + 1], "passed")
        number = self._number_of(event.transition)
        # no definition has the transitions to any state that a Machine adds by itself
        for hook in () if number is None else ("transition_began", "transition"):
            observe(
                hook, TransitionDetails, self._definition, number, event.model, context_of(event)
            )

    def _observe_guards(self, event: Any, arcs: Any, outcome: Any) -> None:
        for arc in arcs:
            number = self._number_of(arc)
            if arc.conditions and number is not None:
                details = self._definition, number, event.model, context_of(event), outcome
                observe("guard", GuardEvaluated, *details)

    def _number_of(self, wanted: Any) -> int | None:
        """Return the place of a transition in the definition."""
        every = (arc for _, arc in arcs_of(self._machine))
        return next((number for number, arc in enumerate(every) if arc is wanted), None)

    # Firing

    def fire(self, agent: Any, trigger: str, *args: Any, **kwargs: Any) -> Any:
        """Trigger an event, as ``agent.trigger`` does, with the arguments that callbacks take.

        Returns:
            The agent's state if a transition was made, else None.

        Raises:
            MachineError: Where ``agent.trigger`` raises it.
        """
        if is_async(self._machine):
            raise AgentError(
                f"chart {self._title!r} runs an AsyncMachine: write "
                "await chart.afire(agent, trigger)"
            )
        with self._watching(agent) as moved:
            self._run()(agent, trigger, *args, **kwargs)
        return moved()

    async def afire(self, agent: Any, trigger: str, *args: Any, **kwargs: Any) -> Any:
        """Trigger an event of an `AsyncMachine`, as `fire` of any other."""
        if not is_async(self._machine):
            return self.fire(agent, trigger, *args, **kwargs)
        with self._watching(agent) as moved:
            await self._run()(agent, trigger, *args, **kwargs)
        return moved()

    def _run(self) -> Callable[..., Any]:
        self._attach()
        machine = self._machine
        run: Callable[..., Any] = (
            machine.trigger_event if is_hierarchical(machine) else machine._get_trigger
        )
        return run

    @contextmanager
    def _watching(self, agent: Any) -> Iterator[Callable[[], Any]]:
        """Count the transitions that an agent makes; yield what returns its state if there are any.

        The Machine's own answer would not do: a queued one always says that it has made one.
        """
        key, before = id(agent), self._value(agent)
        around = self._made.get(key)
        self._made[key] = made = 0

        def moved() -> Any:
            now = self._value(agent)
            return now if made or now != before else None

        try:
            yield moved
        finally:
            made = self._made.pop(key, 0)
            if around is not None:
                self._made[key] = around + made

    def _value(self, agent: Any) -> Any:
        try:
            return getattr(agent, self._attribute)
        except AttributeError:
            raise AgentError(
                f"chart {self._title!r} cannot drive {type(agent).__name__!r}: it has no "
                f"{self._attribute!r}"
            ) from None

    def tick(self, agent: Any, context: Any = None) -> Any:
        """Let one tick pass, and fire the time-out if the agent has dwelt too long."""
        state = value_text(self._value(agent))
        ticks = self._ticks_of(agent)
        if ticks is None:
            return None
        ticks = count_tick(agent, ticks)
        limit = self._state_limits.get(state) or count_of(agent, "timeout_threshold")
        if limit is None and not self._state_limits:
            limit = DEFAULT_TIMEOUT
        event = self._machine.events.get(self._timeout_trigger)
        if limit is None or ticks <= limit or event is None:
            return None
        if not is_hierarchical(self._machine):
            source = self._machine.get_model_state(agent)
            if not event.transitions.get(source.name):
                return None
        return self.fire(agent, self._timeout_trigger, *(() if context is None else (context,)))

    # Looking

    def _enabled(self, agent: Any, trigger: str, context: Any) -> Iterator[Choice]:
        self._require_flat("enabled transitions", also_async=True)
        machine = self._machine
        source = machine.get_model_state(agent)
        event = machine.events.get(trigger)
        for arc in () if event is None else event.transitions.get(source.name, ()):
            args = () if context is None else (context,)
            data = EventData(source, event, machine, agent, args, {})
            data.transition = arc
            if all(each.check(data) for each in arc.conditions):
                target = source.value if arc.dest is None else machine.states[arc.dest].value
                yield Choice(target, arc, self._edge(source.value, target, trigger))

    def enabled_triggers(self, agent: Any, context: Any = None) -> list[str]:
        """Return the events that would cause a transition now."""
        return [each for each in self._machine.events if any(self._enabled(agent, each, context))]

    def is_in(self, agent: Any, state: Any) -> bool:
        """Return whether an agent is in a state; of a `HierarchicalMachine`, exactly in it."""
        now = self._value(agent)
        return bool(now == state or value_text(now) == value_text(state))

    def active(self, state: Any) -> tuple[Any, ...]:
        """Return the state."""
        return (state,)

    def valid_targets(self, state: Any, trigger: str) -> list[Any]:
        """Return the distinct targets of a state and an event, conditions ignored."""
        return distinct(
            item.source if item.target is None else item.target
            for item in self._leaving(state)
            if item.trigger == trigger
        )

    def valid_triggers(self, state: Any) -> list[str]:
        """Return the events that a state reacts to, conditions ignored."""
        return distinct(item.trigger for item in self._leaving(state))

    def _leaving(self, state: Any) -> Iterator[Any]:
        source = self.state_of(value_text(state))
        return (item for item in self._definition.transitions if item.source == source)

    def state_of(self, text: str) -> Any:
        """Return the member of the chart's states that a text stands for."""
        states = {value_text(state): state for state in self._definition.states}
        if text not in states:
            raise self._unknown_state(f"state {text!r}")
        return states[text]

    def _require_flat(self, what: str, *, also_async: bool = False) -> None:
        if is_hierarchical(self._machine) or (also_async and is_async(self._machine)):
            kind = type(self._machine).__name__
            raise DefinitionError(
                f"chart {self._title!r} runs a {kind}, which has no {what}: history, ticks and the "
                "log work; for the rest, write it as a Statechart"
            )


def _refused(name: str, instead: str) -> Any:
    """Return a method that an adopted Machine has no use for."""

    def refuse(self: AdoptedEngine, *_: Any, **__: Any) -> Any:
        raise DefinitionError(
            f"chart {self._title!r} runs an application's own Machine, which has no {name}: "
            f"{instead}"
        )

    return refuse


for _name, _instead in {
    "begin": "its models are in the initial state already",
    "bound": "build the Machine anew for each run",
    "extended": "use the Machine's own add_states and add_transition",
    "fire_to": "fire the event",
}.items():
    setattr(AdoptedEngine, _name, _refused(_name, _instead))


def _require_free(machine: Any) -> None:
    """Refuse what cannot be adopted."""
    if not isinstance(machine, Machine):
        kind = type(machine).__name__
        raise DefinitionError(f"from_machine takes a Machine of transitions, got {kind}")
    hooks = machine.before_state_change, machine.after_state_change, machine.finalize_event
    is_taken = any(isinstance(each, _Callback) for each in chain(*hooks))
    if is_taken or isinstance(machine, ChartMachine):
        raise DefinitionError("the Machine belongs to a chart already: use that one")


def _state_of(machine: Machine, state: Any) -> Any:
    try:
        return machine.get_state(state)
    except ValueError as error:
        raise DefinitionError(f"timeouts: {error}") from None


def _recorded(value: Any) -> Any:
    """Return a state's value as records have it: that of parallel states as text."""
    return value_text(value) if isinstance(value, (list, tuple)) else value


def _arcs_from(event: Any, *, note: bool = False) -> list[Any]:
    """Return the transitions that an event has tried."""
    if note and event.transition is not None:
        name = event.transition.source
    else:
        name = getattr(event.state, "name", None)
    return list(getattr(event.event, "transitions", {}).get(name, ()))

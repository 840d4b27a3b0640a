"""The engine of a chart: which transition an event makes for an agent.

`Engine.fire` is the fast way through the chart's Machine: it reads the Machine's own transitions,
and leaves to the Machine whatever it does not know. A chart with composites has `Steps` instead of
a Machine. `Statechart` inherits the engine, since as a member it would cost every fire one more
call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from types import CoroutineType
from typing import Any

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart._engine import machine as adapter
from prism.statechart._engine import writing
from prism.statechart._engine.machine import (
    ActionCallback,
    EventData,
    GuardCondition,
    Machine,
    MachineError,
    State,
)
from prism.statechart._engine.making import Making
from prism.statechart.reporting import Reporter
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMEOUT, Edge, StateT
from prism.telemetry import instruments
from prism.telemetry.events import GUARD_FAILED
from prism.telemetry.instruments import engine_hooks
from prism.telemetry.loggers import somebody_listens, somebody_wants_details


class _Events(dict[str, Any]):
    """What the Machine does in one state, by event, read when it is first needed."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        self._read = read

    def __missing__(self, trigger: str) -> Any:
        row = self[trigger] = self._read(trigger)
        return row


class Engine(Making[StateT]):
    """Chooses the transitions of one definition.

    Args:
        definition: What to run.
        reporter: Where to report.
        clock: Returns the current time in seconds since the epoch.
        machine: An application's own Machine; by default, one is made for a flat chart.
    """

    # the event of time-outs, and the limit where nobody sets one
    _timeout_trigger = TIMEOUT
    _usual_limit: int | None = None
    # transitions that the Machine has made
    _made = 0

    def __init__(
        self,
        definition: Definition[StateT],
        reporter: Reporter,
        clock: Callable[[], float],
        machine: Machine | None = None,
    ) -> None:
        super().__init__(definition, reporter, clock)
        # events of the Machine that are under way, by the address of the agent
        self._events: dict[int, list[EventData]] = {}
        self._is_slow = True
        # the Machine as a definition, and what it was then
        self._described, self._built = definition, None
        if machine is not None or not definition.is_nested:
            self._machine = adapter.build_machine(definition) if machine is None else machine
            self._built = adapter.snapshot_of(self._machine)
            # an event is run, and a state is set, by methods of this chart
            self._machine._process, self._machine.set_state = self._process, self._change_state
            if isinstance(self._machine, adapter.ChartMachine):
                self._machine.chart = self
        else:
            # loaded only where there are composites
            from prism.statechart._engine.running import Steps

            self._steps = Steps(self, definition.hierarchy)
            self._rows = self._steps.rows
        if engine_hooks:
            instruments.observe("chart_built", instruments.ChartBuilt, definition)

    @property
    def _as_it_runs(self) -> Definition[StateT]:
        """The definition; after changes of the Machine, the Machine as a definition."""
        built = None if self._machine is None else adapter.snapshot_of(self._machine)
        if built != self._built:
            rest = self._definition.arguments
            self._described, self._built = adapter.definition_of(self._machine, rest), built
        return self._described

    @property
    def machine(self) -> Machine:
        """The ``transitions`` Machine that this chart runs on.

        Its conditions, callbacks, transitions and states are what runs: whatever is added to it
        counts from the next event on. Agents are never registered as its models. Whoever fires
        ``chart.machine.events[trigger].trigger(agent, context)`` gets the same transition, record
        and log as by `fire`.

        Raises:
            DefinitionError: If the chart has composites, which a Machine does not run as SCXML
                does.
        """
        if self._machine is None:
            raise DefinitionError(
                f"chart {self._definition.name!r} has no Machine, because it has composites, "
                "timers or eventless transitions, which a Machine does not run as SCXML does: use "
                "chart.fire"
            )
        machine: Machine = self._machine
        return machine

    # What is observed of the Machine

    def _machine_changed(self, has_hooks: bool) -> None:
        """Forget what was read of the Machine."""
        self._is_slow = has_hooks
        self._rows = {
            value: _Events(partial(self._read_events, source))
            for value, source in self._machine.values.items()
        }

    def _read_events(self, source: State, trigger: str) -> Any:
        """Read the transitions of a state and an event, as `fire` needs them."""
        machine, steps = self._machine, []
        arcs = machine.events[trigger].transitions.get(source.name, [])
        for arc in arcs:
            target = source if arc.dest is None else machine.get_state(arc.dest)
            steps.append((arc, arc.dest, target, self._edge(source.value, target.value, trigger)))
        return arcs, [*arcs], steps, source, source.value

    def _process(self, run: Any) -> Any:
        """Run an event of the Machine, or queue it behind one that is under way."""
        data = run.args[0]
        if self._is_queued(data.model, data.event.name, partial(self._process, run)):
            return None
        # before any callback runs, since it refuses classes that the chart cannot drive
        self._writer_of(data.model)
        return self._complete(data.model, partial(self._run_event, data, run))

    def _run_event(self, data: EventData, run: Callable[[], Any]) -> Any:
        events = self._events.setdefault(id(data.model), [])
        events.append(data)
        try:
            return run()
        finally:
            events.pop()
            if not events:
                del self._events[id(data.model)]
            self._end_event(data)

    def _end_event(self, data: EventData) -> None:
        """Report the result of an event."""
        if data.result:
            self._made += 1
            self._observe("transition", instruments.TransitionDetails, data, data.transition)
        elif data.state is not None and (data.error is None or type(data.error) is MachineError):
            self._refuse(data.model, data.event.name, adapter.context_of(data))

    def _change_state(self, state: Any, model: Any = None) -> None:
        """Write what a transition leaves behind, when the Machine sets the state of an agent."""
        target = state if isinstance(state, State) else self._machine.get_state(state)
        for agent in self._machine.models if model is None else [model]:
            events = self._events.get(id(agent))
            if not events:
                writing.set_state(agent, target.value)
                continue
            edge = self._edge_of(events[-1].transition, events[-1].event.name)
            self._commit(agent, edge, self._writer_of(agent), adapter.context_of(events[-1]))

    def _number_of(self, arc: Any) -> int | None:
        """Return the place of a transition in the definition; None if the application added it."""
        return getattr(arc, "number", None)

    def _observe(self, name: str, kind: Any, data: EventData, arc: Any, *more: Any) -> None:
        """Tell who observes charts about a transition of the definition, or its guard."""
        number = self._number_of(arc) if engine_hooks else None
        if number is not None:
            details = self.definition, number, data.model, adapter.context_of(data), *more
            instruments.observe(name, kind, *details)

    def _report_guard(self, verdict: adapter.Verdict, data: EventData) -> None:
        """Tell who observes guards about one, and report one that raised."""
        self._observe("guard", instruments.GuardEvaluated, data, data.transition, *verdict)
        if verdict.error is not None:
            edge = self._edge_of(data.transition, data.event.name)
            self._fail(GUARD_FAILED, verdict.error, data.model, edge)

    # Firing

    def fire(  # noqa: C901 - written out for speed, as it says below
        self, agent: Any, trigger: str, context: Any = None, target: StateT | None = None
    ) -> StateT | None:
        """Make the first transition that the event enables.

        The action of the first whose guard passes runs, then the transition commits: state,
        ``ticks_in_state = 0``, one history entry, one log event. A self-transition runs its action
        and restarts the state's time. A fire on the same agent from inside its action runs right
        after this transition commits.

        An event that the state does not react to does nothing, unless the Machine says otherwise
        (``ignore_invalid_triggers``), as that of a strict chart does. One that the chart does not
        have is an error if the chart is strict, else a warning, once for each. Every event that
        made no transition is logged at debug level, with the guards that refused it.

        An agent belongs to one thread at a time. A fire while an action of the agent runs in
        another thread is an error.

        Args:
            agent: Anything with a writable ``state``.
            trigger: Name of the event.
            context: What the event is about; passed to guards and actions, recorded by its
                identifying fields.
            target: Make only a transition that leads to this state.

        Returns:
            The agent's state once all that the event set off has run; None if nothing applied or it
            was queued.

        Raises:
            AgentError: (a TypeError) if the object has no ``state``, its class declares another
                enum as ``state_type`` than the chart's, or another thread fires on it.
            MachineError: (of transitions) if the state does not react to the event and the chart is
                strict.
            UnknownStateError: If the agent is in a state that this chart does not define. A member
                of another enum is one, whatever its text; plain text is taken for the member.
            UnknownTriggerError: If the chart is strict and does not have the trigger.
            RunawayError: If the agent's actions go on firing without end.
        """
        if self._firing and self._is_queued(
            agent, trigger, partial(self.fire, agent, trigger, context, target)
        ):
            return None
        if engine_hooks or self._is_slow:
            return self._through(agent, trigger, context, target)

        # from here on this is `_through`, written out for speed: the Machine's own way takes ten
        # times as long. Each callback list is read anew, which costs less than to notice changes.
        try:
            state = agent.state
            arcs, listed, steps, source, member = self._rows[state][trigger]
            write = self._quiet_writers[type(agent)]
        except (AttributeError, KeyError, TypeError, ValueError):
            # not `_through` from here: errors of guards would have this one as their context
            arcs, listed = (), None
        # a state may be text, or, by mistake, another enum's member with the text of a state
        if arcs != listed or member is not state or source.on_exit:
            return self._through(agent, trigger, context, target)

        for arc, dest, end, edge in steps:
            if target is not None and edge.to_state != target:
                continue
            if arc.prepare or arc.after or end.on_enter or arc.dest is not dest:
                return self._through(agent, trigger, context, target, arcs[arcs.index(arc) :])

            conditions = arc.conditions
            if not conditions:
                break
            condition = conditions[0]
            if condition.__class__ is not GuardCondition or len(conditions) > 1:
                return self._through(agent, trigger, context, target, arcs[arcs.index(arc) :])
            try:
                passes = condition.func(agent, context)  # type: ignore[operator]
                if passes:
                    if passes.__class__ is CoroutineType:
                        adapter.refuse_coroutine(passes, "a guard")
                    break
            except Exception as error:
                self._fail(GUARD_FAILED, error, agent, edge)
        else:
            if not (arcs or target is not None or self._ignores(source)):
                return self._through(agent, trigger, context)
            if self._has_logger or somebody_wants_details():
                self._refuse(agent, trigger, context)
            return None

        # code of the application's may fire in turn, which `_act` queues, or have moved the agent
        if arc.before or write is None or agent.state is not edge.leaves:
            return self._act(agent, arc, edge, write, context)
        dwell = write(agent, edge, self._clock(), context)
        if self._has_logger or somebody_listens():
            self._reporter.moved(agent, edge, dwell, context)
        return edge.to_state  # type: ignore[no-any-return]

    def _ignores(self, source: State) -> bool:
        """Return whether an event that a state does not react to does nothing."""
        ignores = source.ignore_invalid_triggers
        return bool(self._machine.ignore_invalid_triggers if ignores is None else ignores)

    def _through(
        self, agent: Any, trigger: str, context: Any, target: Any = None, rest: Any = None
    ) -> StateT | None:
        """Fire through the Machine itself.

        Args:
            agent: The agent.
            trigger: Name of the event.
            context: What it is about.
            target: Where the transition must lead; None for anywhere.
            rest: The transitions that are still to be tried; None for all of the event's.
        """
        made: StateT | None
        if self._steps is not None:
            made = self._steps.fire(agent, trigger, context, target)
            return made

        state = self._require_known_state(agent)
        self._require_trigger(trigger)
        machine = self._machine
        event = machine.events.get(trigger) if isinstance(trigger, str) else None
        if event is None:
            self._refuse(agent, trigger if isinstance(trigger, str) else repr(trigger), context)
            return None
        if rest is None:
            # they may have changed since they were read
            self._rows[state].pop(trigger, None)
        if not target is rest is None:
            arcs = self._arcs(agent, trigger) if rest is None else rest
            if target is not None:
                arcs = [arc for arc in arcs if self._edge_of(arc, trigger).to_state == target]
            event = copy(event)
            event.transitions = {machine.get_model_state(agent).name: arcs}

        data = EventData(None, event, machine, agent, (context,), {})
        if not machine._process(partial(event._trigger, data)):
            return None
        made = self._member(agent.state)
        return made

    def _act(
        self, agent: Any, arc: Any, edge: Edge, quiet: writing.Writer | None, context: Any
    ) -> StateT | None:
        """Make a transition during which code of the application's may run."""
        if any(each.__class__ is not ActionCallback for each in arc.before):
            passed = copy(arc)
            passed.conditions = []
            return self._through(agent, edge.trigger, context, rest=[passed])

        # looked up before the action runs, since it refuses classes that the chart cannot drive
        write = quiet or self._writer_of(agent)

        def make() -> None:
            for each in arc.before:
                self._run_action(each.func, agent, edge, context)
            # an internal transition leaves no state
            if arc.dest is not None:
                self._commit(agent, edge, write, context)

        self._complete(agent, make)
        made: StateT = agent.state
        return made

    def _edge_of(self, arc: Any, trigger: str) -> Edge:
        states = self._machine.states
        source = states[arc.source].value
        return self._edge(source, source if arc.dest is None else states[arc.dest].value, trigger)

    def _refuse(self, agent: Any, trigger: str, context: Any) -> None:
        """Log an event that made no transition, if anybody listens to details."""
        arcs = self._arcs(agent, trigger)
        guards = (adapter.callback_name(each.func) for arc in arcs for each in arc.conditions)
        state = state_text(self._value(agent))
        self._reporter.refused(agent, state, trigger, guards, context)

    def _arcs(self, agent: Any, trigger: Any) -> Sequence[Any]:
        """Return the Machine's transitions of an event from an agent's state."""
        source = self._machine.get_model_state(agent).name
        event = self._machine.events.get(trigger) if isinstance(trigger, str) else None
        arcs: Sequence[Any] = () if event is None else event.transitions.get(source, ())
        return arcs

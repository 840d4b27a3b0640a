"""The engine of a chart: one event, one agent.

`Engine.fire` is the fast way through the chart's Machine: it reads the Machine's own transitions,
and leaves to the Machine whatever it does not know. A chart with composites has `Steps` instead of
a Machine. `Statechart` inherits the engine, since as a member it would cost every fire one more
call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from logging import DEBUG
from operator import attrgetter
from types import CoroutineType, NoneType
from typing import Any

from prism import errors
from prism.statechart._definition import Definition
from prism.statechart._engine import machine as adapter
from prism.statechart._engine import writing
from prism.statechart._engine.completion import RunToCompletion
from prism.statechart._engine.machine import ActionCallback, EventData, Machine
from prism.statechart._engine.running import Steps
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMEOUT, Edge, StateT, read_only, shared_edge
from prism.telemetry import instruments
from prism.telemetry.events import GUARD_FAILED
from prism.telemetry.instruments import installed
from prism.telemetry.loggers import EventLogger, somebody_listens


class Engine(RunToCompletion[StateT]):
    """Makes the transitions of one definition; everything that changes lives in the agents.

    Args:
        definition: What to run.
        logger: Where to report; None for structlog's own, once it is configured.
        clock: Returns the current time in seconds since the epoch.

    Attributes:
        name: Name in logs and messages.
        schedule: What makes the steps and ticks of a chart with composites, timers or rates.
    """

    # None for a flat chart, which has a Machine
    schedule: Steps | None = None
    # the event of time-outs
    _timeout_trigger = TIMEOUT

    def __init__(
        self, definition: Definition[StateT], logger: EventLogger | None, clock: Callable[[], Any]
    ) -> None:
        super().__init__(definition, logger, clock)
        # the events of the Machine, and those that are under way
        self._events: dict[str, Any] = {}
        self._under_way: list[EventData] = []
        # the Machine as a definition, and what it was then
        self._described, self._built = definition, None
        self._is_slow = True
        if self._machine is not None or not definition.is_nested:
            self._machine = self._machine or adapter.build_machine(definition)
            self._built = adapter.snapshot_of(self._machine)
            # an event is run, and a state is set, by methods of this chart
            self._machine._process, self._machine.set_state = self._process, self._change_state
            if isinstance(self._machine, adapter.ChartMachine):
                self._machine.chart = self
        else:
            self.schedule = Steps(self, definition.hierarchy)
            self._rows = self.schedule.rows
        instruments.observe("chart_built", definition)

    definition: Definition[StateT] = read_only(attrgetter("_definition"))
    """The definition of the chart."""

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
            problem = "no Machine, as it has composites, timers or eventless transitions: use fire"
            raise errors.DefinitionError(f"chart {self.name!r} has {problem}")
        return self._machine

    # What is observed of the Machine

    def _read_machine(self, has_hooks: bool, events: Any, states: Any) -> None:
        """Take over what `fire` looks at."""
        self._is_slow, self._events, self._rows = has_hooks, events, states

    def _process(self, run: Any) -> Any:
        """Run an event of the Machine, or queue it behind one that is under way."""
        data = run.args[0]
        if self._is_queued(lambda *_: self._process(run), data.model, data.event.name):
            return None
        self._require_writer(data.model)
        return self._complete(data.model, partial(self._run_event, data, run))

    def _run_event(self, data: EventData, run: Callable[[], Any]) -> Any:
        self._under_way.append(data)
        try:
            return run()
        finally:
            self._under_way.remove(data)
            self._end_event(data)

    def _end_event(self, data: EventData) -> None:
        """Report the result of an event."""
        if adapter.is_made(data):
            self._observe("transition", data, data.transition)
        elif data.state is not None and type(data.error) in (NoneType, adapter.MachineError):
            target = getattr(data.event, "target", None)
            self._refuse(data.model, data.state, data.event.name, adapter.context_of(data), target)

    def _change_state(self, state: Any, model: Any = None) -> None:
        """Write what a transition leaves behind, when the Machine sets the state of an agent."""
        target = state if isinstance(state, adapter.State) else self._machine.get_state(state)
        if (event := self._event_of(model)) is None:
            writing.set_state(model, target.value)
            return
        event.has_moved = True
        edge = self._edge_of(event.transition, event.event.name)
        self._commit(model, edge, adapter.context_of(event))

    def _event_of(self, model: Any) -> Any:
        """Return the event of the Machine that is under way for an agent, the innermost one."""
        return next((each for each in reversed(self._under_way) if each.model is model), None)

    def _number_of(self, arc: Any) -> int | None:
        """Return the place of a transition in the definition; None if the application added it."""
        return getattr(arc, "number", None)

    def _observe(self, hook: str, data: EventData, arc: Any, *more: Any) -> None:
        """Tell who observes charts about a transition of the definition, or its guard."""
        if installed and (number := self._number_of(arc)) is not None:
            about = self.definition, number, data.model, adapter.context_of(data)
            instruments.observe(hook, *about, *more)

    def _report_guard(self, verdict: adapter.Verdict, data: EventData) -> None:
        """Tell who observes guards about one, and report one that raised."""
        self._observe("guard", data, data.transition, verdict.error or verdict.outcome)
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
            AgentError: (a TypeError) if another thread fires on it, or its own ``transition_to``
                does not take or set the state.
            MachineError: (of transitions) if the state does not react to the event and the chart is
                strict.
            UnknownStateError: If the agent is in a state that this chart does not define. A member
                of another enum is one, whatever its text; plain text is taken for the member.
            UnknownTriggerError: If the chart is strict and does not have the trigger.
            RunawayError: If the agent's actions go on firing without end.
        """
        if self._firing and self._is_queued(self.fire, agent, trigger, context, target):
            return None
        if installed or self._is_slow:
            return self._through(agent, trigger, context, target)

        # from here on this is `_through`, written out for speed: the Machine's own way takes ten
        # times as long. Each callback list is read anew, which costs less than to notice changes.
        try:
            state = agent.state
            event = self._events[trigger]
            name, listed, steps, source, member = event.rows[state]
            arcs = event.transitions.get(name)
            write, runs_code = self._writers[type(agent)]
        except (AttributeError, KeyError, TypeError, ValueError):
            # not `_through` from here: errors of guards would have this one as their context
            arcs, listed = (), None
        # an agent may have its state as text, or, by mistake, another enum's member with that text
        if arcs != listed or source.on_exit or (member is not state and state.__class__ is not str):
            if self._read(agent, trigger):
                return Engine.fire(self, agent, trigger, context, target)
            return self._through(agent, trigger, context, target)

        for arc, dest, end, edge, guards in steps:
            if target is not None and edge.to_state != target:
                continue
            conditions, before = arc.conditions, arc.before
            if (
                (arc.prepare or arc.after or end.on_enter or arc.dest is not dest)
                or (before and (before[0].__class__ is not ActionCallback or len(before) > 1))
                or (conditions and conditions != guards)
            ):
                return self._through(agent, trigger, context, target, arcs[arcs.index(arc) :])
            if not conditions:
                break
            # a function in an attribute is called faster by a name of its own; so is the clock
            guard: Any = conditions[0].func
            try:
                passes = guard(agent, context)
                if passes:
                    if passes.__class__ is CoroutineType:
                        adapter.refuse_coroutine(passes, "a guard")
                    break
            except Exception as error:
                self._fail(GUARD_FAILED, error, agent, edge)
        else:
            if not (arcs or target is not None or self._ignores(source)):
                return self._through(agent, trigger, context)
            if self._has_logger or somebody_listens(DEBUG):
                self._refuse(agent, source, trigger, context, target)
            return None

        # code of the application's may fire in turn, which waits, or have moved the agent
        if before or runs_code or agent.state is not state:
            self._complete(agent, partial(self._make, agent, arc, edge, context))
            return self._member(agent.state)
        if edge.leaves is None:
            # without this, agents of a world that decide to stay took a sixth longer
            if dest is not None:
                writing.restart_time(agent)
            return edge.to_state
        clock = self._clock
        dwell = write(agent, edge, clock(), context)
        if self._has_logger or somebody_listens():
            self._reporter.moved(agent, edge, dwell, context)
        return edge.to_state

    def _read(self, agent: Any, trigger: Any) -> bool:
        """Read what `fire` needs; return whether it is anything new.

        So the first agent goes the same way as all others, even if a guard fires.
        """
        state = self._require_state(agent)
        is_first = type(agent) not in self._writers
        self._require_writer(agent)
        event = self._events.get(trigger) if isinstance(trigger, str) else None
        return (isinstance(event, adapter.ChartEvent) and event.read(state)) or is_first

    def _ignores(self, source: adapter.State) -> bool:
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
        state = state_text(self._require_state(agent))
        if not self._has_trigger(trigger):
            text = trigger if isinstance(trigger, str) else repr(trigger)
            self._reporter.refused(agent, state, text, (), context)
            return None
        if self.schedule is not None:
            return self.schedule.fire(agent, trigger, context, target)

        machine, source = self._machine, self._machine.get_model_state(agent)
        event = machine.events.get(trigger) or machine.event_cls(trigger, machine)
        if not target is rest is None:
            arcs = self._arcs(source, trigger, target) if rest is None else rest
            event = copy(event)
            event.transitions, event.target = {source.name: arcs}, target

        data = EventData(None, event, machine, agent, (context,), {})
        machine._process(partial(event._trigger, data))
        return self._member(agent.state) if adapter.is_made(data) else None

    def _make(self, agent: Any, arc: Any, edge: Edge, context: Any) -> None:
        """Make a transition during which code of the application's may run."""
        for each in arc.before:
            self._run_action(each.func, agent, edge, context)
        # an internal transition leaves no state
        if arc.dest is not None:
            self._commit(agent, edge, context)

    def _edge_of(self, arc: Any, trigger: str) -> Edge:
        states = self._machine.states
        source = states[arc.source].value
        return shared_edge(source, source if arc.dest is None else states[arc.dest].value, trigger)

    def _refuse(self, agent: Any, source: Any, trigger: str, context: Any, target: Any) -> None:
        """Log an event that made no transition, if anybody listens to details."""
        arcs = self._arcs(source, trigger, target)
        guards = (adapter.callback_name(each.func) for arc in arcs for each in arc.conditions)
        self._reporter.refused(agent, state_text(source.value), trigger, guards, context)

    def _arcs(self, source: adapter.State, trigger: str, target: Any = None) -> Sequence[Any]:
        """Return the Machine's transitions of an event from a state, of any or of one target."""
        event = self._machine.events.get(trigger)
        arcs: Sequence[Any] = () if event is None else event.transitions.get(source.name, ())
        if target is None:
            return arcs
        return [arc for arc in arcs if self._edge_of(arc, trigger).to_state == target]

"""The engine of a chart: one event, one agent.

`Engine.fire` is the fast way through the chart's Machine: it reads the Machine's own transitions,
and leaves to the Machine whatever it does not know. A chart with composites has `Steps` instead of
a Machine. `Statechart` inherits the engine, since as a member it would cost every fire one more
call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from logging import DEBUG
from operator import attrgetter
from threading import get_ident
from types import CoroutineType
from typing import Any, Generic

from prism import errors
from prism.statechart._definition import Definition
from prism.statechart._engine import machine as adapter
from prism.statechart._engine import writing
from prism.statechart._engine.machine import ActionCallback, EventData, GuardCondition, Machine
from prism.statechart._engine.running import Steps
from prism.statechart._engine.writing import write_by_method, write_plain
from prism.statechart.names import agent_name, unknown_trigger_problem
from prism.statechart.reporting import Reporter
from prism.statechart.states import SEPARATOR, state_text
from prism.statechart.transitions import TIMEOUT, Edge, StateT, read_only, shared_edge
from prism.telemetry import instruments
from prism.telemetry.events import ACTION_FAILED, GUARD_FAILED
from prism.telemetry.instruments import engine_hooks
from prism.telemetry.loggers import EventLogger, somebody_listens, warn_standard

MOST_STEPS = 1000
"""Fires, and steps without an event, that may follow one fire before the engine stops them."""

_MOST_WARNED = 100
"""Unknown triggers of which a chart warns; where events are data there is no end of them."""


@dataclass(slots=True)
class Run:
    """A transition that is under way, and the fires that wait for its end.

    Args:
        thread: The thread that makes it.
        queue: The fires that wait, each with its trigger.
        is_between: Whether one of the fires that waited is next, so that it need not wait.
        steps: How many fires and steps have followed.
        errors: Those of a strict chart that keep nothing else from being made; None while an error
            is raised at once.
    """

    thread: int
    queue: deque[tuple[object, Callable[[], object]]] = field(default_factory=deque)
    is_between: bool = False
    steps: int = 0
    errors: list[Exception] | None = None


class _Events(dict[str, Any]):
    """What a Machine does in one state, by event, as `fire` needs it; read when first needed."""

    def __init__(self, machine: Machine, source: adapter.State) -> None:
        self._machine, self._source = machine, source
        self.state: Any = source.value
        self.around: tuple[Any, ...] = (source.value,)

    def __missing__(self, trigger: str) -> Any:
        machine, source, steps = self._machine, self._source, []
        arcs: list[Any] = machine.events[trigger].transitions.get(source.name, [])
        for arc in arcs:
            target = source if arc.dest is None else machine.get_state(arc.dest)
            steps.append((arc, arc.dest, target, shared_edge(source.value, target.value, trigger)))
        row = arcs, [*arcs], steps, source, source.value
        # the first transition would come in another list
        return self.setdefault(trigger, row) if arcs else row


class Engine(Generic[StateT]):
    """Makes the transitions of one definition; everything that changes lives in the agents.

    Args:
        definition: What to run.
        logger: Where to report; None for structlog's own, once it is configured.
        clock: Returns the current time in seconds since the epoch.
        machine: An application's own Machine; by default, one is made for a flat chart.

    Attributes:
        name: Name in logs and messages.
        schedule: What makes the steps and ticks of a chart with composites, timers or rates.
    """

    # what runs a flat chart, and what runs one with composites; None for the other kind
    _machine: Any = None
    schedule: Steps | None = None
    # by the states of agents
    _rows: Any
    # where agents have their state
    _attribute = "state"
    # the event of time-outs, and the limit where nobody sets one
    _timeout_trigger = TIMEOUT
    _usual_limit: int | None = None
    # transitions that the Machine has made
    _made = 0

    def __init__(
        self,
        definition: Definition[StateT],
        logger: EventLogger | None,
        clock: Callable[[], float],
        machine: Machine | None = None,
    ) -> None:
        self._definition = definition
        self.name: str = definition.name
        self._reporter, self._has_logger = Reporter(self.name, logger), logger is not None
        self._clock = clock
        self._warned_of: set[str] = set()
        # transitions that are under way, by the address of the agent, and events of the Machine
        self._firing: dict[int, Run] = {}
        self._events: list[EventData] = []
        self._writers: dict[type, writing.Writer] = {}
        # the Machine as a definition, and what it was then
        self._described, self._built = definition, None
        self._is_slow = True
        if machine is not None or not definition.is_nested:
            self._machine = adapter.build_machine(definition) if machine is None else machine
            self._built = adapter.snapshot_of(self._machine)
            # an event is run, and a state is set, by methods of this chart
            self._machine._process, self._machine.set_state = self._process, self._change_state
            if isinstance(self._machine, adapter.ChartMachine):
                self._machine.chart = self
        else:
            self.schedule = Steps(self, definition.hierarchy)
            self._rows = self.schedule.rows
        instruments.observe("chart_built", instruments.ChartBuilt, definition)

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
            raise errors.DefinitionError(
                f"chart {self._definition.name!r} has no Machine, because it has composites, "
                "timers or eventless transitions, which a Machine does not run as SCXML does: use "
                "chart.fire"
            )
        machine: Machine = self._machine
        return machine

    # Its agents

    @property
    def _triggers(self) -> Collection[str]:
        """The events that the chart knows, in definition order."""
        machine = self._machine
        return self._definition.hierarchy.triggers if machine is None else machine.events

    def _has_trigger(self, trigger: Any) -> bool:
        """Return whether any transition has a trigger; refuse one that none has, or warn once.

        A trigger that the Machine has lost is no mistake: no state reacts to it.
        """
        is_written = self._definition.hierarchy.reacts_to
        if isinstance(trigger, str) and (is_written(trigger) or trigger in self._triggers):
            return True
        problem = f"chart {self.name!r}: {unknown_trigger_problem(trigger, self._triggers)}"
        if self._definition.strict:
            raise errors.UnknownTriggerError(problem)
        if problem not in self._warned_of and len(self._warned_of) < _MOST_WARNED:
            self._warned_of.add(problem)
            warn_standard(problem)
        return False

    def _value(self, agent: Any) -> Any:
        """Return an agent's state, as the agent has it."""
        return getattr(agent, self._attribute)

    def can_be_in(self, state: object) -> bool:
        """Return whether an agent of this chart can be in a state, which may be a text."""
        return state in self._rows

    def _require_state(self, agent: Any) -> Any:
        state = self._value(agent)
        # a member of another enum is found, too, if it has the text of a state
        is_foreign = isinstance(state, Enum) and type(state) is not self._definition.state_type
        if is_foreign or not self.can_be_in(state):
            raise self._unknown_state(f"agent {agent_name(agent)!r} is in state {state!r}, which")
        return state

    def _unknown_state(self, subject: str) -> errors.UnknownStateError:
        listing = ", ".join(map(state_text, self._definition.states))
        if self._definition.hierarchy.has_regions:
            listing += f", or a configuration with one leaf per region, joined by {SEPARATOR!r}"
        return errors.UnknownStateError(
            f"{subject} is not in chart {self.name!r}: use a member of chart.state_type ({listing})"
        )

    # Where agents are

    def state_of(self, text: str) -> StateT:
        """Return the state of an agent that a text stands for: a member, or a `Configuration`.

        Args:
            text: The text of a leaf, or of several that are active together, ``"feed+tired"``.

        Raises:
            UnknownStateError: If no agent of this chart can be in it.
        """
        if not self.can_be_in(text):
            raise self._unknown_state(f"state {text!r}")
        state: StateT = self._member(text)
        return state

    def _member(self, state: Any) -> Any:
        """Return a state as the chart has it, for which an agent may have its text."""
        is_text = type(state) is str and self.can_be_in(state)
        return self._rows[state].state if is_text else state

    def is_in(self, agent: Any, state: StateT) -> bool:
        """Return whether a state is active: the agent's own, or one around it."""
        return state_text(state) in map(state_text, self.active(self._require_state(agent)))

    def active(self, state: Any) -> tuple[StateT, ...]:
        """Return an agent's state with all states around it, outermost first."""
        active: tuple[StateT, ...] = self._rows[self.state_of(state)].around
        return active

    # One after the other

    def _is_queued(self, agent: Any, trigger: Any, fire: Callable[[], object]) -> bool:
        """Let a fire wait, if a transition of its agent is under way."""
        run = self._firing.get(id(agent))
        if run is None or run.is_between:
            return False
        if run.thread != get_ident():
            raise errors.AgentError(
                f"chart {self.name!r}: another thread is making a transition of agent "
                f"{agent_name(agent)!r}: an agent belongs to one thread at a time, so fire from "
                "that thread, or use a lock"
            )
        # a mistaken event is reported where it is fired, not where its turn comes
        self._has_trigger(trigger)
        run.queue.append((trigger, fire))
        return True

    def _complete(self, agent: Any, make: Callable[[], Any]) -> Any:
        """Make a transition and everything that its actions queue, until the agent is at rest."""
        key = id(agent)
        if (run := self._firing.get(key)) is not None:
            run.is_between = False
            return make()

        run = self._firing[key] = Run(get_ident())
        try:
            made = make()
            while run.queue:
                trigger, fire = run.queue.popleft()
                self._count_step(agent, run, trigger)
                run.is_between, run.errors = True, None
                fire()
            return made
        finally:
            del self._firing[key]

    def _count_step(self, agent: Any, run: Run, trigger: object) -> None:
        run.steps += 1
        if run.steps > MOST_STEPS:
            raise errors.RunawayError(
                f"chart {self.name!r}: agent {agent_name(agent)!r} has not come to rest within "
                f"{MOST_STEPS} steps; the last was {trigger!r}: make an action stop firing, or "
                "give the eventless transitions a guard that ends them"
            )

    # Actions, and the commit

    def _run_action(self, action: Any, agent: Any, edge: Edge, context: Any) -> None:
        """Run an action, and report one that fails."""
        try:
            result = action(agent, context)
            if result.__class__ is CoroutineType:
                adapter.refuse_coroutine(result, f"the action of {edge.trigger!r}")
        except Exception as error:
            self._fail(ACTION_FAILED, error, agent, edge)

    def _fail(self, event: str, error: Exception, agent: Any, edge: Edge) -> None:
        """Report a guard or an action that raised; a strict chart raises it, now or in the end."""
        run = self._firing.get(id(agent))
        if not self._definition.strict:
            self._reporter.failed(event, error, agent, edge)
        elif run is None or run.errors is None:
            raise error
        else:
            run.errors.append(error)

    def _commit(self, agent: Any, edge: Edge, write: writing.Writer, context: Any) -> None:
        """Write what a transition leaves behind; it starts from where actions put the agent."""
        state = agent.state
        if state != edge.from_state:
            edge = shared_edge(self._member(state), edge.to_state, edge.trigger)
        self._write(agent, edge, write, context)

    def _write(self, agent: Any, edge: Edge, write: writing.Writer, context: Any) -> None:
        """Write a transition and report it; a self-transition restarts the state's time."""
        if edge.leaves is None:
            writing.restart_time(agent)
            return
        dwell = write(agent, edge, self._clock(), context)
        if self._has_logger or somebody_listens():
            self._reporter.moved(agent, edge, dwell, context)

    def _writer_of(self, agent: Any) -> writing.Writer:
        writer = self._writers.get(type(agent))
        if writer is None:
            writer = self._writers[type(agent)] = writing.writer_of(agent)
        return writer

    # What is observed of the Machine

    def _machine_changed(self, has_hooks: bool) -> None:
        """Forget what was read of the Machine."""
        self._is_slow = has_hooks
        sources = self._machine.values.items()
        self._rows = {value: _Events(self._machine, source) for value, source in sources}

    def _process(self, run: Any) -> Any:
        """Run an event of the Machine, or queue it behind one that is under way."""
        data = run.args[0]
        if self._is_queued(data.model, data.event.name, partial(self._process, run)):
            return None
        # before any callback runs, since it refuses classes that the chart cannot drive
        self._writer_of(data.model)
        return self._complete(data.model, partial(self._run_event, data, run))

    def _run_event(self, data: EventData, run: Callable[[], Any]) -> Any:
        self._events.append(data)
        try:
            return run()
        finally:
            self._events.remove(data)
            self._end_event(data)

    def _end_event(self, data: EventData) -> None:
        """Report the result of an event."""
        if data.result:
            self._made += 1
            self._observe("transition", instruments.TransitionDetails, data, data.transition)
        elif data.state is not None and (
            data.error is None or type(data.error) is adapter.MachineError
        ):
            target = getattr(data.event, "target", None)
            self._refuse(data.model, data.state, data.event.name, adapter.context_of(data), target)

    def _change_state(self, state: Any, model: Any = None) -> None:
        """Write what a transition leaves behind, when the Machine sets the state of an agent."""
        target = state if isinstance(state, adapter.State) else self._machine.get_state(state)
        event = self._event_of(model)
        if event is None:
            writing.set_state(model, target.value)
            return
        edge = self._edge_of(event.transition, event.event.name)
        self._commit(model, edge, self._writer_of(model), adapter.context_of(event))

    def _event_of(self, model: Any) -> Any:
        """Return the event of the Machine that is under way for an agent, the innermost one."""
        return next((each for each in reversed(self._events) if each.model is model), None)

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
            AgentError: (a TypeError) if another thread fires on it, or its own ``transition_to``
                does not take or set the state.
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
            write = self._writers[type(agent)]
        except (AttributeError, KeyError, TypeError, ValueError):
            # not `_through` from here: errors of guards would have this one as their context
            arcs, listed = (), None
        # a state may be text, or, by mistake, another enum's member with the text of a state
        if arcs != listed or member is not state or source.on_exit:
            if type(agent) not in self._writers:
                # the first agent of a class goes the same way as all others, even if a guard fires
                self._require_state(agent)
                self._writer_of(agent)
                return Engine.fire(self, agent, trigger, context, target)
            return self._through(agent, trigger, context, target)

        for arc, dest, end, edge in steps:
            if target is not None and edge.to_state != target:
                continue
            conditions, before = arc.conditions, arc.before
            if (
                (arc.prepare or arc.after or end.on_enter or arc.dest is not dest)
                or (before and (before[0].__class__ is not ActionCallback or len(before) > 1))
                or (conditions and conditions[0].__class__ is not GuardCondition)
                or len(conditions) > 1
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

        # code of the application's may fire in turn, which `_act` queues, or have moved the agent
        if before or write is write_plain or write is write_by_method or agent.state is not state:
            return self._act(agent, arc, edge, write, context)
        if edge.leaves is None:
            # without this, agents of a world that decide to stay took a sixth longer
            if dest is not None:
                writing.restart_time(agent)
            return edge.to_state  # type: ignore[no-any-return]
        clock = self._clock
        dwell = write(agent, edge, clock(), context)
        if self._has_logger or somebody_listens():
            self._reporter.moved(agent, edge, dwell, context)
        return edge.to_state  # type: ignore[no-any-return]

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
        made: StateT | None
        if self.schedule is not None:
            made = self.schedule.fire(agent, trigger, context, target)
            return made

        state, machine = self._require_state(agent), self._machine
        source = machine.get_model_state(agent)
        if not self._has_trigger(trigger):
            text = trigger if isinstance(trigger, str) else repr(trigger)
            self._refuse(agent, source, text, context)
            return None
        event = machine.events.get(trigger) or machine.event_cls(trigger, machine)
        if rest is None:
            # they may have changed since they were read
            self._rows[state].pop(trigger, None)
        if not target is rest is None:
            arcs = self._arcs(source, trigger, target) if rest is None else rest
            event = copy(event)
            event.transitions, event.target = {source.name: arcs}, target

        data = EventData(None, event, machine, agent, (context,), {})
        if not machine._process(partial(event._trigger, data)):
            return None
        made = self._member(agent.state)
        return made

    def _act(
        self, agent: Any, arc: Any, edge: Edge, write: writing.Writer, context: Any
    ) -> StateT | None:
        """Make a transition during which code of the application's may run."""

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
        return shared_edge(source, source if arc.dest is None else states[arc.dest].value, trigger)

    def _refuse(
        self, agent: Any, source: adapter.State, trigger: str, context: Any, target: Any = None
    ) -> None:
        """Log an event that made no transition, if anybody listens to details."""
        arcs = self._arcs(source, trigger, target)
        conditions = [each for arc in arcs for each in arc.conditions]
        guards = (adapter.callback_name(each.func) for each in conditions)
        self._reporter.refused(agent, state_text(source.value), trigger, guards, context)

    def _arcs(self, source: adapter.State, trigger: str, target: Any = None) -> Sequence[Any]:
        """Return the Machine's transitions of an event from a state, of any or of one target."""
        event = self._machine.events.get(trigger)
        arcs: Sequence[Any] = () if event is None else event.transitions.get(source.name, ())
        if target is None:
            return arcs
        return [arc for arc in arcs if self._edge_of(arc, trigger).to_state == target]

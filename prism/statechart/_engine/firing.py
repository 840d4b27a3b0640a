"""The engine of a chart: one event, one agent, from the choice of a transition to its commit.

`Engine.fire` is the fast way through the chart's Machine: it reads the Machine's own transitions,
and leaves to the Machine whatever it does not know. A chart with composites has `Steps` instead of
a Machine. `Statechart` inherits the engine, since as a member it would cost every fire one more
call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from threading import get_ident
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Self

from prism.errors import AgentError, DefinitionError
from prism.statechart._definition import Definition, arguments_of
from prism.statechart._engine.checks import Checks
from prism.statechart._engine.described import callback_name, snapshot_of
from prism.statechart._engine.machine import (
    ActionCallback,
    ChartMachine,
    EventData,
    GuardCondition,
    Machine,
    MachineError,
    State,
    Verdict,
    arcs_from,
    beginning_with,
    build_machine,
    context_of,
    refuse_coroutine,
)
from prism.statechart._engine.pending import Run, drain
from prism.statechart._engine.reporting import Reporter
from prism.statechart._engine.writing import (
    Writer,
    count_of,
    restart_time,
    set_state,
    writer_of,
    writes_quietly,
)
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMEOUT, Edge, MovedError, StateT
from prism.telemetry.events import ACTION_FAILED, GUARD_FAILED
from prism.telemetry.instruments import (
    ChartBuilt,
    GuardEvaluated,
    TransitionDetails,
    engine_hooks,
    observe,
)
from prism.telemetry.loggers import EventLogger, somebody_listens, somebody_wants_details

if TYPE_CHECKING:
    from prism.statechart._engine.running import Steps
    from prism.statechart._engine.timing import Schedule


class _Events(dict[str, Any]):
    """What the Machine does in one state, by event, read when it is first needed."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        self._read = read

    def __missing__(self, trigger: str) -> Any:
        row = self[trigger] = self._read(trigger)
        return row


class Engine(Checks[StateT]):
    """Runs one definition; everything that changes lives in the agents.

    Args:
        definition: What to run.
        reporter: Where to report.
        clock: Returns the current time in seconds since the epoch.
    """

    # what runs a flat chart, and what runs one with composites; None for the other kind
    _machine: Any = None
    _steps: Steps | None = None
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
        machine: ChartMachine | None = None,
    ) -> None:
        super().__init__(definition)
        self._reporter = reporter
        self._has_logger = reporter.logger is not None
        self._clock = clock
        # the longest dwell times by state; none is too long in a final state
        self._limits: dict[Any, float] = {
            **definition.timeouts,
            **dict.fromkeys(definition.final_states, inf),
        }
        # transitions that are under way, by the address of the agent; so, too, the Machine's events
        self._firing: dict[int, Run] = {}
        self._events: dict[int, list[EventData]] = {}
        self._edges: dict[tuple[Any, Any, str], Edge] = {}
        self._writers: dict[type, Writer] = {}
        self._quiet_writers: dict[type, Writer] = {}
        self._is_slow = True
        self._built: Any = None
        if definition.tree is None:
            self._machine = machine or build_machine(definition)
            # what the Machine was when it was built
            self._built = snapshot_of(self._machine)
            self._observe_machine()
            self._machine.chart = self
        else:
            # loaded only where there are composites
            from prism.statechart._engine.running import Steps

            self._steps = Steps(self, definition.tree)
            self._rows = self._steps.rows
        if engine_hooks:
            observe("chart_built", ChartBuilt, definition)

    def bound(self, name: str, logger: EventLogger | None, clock: Callable[[], float]) -> Self:
        """Return the chart under a name, with a logger and a clock of its own, and without agents.

        A run binds the charts of its agents this way. The new chart has a Machine of its own, with
        the transitions and callbacks that this one's has now. An action that fires on the chart it
        was written for waits for the transition that the new chart makes.
        """
        definition = self._definition
        if name != definition.name:
            definition = Definition(**{**arguments_of(definition), "name": name})
        machine = None if self._machine is None else self._machine.copied()
        chart = object.__new__(type(self))
        reporter = Reporter(name, logger, strict=definition.strict)
        Engine.__init__(chart, definition, reporter, clock, machine)
        chart._firing, chart._built = self._firing, self._built
        return chart

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

    def _observe_machine(self) -> None:
        """Replace two of its methods: the one that runs an event, and ``set_state``."""
        self._machine._process, self._machine.set_state = self._process, self._change_state

    def _machine_changed(self, has_hooks: bool) -> None:
        """Forget what was read of the Machine."""
        self._is_slow = has_hooks
        self._triggers = dict.fromkeys(self._machine.events)
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
        self._events.setdefault(id(data.model), []).append(data)
        try:
            return run()
        finally:
            self._end_event(data)

    def _end_event(self, data: EventData) -> None:
        """Forget an event that was under way, and report the result."""
        events = self._events[id(data.model)]
        events.remove(data)
        if not events:
            del self._events[id(data.model)]
        if data.result:
            self._made += 1
            number = self._number_of(data.transition) if engine_hooks else None
            if number is not None:
                details = self._definition, number, data.model, context_of(data)
                observe("transition", TransitionDetails, *details)
        elif data.state is not None and (data.error is None or type(data.error) is MachineError):
            self._refuse(data.model, data.event.name, context_of(data))

    def _change_state(self, state: Any, model: Any = None) -> None:
        """Write what a transition leaves behind, when the Machine sets the state of an agent."""
        target = state if isinstance(state, State) else self._machine.get_state(state)
        for agent in self._machine.models if model is None else [model]:
            events = self._events.get(id(agent))
            if not events:
                set_state(agent, target.value)
                continue
            edge = self._edge_of(events[-1].transition, events[-1].event.name)
            edge = self._edge_after_action(agent, edge)
            self._commit(agent, edge, self._writer_of(agent), context_of(events[-1]))

    def _number_of(self, arc: Any) -> int | None:
        """Return the place of a transition in the definition; None if the application added it."""
        return getattr(arc, "number", None)

    def _report_guard(self, verdict: Verdict, data: EventData) -> None:
        """Tell who observes guards about one, and report one that raised."""
        number = self._number_of(data.transition)
        if engine_hooks and number is not None:
            details = self._definition, number, data.model, context_of(data), *verdict
            observe("guard", GuardEvaluated, *details)
        if verdict.error is not None:
            edge = self._edge_of(data.transition, data.event.name)
            self._reporter.failed(GUARD_FAILED, verdict.error, data.model, edge)

    # Firing

    def fire(self, agent: Any, trigger: str, context: Any = None) -> StateT | None:  # noqa: C901 - written out for speed, as it says below
        """Make the first transition that the event enables.

        Candidates are tried in definition order. The action of the first that passes runs, then the
        transition commits: state, ``ticks_in_state = 0``, one history entry, one log event. A
        self-transition runs its action and restarts the state's time. A fire on the same agent from
        inside its action is queued and runs right after this transition commits.

        An event that the state does not react to does nothing, unless the Machine says otherwise
        (``ignore_invalid_triggers``), as that of a strict chart does. One that no transition of the
        chart reacts to is a mistake: an error if the chart is strict, else a warning, once for each
        trigger, to the standard library's logger ``prism.statechart``. Every event that made no
        transition is logged at debug level, with the guards that refused it.

        An agent belongs to one thread at a time. A fire while another thread makes a transition of
        the same agent is an error where the engine can see it without slowing every fire: while an
        action or a method of the agent's own class runs.

        Args:
            agent: Anything with a writable ``state``.
            trigger: Name of the event.
            context: What the event is about; passed to guards and actions, recorded by its
                identifying fields.

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
        if engine_hooks or self._firing or self._is_slow:
            if self._firing and self._is_queued(
                agent, trigger, partial(self.fire, agent, trigger, context)
            ):
                return None
            if engine_hooks or self._is_slow:
                return self._through(agent, trigger, context)

        # from here on this is `_through`, written out for speed: the Machine's own way takes ten
        # times as long. Each callback list is read anew, which costs less than to notice changes.
        try:
            state = agent.state
            arcs, listed, known, source, member = self._rows[state][trigger]
        except (AttributeError, KeyError, TypeError, ValueError):
            # not `_through` from here: errors of guards would have this one as their context
            arcs, listed = (), None
        # a state may be text, or, by mistake, another enum's member with the text of a state
        if arcs != listed or member is not state or source.on_exit:
            return self._through(agent, trigger, context)

        for arc, dest, target, edge in known:
            if arc.prepare or arc.after or target.on_enter or arc.dest is not dest:
                return self._through(agent, trigger, context, arc)

            conditions = arc.conditions
            if not conditions:
                break
            condition = conditions[0]
            if condition.__class__ is not GuardCondition or len(conditions) > 1:
                return self._through(agent, trigger, context, arc)
            try:
                passes = condition.func(agent, context)  # type: ignore[operator]
                if passes:
                    if passes.__class__ is CoroutineType:
                        refuse_coroutine(passes, "a guard")
                    break
            except Exception as error:
                self._reporter.failed(GUARD_FAILED, error, agent, edge)
        else:
            if not (arcs or self._ignores(source)):
                return self._through(agent, trigger, context)
            if self._has_logger or somebody_wants_details():
                self._refuse(agent, trigger, context)
            return None

        # code of the user's that runs during the commit might fire in turn, which `_act` queues
        write = self._quiet_writers.get(type(agent))
        if arc.before or write is None or edge.leaves is not state:
            return self._act(agent, arc, edge, context)

        try:
            dwell = write(agent, edge, self._clock(), context)
        except MovedError:
            return self._act(agent, arc, edge, context)
        if self._has_logger or somebody_listens():
            self._reporter.moved(agent, edge, dwell, context)

        return edge.to_state  # type: ignore[no-any-return]

    def _ignores(self, source: State) -> bool:
        """Return whether an event that a state does not react to does nothing."""
        ignores = source.ignore_invalid_triggers
        return bool(self._machine.ignore_invalid_triggers if ignores is None else ignores)

    def _is_queued(self, agent: Any, trigger: Any, fire: Callable[[], Any]) -> bool:
        """Let a fire wait, if a transition of its agent is under way."""
        firing = self._firing.get(id(agent))
        if firing is None or firing.is_between:
            return False
        self._require_one_thread(agent, firing.thread)
        # a mistaken event is reported where it is fired, not where its turn comes
        self._require_trigger(trigger)
        firing.queue.append((repr(trigger), fire))
        return True

    def _through(
        self, agent: Any, trigger: str, context: Any, first: Any = None, *, has_passed: bool = False
    ) -> StateT | None:
        """Fire through the Machine itself, from one of the event's transitions on.

        Args:
            agent: The agent.
            trigger: Name of the event.
            context: What it is about.
            first: The transition to begin with; None for all. The guards of those before it have
                been asked.
            has_passed: Whether the guard of the first has been asked, too, and passed.
        """
        state = self._require_known_state(agent)
        self._require_trigger(trigger)
        made: StateT | None
        if self._steps is not None:
            made = self._steps.fire(agent, trigger, context)
            return made
        machine = self._machine
        event = machine.events.get(trigger) if isinstance(trigger, str) else None
        if event is None:
            return None
        if first is None:
            # it may have changed since it was read
            self._rows[state].pop(trigger, None)
        else:
            event = beginning_with(event, first, has_passed=has_passed)

        data = EventData(None, event, machine, agent, (context,), {})
        if not machine._process(partial(event._trigger, data)):
            return None
        made = self._member(agent.state)
        return made

    def _act(self, agent: Any, arc: Any, edge: Edge, context: Any) -> StateT | None:
        """Make a transition during which code of the application's may run."""
        if any(each.__class__ is not ActionCallback for each in arc.before):
            return self._through(agent, edge.trigger, context, arc, has_passed=True)

        # looked up before the action runs, since it refuses classes that the chart cannot drive
        write = self._writer_of(agent)

        def make() -> None:
            for each in arc.before:
                self._run_action(each.func, agent, edge, context)
            # an internal transition leaves no state
            if arc.dest is not None:
                self._commit(agent, self._edge_after_action(agent, edge), write, context)

        if arc.before or type(agent) not in self._quiet_writers:
            self._complete(agent, make)
        else:
            make()
        made: StateT = agent.state
        return made

    def _run_action(self, action: Any, agent: Any, edge: Edge, context: Any) -> None:
        """Run an action, and report one that fails."""
        try:
            result = action(agent, context)
            if result.__class__ is CoroutineType:
                refuse_coroutine(result, f"the action of {edge.trigger!r}")
        except Exception as error:
            self._reporter.failed(ACTION_FAILED, error, agent, edge)

    def _commit(self, agent: Any, edge: Edge, write: Writer, context: Any) -> None:
        """Write what a transition leaves behind; a self-transition restarts the state's time."""
        if edge.leaves is None:
            restart_time(agent)
            return
        dwell = write(agent, edge, self._clock(), context)
        if self._has_logger or somebody_listens():
            self._reporter.moved(agent, edge, dwell, context)

    def _edge_after_action(self, agent: Any, edge: Edge) -> Edge:
        """Report code that moved the agent; the transition then starts from where it is."""
        state = agent.state
        if state == edge.from_state:
            return edge

        problem = (
            f"a guard or the action of {edge.trigger!r} moved the agent to {state_text(state)!r} "
            "itself: let it fire an event instead, which runs right after this transition"
        )
        self._reporter.failed(ACTION_FAILED, AgentError(problem), agent, edge)
        return self._edge(self._member(state), edge.to_state, edge.trigger)

    def _complete(self, agent: Any, make: Callable[[], Any]) -> Any:
        """Make a transition and everything that its actions queue, until the agent is at rest."""
        key, own = id(agent), Run(get_ident())
        firing = self._firing.setdefault(key, own)
        if firing is not own:
            self._require_one_thread(agent, firing.thread)
            firing.is_between = False
            return make()

        try:
            made = make()
            if own.queue:
                drain(self._definition.name, agent, own)
            return made
        finally:
            del self._firing[key]

    def _edge(self, source: Any, target: Any, trigger: str) -> Edge:
        """Return the part that all records of a transition share."""
        key = source, target, trigger
        edge = self._edges.get(key)
        if edge is None:
            edge = self._edges[key] = Edge(source, target, trigger)
        return edge

    def _edge_of(self, arc: Any, trigger: str) -> Edge:
        states = self._machine.states
        source = states[arc.source].value
        return self._edge(source, source if arc.dest is None else states[arc.dest].value, trigger)

    def _writer_of(self, agent: Any) -> Writer:
        cls = type(agent)
        if cls not in self._writers:
            writer = self._writers[cls] = writer_of(agent)
            if writes_quietly(cls, writer):
                self._quiet_writers[cls] = writer
        return self._writers[cls]

    def _refuse(self, agent: Any, trigger: str, context: Any) -> None:
        """Log an event that made no transition, if anybody listens to details."""
        arcs = arcs_from(self._machine, agent, trigger)
        guards = (callback_name(each.func) for arc, _, _ in arcs for each in arc.conditions)
        state = state_text(self._value(agent))
        self._reporter.refused(agent, state, trigger, guards, context)

    # Where agents are

    def _member(self, state: Any) -> Any:
        """Return a state as the chart has it, for which an agent may have its text."""
        if not self.can_be_in(state):
            return state
        if self._steps is not None:
            return self._steps.rows.place(state).state
        return self._machine.values[state].value

    def is_in(self, agent: Any, state: StateT) -> bool:
        """Return whether a state is active: the agent's own, or one around it."""
        active = self.active(self._require_known_state(agent))
        return state_text(state) in map(state_text, active)

    def active(self, state: Any) -> tuple[StateT, ...]:
        """Return an agent's state with all states around it, outermost first."""
        self._require_state(state)
        if self._steps is None:
            return (self._member(state),)
        nodes = self._steps.rows.tree.nodes
        return tuple(nodes[number].state for number in sorted(self._rows.place(state).active))

    # Beginning, and ticks

    def begin(self, agent: Any, context: Any = None) -> StateT:
        """Enter the initial state, as SCXML does: entry actions, outermost first, then settling.

        What the chart remembered about the agent is forgotten. Only the transitions that
        follow without an event are recorded. An agent whose ``state`` is merely assigned has run no
        entry actions.

        Args:
            agent: Anything with a writable ``state``.
            context: What entry actions get.

        Returns:
            The agent's state once it has settled.

        Raises:
            AgentError: As `fire`; also inside an action of the agent.
        """
        self._require_rest(agent, "begin", "leave the transition half made: fire an event there")
        set_state(agent, self._definition.initial)
        return self.enter(agent, context)

    def enter(self, agent: Any, context: Any = None) -> StateT:
        """Enter the current state of an agent, as `begin` enters the initial one."""
        if self._steps is not None:
            self._steps.begin(agent, context)
        state: StateT = agent.state
        return state

    def tick(self, agent: Any, context: Any = None) -> StateT | None:
        """Let one tick pass for an agent, and fire ``timeout`` if it has dwelt too long.

        The limit is ``chart.timeouts[state]`` where set, else ``agent.timeout_threshold``; the
        time-out fires when ``ticks_in_state`` is strictly greater (specification, FR-6.2). An
        object without ``ticks_in_state`` never times out, nor does an agent in a final state or on
        a chart without the trigger ``timeout``.

        In a chart with timers, time-outs come first, then ``after`` (both outermost first), then
        rates, each only if its state is still active. Then the agent settles, since guards may read
        what other agents have changed.

        Returns:
            The new state if the tick moved the agent, else None.

        Raises:
            AgentError: Inside an action of the agent.
        """
        self._require_rest(agent, "tick", "count for neither state: let it pass before or after")
        state = self._require_known_state(agent)
        ticks = self._ticks_of(agent)
        if ticks is not None:
            agent.ticks_in_state = ticks = ticks + 1
        if self._steps is not None:
            # rates and composites need no count of the agent's
            moved: StateT | None = self._steps.schedule.tick(agent, ticks or 1, context)
            return moved

        limit = self._limits.get(state) or count_of(agent, "timeout_threshold")
        limit = self._usual_limit if limit is None else limit
        if ticks is None or limit is None or ticks <= limit:
            return None
        if not any(arcs_from(self._machine, agent, self._timeout_trigger)):
            return None
        return self.fire(agent, self._timeout_trigger, *(() if context is None else (context,)))

    def _ticks_of(self, agent: Any) -> int | None:
        """Return the ticks of an agent in its state; None if the agent counts none."""
        return count_of(agent, "ticks_in_state")

    def _require_rest(self, agent: Any, name: str, problem: str) -> None:
        if id(agent) in self._firing:
            raise AgentError(
                f"chart {self._definition.name!r}: {name} inside an action of the same agent "
                f"would {problem} instead"
            )

    @property
    def schedule(self) -> Schedule | None:
        """The timers and rates of a chart with composites; None if the chart has no composites."""
        return None if self._steps is None else self._steps.schedule

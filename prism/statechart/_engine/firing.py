"""The engine of a chart: one event, one agent, from the choice of a transition to its commit.

`Engine.fire` is the fast way through the chart's Machine: it reads the Machine's own transitions,
and leaves to the Machine whatever it does not know. `Statechart` inherits the engine, since as a
member it would cost every fire one more call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf
from threading import get_ident
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Self

from prism.errors import AgentError, DefinitionError
from prism.statechart._definition import Definition, arguments_of
from prism.statechart._engine.checks import Checks
from prism.statechart._engine.machine import (
    ActionCallback,
    EventData,
    GuardCondition,
    Machine,
    MachineError,
    State,
    Verdict,
    arcs_of_event,
    build_machine,
    callback_name,
    context_of,
    refuse_coroutine,
    snapshot_of,
    value_text,
)
from prism.statechart._engine.pending import Run, drain
from prism.statechart._engine.reporting import Reporter
from prism.statechart._engine.timing import Rated, Schedule
from prism.statechart._engine.writing import (
    Writer,
    count_of,
    count_tick,
    require_writable,
    restart_time,
    set_state,
    write_plain,
    writer_of,
    writes_quietly,
)
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMEOUT, Edge, MovedError, StateT
from prism.telemetry.instruments import (
    ChartBuilt,
    GuardEvaluated,
    TransitionDetails,
    engine_hooks,
    observe,
)
from prism.telemetry.loggers import EventLogger, somebody_listens, somebody_wants_details

if TYPE_CHECKING:
    from prism.statechart._engine.rows import NestedRows
    from prism.statechart._engine.running import Steps

_FAST: Any = object()
"""What `Engine._aside` returns where nothing keeps a fire from its fast way."""


class Engine(Checks[StateT]):
    """Runs one definition; everything that changes lives in the agents.

    Args:
        definition: What to run.
        reporter: Where to report.
        clock: Returns the current time in seconds since the epoch.
    """

    # the Machine of a flat chart, and the rows of one with composites; None for the other kind
    _machine: Any = None
    _nested: NestedRows | None = None
    _steps: Steps | None = None
    _schedule: Schedule | None = None
    # transitions that the Machine has made
    _made = 0

    def __init__(
        self, definition: Definition[StateT], reporter: Reporter, clock: Callable[[], float]
    ) -> None:
        super().__init__(definition)
        self._members: dict[Any, Any] = {state: state for state in definition.states}
        # the longest dwell times by state; none is too long in a final state
        self._limits: dict[Any, float] = {
            **definition.timeouts,
            **dict.fromkeys(definition.final_states, inf),
        }
        self._edges: dict[tuple[Any, Any, str], Edge] = {}
        if definition.tree is None:
            self._machine = build_machine(definition)
            # what the Machine was when it was built
            self._built = snapshot_of(self._machine)
        else:
            # loaded only where there are composites
            from prism.statechart._engine.rows import NestedRows

            self._nested = NestedRows(definition.tree)
        self._bind(reporter, clock)

    def _bind(self, reporter: Reporter, clock: Callable[[], float]) -> None:
        """Begin to run for agents, of which there are none yet, on the chart's own Machine."""
        self._reporter = reporter
        self._has_logger = reporter.has_logger
        self._clock = clock
        self._warned_of = set()
        self._writers: dict[type, Writer] = {}
        self._quiet_writers: dict[type, Writer] = {}
        self._firing: dict[int, Run] = {}
        # the events of the Machine that are under way, by the address of the agent
        self._events: dict[int, list[EventData]] = {}
        self._is_slow = True
        self._rows: Any = self._nested
        if self._nested is not None:
            from prism.statechart._engine.running import Steps

            self._steps = Steps(self, self._nested)
            schedule = Schedule(self)
            self._schedule = None if schedule.is_empty else schedule
        else:
            self._observe_machine()
            self._machine.serve(self)
        if engine_hooks:
            observe("chart_built", ChartBuilt, self._definition)

    def bound(self, name: str, logger: EventLogger | None, clock: Callable[[], float]) -> Self:
        """Return the chart under a name, with a logger and a clock of its own, and without agents.

        A run binds the charts of its agents this way. The new chart has a Machine of its own, with
        the transitions and callbacks that this one's has now.
        """
        definition = self._definition
        if name != definition.name:
            definition = Definition(**{**arguments_of(definition), "name": name})

        chart = object.__new__(type(self))
        # not by its `__dict__`: a chart whose `__dict__` has been asked for fires an eighth slower
        for attribute, value in vars(self).items():
            setattr(chart, attribute, value)
        chart._definition = definition
        chart._machine = None if self._machine is None else self._machine.copied()
        chart._bind(Reporter(name, logger, strict=definition.strict), clock)
        if self._nested is not None:
            # what is active while an action runs is asked of the chart that the action knows
            chart._firing = self._firing
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
        self._members = {value: value for value in self._machine.values}
        self._rows = {value: {} for value in self._machine.values}

    def _process(self, run: Any) -> Any:
        """Run an event of the Machine, or queue it behind one that is under way."""
        data = run.args[0]
        if self._is_queued(data.model, data.event.name, partial(self._process, run)):
            return None
        # before any callback runs, since it refuses classes that the chart cannot drive
        self._writer_of(data.model)
        return self._complete(data.model, lambda _: self._run_event(data, run))

    def _run_event(self, data: EventData, run: Callable[[], Any]) -> Any:
        self._events.setdefault(id(data.model), []).append(data)
        try:
            return run()
        finally:
            self._end_event(data)

    def _end_event(self, data: EventData) -> None:
        """Forget an event that was under way, and tell what became of it."""
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
        elif data.error is None or isinstance(data.error, MachineError):
            name = getattr(data.event, "name", None)
            self._refuse(data.model, name, context_of(data), arcs_of_event(data))

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
            self._reporter.guard_failed(verdict.error, data.model, edge)

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
            made: StateT | None = self._aside(agent, trigger, context)
            if made is not _FAST:
                return made

        # from here on this is `_through`, written out for speed: the Machine's own way takes ten
        # times as long. Each callback list is read anew, which costs less than to notice changes.
        try:
            state = agent.state
            arcs, listed, known, source, member = self._rows[state][trigger]
        except (AttributeError, KeyError, TypeError):
            # not `_missed` from here: errors of guards would have this one as their context
            arcs, listed = (), None
        # a state may be text, or, by mistake, another enum's member with the text of a state
        if arcs != listed or member is not state or source.on_exit:
            return self._missed(agent, trigger, context)

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
                self._reporter.guard_failed(error, agent, edge)
        else:
            if self._has_logger or somebody_wants_details():
                self._refuse(agent, trigger, context, arcs)
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

    def _aside(self, agent: Any, trigger: str, context: Any) -> Any:
        """Fire where something keeps a fire from its fast way; return `_FAST` if nothing does."""
        if self._firing and self._is_queued(
            agent, trigger, partial(self.fire, agent, trigger, context)
        ):
            return None
        if self._steps is not None:
            return self._steps.fire(agent, trigger, context)
        if engine_hooks or self._is_slow:
            return self._through(agent, trigger, context)
        return _FAST

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

    def _missed(self, agent: Any, trigger: str, context: Any) -> StateT | None:
        """Fire an event of which nothing has been read yet, or which has changed since.

        Mostly it is one that does not apply.
        """
        state = self._require_known_state(agent)
        if self._look_up(state, trigger):
            source = self._machine.values[state]
            is_fast = source.value is state and not source.on_exit
            return (self.fire if is_fast else self._through)(agent, trigger, context)

        self._require_trigger(trigger)
        self._refuse(agent, trigger, context, ())
        self._require_reaction(state, trigger)
        return None

    def _require_reaction(self, state: Any, trigger: Any) -> None:
        """Raise what the Machine raises of an event that does not apply in a state."""
        machine = self._machine
        if not isinstance(trigger, str) or trigger not in machine.events:
            return
        source = machine.values[state]
        ignores = source.ignore_invalid_triggers
        ignores = machine.ignore_invalid_triggers if ignores is None else ignores
        # a list of transitions that has become empty counts, as in the package
        if not ignores and source.name not in machine.events[trigger].transitions:
            raise MachineError(
                f"{machine.name}Can't trigger event {trigger} from state {source.name}!"
            )

    def _look_up(self, state: Any, trigger: Any) -> bool:
        """Read the transitions of a state and an event; return whether there are any."""
        machine = self._machine
        source = machine.values[state]
        event = machine.events.get(trigger) if isinstance(trigger, str) else None
        arcs = None if event is None else event.transitions.get(source.name)
        if not arcs:
            return False

        known = []
        for arc in arcs:
            target = source if arc.dest is None else machine.get_state(arc.dest)
            known.append((arc, arc.dest, target, self._edge(source.value, target.value, trigger)))
        self._rows[source.value][trigger] = arcs, [*arcs], known, source, source.value
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
        self._require_known_state(agent)
        self._require_trigger(trigger)
        machine = self._machine
        event = machine.events.get(trigger)
        if event is None:
            return None
        if first is not None:
            event = machine.beginning_with(event, first, has_passed=has_passed)

        data = EventData(None, event, machine, agent, (context,), {})
        if not machine._process(partial(event._trigger, data)):
            return None
        made: StateT = self._members.get(agent.state, agent.state)
        return made

    def _act(self, agent: Any, arc: Any, edge: Edge, context: Any) -> StateT | None:
        """Make a transition during which code of the application's may run."""
        if any(each.__class__ is not ActionCallback for each in arc.before):
            return self._through(agent, edge.trigger, context, arc, has_passed=True)

        # looked up before the action runs, since it refuses classes that the chart cannot drive
        write = self._writer_of(agent)

        def make(_: Run) -> None:
            for each in arc.before:
                self._run_action(each.func, agent, edge, context)
            # an internal transition leaves no state
            if arc.dest is not None:
                self._commit(agent, self._edge_after_action(agent, edge), write, context)

        self._complete(agent, make)
        made: StateT = agent.state
        return made

    def _run_action(self, action: Any, agent: Any, edge: Edge, context: Any) -> None:
        """Run an action, and report one that fails."""
        try:
            result = action(agent, context)
            if result.__class__ is CoroutineType:
                refuse_coroutine(result, f"the action of {edge.trigger!r}")
        except Exception as error:
            self._reporter.action_failed(error, agent, edge)

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
        self._reporter.action_failed(AgentError(problem), agent, edge)
        return self._edge(self._members.get(state, state), edge.to_state, edge.trigger)

    def _complete(self, agent: Any, make: Callable[[Run], Any]) -> Any:
        """Make a transition and everything that its actions queue, until the agent is at rest."""
        key, own = id(agent), Run(get_ident())
        firing = self._firing.setdefault(key, own)
        if firing is not own:
            self._require_one_thread(agent, firing.thread)
            firing.is_between = False
            return make(firing)

        try:
            made = make(own)
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
        states = self.machine.states
        source = states[arc.source].value
        return self._edge(source, source if arc.dest is None else states[arc.dest].value, trigger)

    def _writer_of(self, agent: Any, *, is_moving: bool = True) -> Writer:
        cls = type(agent)
        writer = self._writers.get(cls)
        if writer is None:
            writer = writer_of(cls)
            if writer is write_plain:
                if not is_moving:
                    return writer
                require_writable(agent)
            self._writers[cls] = writer
            if writes_quietly(cls, writer):
                self._quiet_writers[cls] = writer
        return writer

    def _refuse(self, agent: Any, trigger: Any, context: Any, arcs: Iterable[Any]) -> None:
        """Log an event that made no transition, if anybody listens to details."""
        if isinstance(trigger, str) and trigger in self._triggers:
            guards = (callback_name(each.func) for arc in arcs for each in arc.conditions)
            state = value_text(self._value(agent))
            self._reporter.refused(agent, state, trigger, guards, context)

    # Where agents are

    def is_in(self, agent: Any, state: StateT) -> bool:
        """Return whether a state is active: the agent's own, or one around it.

        Inside entry and exit actions, these are the states that are active at that instant.
        """
        if self._nested is None:
            # refuses what is no state
            self._row(state)
            return bool(self._require_known_state(agent) == state)

        number = self._nested.tree.numbers.get(state_text(state))
        if number is None:
            raise self._unknown_state(f"state {state!r}")

        firing = self._firing.get(id(agent))
        if firing is not None and firing.active is not None:
            return number in firing.active
        return number in self._nested.place(self._require_known_state(agent)).active

    def active(self, state: Any) -> tuple[StateT, ...]:
        """Return an agent's state with all states around it, outermost first."""
        self._row(state)
        if self._nested is None:
            return (self._members[state],)

        nodes = self._nested.tree.nodes
        return tuple(nodes[number].state for number in sorted(self._nested.place(state).active))

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
        if id(agent) in self._firing:
            raise AgentError(
                f"chart {self._definition.name!r}: begin inside an action of the same agent would "
                "leave the transition half made: fire an event there instead"
            )
        self._writer_of(agent, is_moving=False)
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
        if id(agent) in self._firing:
            raise AgentError(
                f"chart {self._definition.name!r}: a tick inside an action of the same agent would "
                "count for neither state: let it pass before or after the transition"
            )
        ticks, limit = self._dwell(agent)
        if self._schedule is not None:
            # rates and composites need no count of the agent's
            return self.let_pass(agent, ticks or 1, context)
        if limit is None or ticks <= limit or not self._times_out(agent.state):
            return None
        return self.fire(agent, TIMEOUT, context)

    @property
    def has_timers(self) -> bool:
        """Whether a tick does more than fire the time-out of the agent's state."""
        return self._schedule is not None

    def let_pass(
        self, agent: Any, ticks: int, context: Any = None, *, by_chance: bool = True
    ) -> StateT | None:
        """Make what is due in a tick that the caller has counted, on a chart that `has_timers`.

        Args:
            agent: Anything with a writable ``state``.
            ticks: How many the agent has spent in its state, this one included.
            context: What guards and actions get.
            by_chance: Whether rates are looked at; whoever has a time for each event does it.

        Returns:
            The new state if the tick moved the agent, else None.
        """
        assert self._schedule is not None
        moved: StateT | None = self._schedule.tick(agent, ticks, context, by_chance=by_chance)
        return moved

    def rated(self) -> Iterator[Rated]:
        """Yield what happens at rates, for whoever has a time of its own for each event."""
        return iter(()) if self._schedule is None else self._schedule.rated()

    def _times_out(self, state: Any) -> bool:
        if TIMEOUT not in self._triggers:
            return False
        return (
            self._nested is not None
            or TIMEOUT in self._rows[state]
            or self._look_up(state, TIMEOUT)
        )

    def _dwell(self, agent: Any) -> tuple[int, float | None]:
        """Count one more tick in the state; return the ticks, 0 if none are kept, and the limit."""
        state = self._require_known_state(agent)
        ticks = count_of(agent, "ticks_in_state")
        if ticks is not None:
            self._writer_of(agent, is_moving=False)
            ticks = count_tick(agent, ticks)
        elif self._definition.timeouts:
            kind = type(agent).__name__
            problem = f"agents of {kind} have no 'ticks_in_state', so they never time out"
            self._warn_once(kind, problem)
        own_limit = count_of(agent, "timeout_threshold")
        return ticks or 0, self._limits.get(state) or own_limit

"""The interpreter of a chart: one event, one agent, from the choice of a transition to its commit.

Everything that chooses among candidates is here. `Statechart` inherits the interpreter: as a
member it would cost every fire one more call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self, cast

from prism.statechart._definition import TIMEOUT, Definition, arguments_of
from prism.statechart._engine.machine import Candidate, Rows, distinct, leading_to
from prism.statechart._engine.memory import forget, memory_of
from prism.statechart._engine.pending import (
    MOST_QUEUED_FIRES,
    Answer,
    Decider,
    Firing,
    OpenQuestions,
    QueuedFire,
    ask,
    close_overtaken,
    runaway,
)
from prism.statechart._engine.running import Running
from prism.statechart._engine.writing import (
    Reporter,
    Writer,
    count_tick,
    set_state,
    ticks_of,
    write_kept,
)
from prism.statechart.transitions import StateT
from prism.telemetry._instrument import ChartBuilt, engine_hooks, observe
from prism.telemetry._loggers import EventLogger, somebody_listens

if TYPE_CHECKING:
    from prism.statechart._engine.rows import NestedRows
    from prism.statechart._engine.timing import Schedule


class Interpreter(Running[StateT]):
    """Runs one definition; everything that changes lives in the agents.

    Args:
        definition: What to run.
        rows: Its transitions as candidates.
        reporter: Where to report.
        clock: Returns the current time in seconds since the epoch.
    """

    def __init__(
        self,
        definition: Definition[StateT],
        rows: Rows[StateT],
        reporter: Reporter,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(definition, rows)
        self._members = {state: state for state in definition.states}
        self._nested = None if definition.tree is None else cast("NestedRows", rows)
        # no dwell time is too long in a final state, or where nothing reacts to it
        lasting = [*definition.final_states]
        if self._nested is None:
            lasting += [state for state in definition.states if TIMEOUT not in rows[state]]
        self._limits: dict[Any, float] = {**definition.timeouts, **dict.fromkeys(lasting, inf)}
        self._schedule: Schedule | None = None
        if definition.tree is not None:
            # loaded only where there are composites
            from prism.statechart._engine.timing import Limits, Schedule

            schedule = Schedule(definition.tree)
            if not schedule.is_empty:
                self._schedule, self._limits = schedule, Limits(self._limits)

        self._bind(reporter, clock)

    def _bind(self, reporter: Reporter, clock: Callable[[], float]) -> None:
        """Set everything that changes while agents fire; there are no agents yet."""
        self._reporter = reporter
        self._has_logger = reporter.has_logger
        self._clock = clock
        self._unknown_triggers: set[str] = set()
        self._writers: dict[type, Writer] = {}
        self._quiet_writers: dict[type, Writer] = {}
        self._firing = {}
        self._questions: OpenQuestions = {}
        if engine_hooks:
            observe("chart_built", ChartBuilt, self._definition)

    def bound(self, name: str, logger: EventLogger | None, clock: Callable[[], float]) -> Self:
        """Return the chart under a name, with a logger and a clock of its own, and without agents.

        A run binds the charts of its agents this way: what has been compiled once serves them all.
        """
        definition = self._definition
        if name != definition.name:
            definition = Definition(**{**arguments_of(definition), "name": name})

        chart = object.__new__(type(self))
        # not by the new one's `__dict__`: see `Statechart`
        for attribute, value in {**vars(self), "_definition": definition}.items():
            if attribute != "machine":
                setattr(chart, attribute, value)
        chart._bind(Reporter(name, logger, strict=definition.strict), clock)
        if self._nested is not None:
            # what is active while an action runs is asked of the chart that the action knows
            chart._firing = self._firing

        return chart

    def fire(  # noqa: C901 - written out for speed, as it says below
        self, agent: Any, trigger: str, context: Any = None
    ) -> StateT | None:
        """Make the first transition that the event enables.

        Candidates are tried in definition order. The action of the first that passes runs, then the
        transition commits: state, ``ticks_in_state = 0``, one history entry, one log event. A
        self-transition only runs its action. A fire on the same agent from inside its action is
        queued and runs right after this transition commits.

        An event that the state does not react to does nothing. One that no transition of the chart
        reacts to is a mistake: an error if the chart is strict, else a warning, once for each
        trigger, to the standard library's logger ``prism.statechart``.

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
            UnknownStateError: If the agent is in a state that this chart does not define. A member
                of another enum is one, whatever its text; plain text is taken for the member.
            UnknownTriggerError: If the chart is strict and does not have the trigger.
            RunawayError: If the agent's actions go on firing without end.
        """
        if engine_hooks or self._firing:
            return self._fire_or_queue(agent, trigger, context)

        # from here on this is `_fire_or_queue`, written out for speed: calls and a generator would
        # double the time of a plain fire. A property test holds the two together
        # (tests/statechart/engine/test_choosing.py).
        try:
            state = agent.state
            candidates = self._rows[state][trigger]
        except (AttributeError, KeyError, TypeError):
            # nothing is wrong with an event that does not apply
            self._require_known_state(agent)
            self._require_trigger(trigger)
            return None

        for candidate in candidates:
            guard, action, target, edge = candidate
            if guard is None:
                break

            try:
                if guard(agent, context):
                    break
            except Exception as error:
                self._reporter.guard_failed(error, agent, edge)
        else:
            if edge.from_state is not state:
                self._require_known_state(agent)
            return None

        # code of the user's that runs during the commit might fire in turn, which `_run` queues
        write = self._quiet_writers.get(agent.__class__)
        if action is not None or write is None or edge.leaves is not state:
            if edge.from_state is not state:
                # it may be text, but no other enum's member
                self._require_known_state(agent)
            return self._run(agent, candidate, context)

        if self._questions:
            close_overtaken(self._questions, agent, edge)

        dwell = write(agent, edge, self._clock(), context)
        if self._has_logger or somebody_listens():
            self._reporter.moved(agent, edge, dwell, context)

        return target

    async def afire(
        self,
        agent: Any,
        trigger: str,
        context: Any = None,
        *,
        reasoner: Decider,
    ) -> StateT | None:
        """Make the transition that the event calls for; a reasoner decides if several are enabled.

        In a decision state with more than one distinct enabled target the reasoner chooses among
        them. Everywhere else, and inside an action, where nothing can wait for an answer, this is
        exactly `fire`. When the answer arrives, the guard of the chosen transition is evaluated
        again. If it fails now, or the agent has moved, even if it came back, the answer is
        discarded and logged. In a chart with regions an answer is about the regions that react to
        the event: it holds though others have moved. A cancelled call leaves the agent as it was.

        The decision is announced as ``reasoner.decision``, by the reasoner or in its place.

        Args:
            agent: Anything with a writable ``state``.
            trigger: Name of the event.
            context: The event's context.
            reasoner: Chooses among the enabled targets.

        Returns:
            As `fire`; None if the answer was discarded.

        Raises:
            ReasonerError: If the reasoner answers with something outside the options.
        """
        state = self._require_known_state(agent)
        if not self._decides(state) or id(agent) in self._firing:
            return self.fire(agent, trigger, context)

        candidates = self._enabled(agent, trigger, context)
        options = distinct(target for _, _, target, _ in candidates)
        if not options:
            return None
        if len(options) == 1:
            return self._run(agent, candidates[0], context)

        chosen, has_moved = await ask(
            reasoner,
            agent,
            trigger,
            options,
            context,
            about=self._leaves_asked(state, trigger),
            chart=self.definition,
            questions=self._questions,
            reporter=self._reporter,
        )
        if has_moved:
            self._reporter.discarded(agent, trigger, state, chosen, "moved")
            return None

        answer = Answer(chosen, state, transition=leading_to(chosen, candidates))
        candidate = self._first_enabled(agent, trigger, context, answer)
        return None if candidate is None else self._run(agent, candidate, context)

    def fire_to(
        self,
        agent: Any,
        trigger: str,
        target: StateT,
        context: Any = None,
        *,
        asked_in: StateT | None = None,
        quiet: bool = False,
    ) -> StateT | None:
        """Make the transition to one given target, if the event enables it now.

        A caller that asked a reasoner itself commits the answer this way: guards are evaluated
        again. An answer that no longer applies is discarded and logged, as in `afire`.

        Args:
            agent: Anything with a writable ``state``.
            trigger: Name of the event.
            target: The target that was chosen.
            context: The event's context.
            asked_in: State in which the agent was asked; if it is in another one now, the answer no
                longer applies. In a chart with regions, those that do not react to the event do not
                count.
            quiet: Log no discarded answer: the caller reports the result itself.

        Returns:
            As `fire`; None if no enabled transition leads to the target.
        """
        return self._fire_or_queue(agent, trigger, context, Answer(target, asked_in, quiet))

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
            AgentError: As `fire`.
        """
        self._writer_of(agent)
        set_state(agent, self._definition.initial)

        return self._begin_where_it_is(agent, context)

    def _begin_where_it_is(self, agent: Any, context: Any = None) -> StateT:
        """Enter the current state of an agent, as `begin` enters the initial one."""
        if self._nested is not None:
            if self._nested.planner.remembers:
                forget(memory_of(self._definition.name, agent))
            is_initial = agent.state == self._definition.initial
            self._run(agent, self._nested.beginning(None if is_initial else agent.state), context)

        return cast(StateT, agent.state)

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
        """
        # the usual case, without the properties of `StatechartMixin`
        if self._quiet_writers.get(agent.__class__) is write_kept and agent._state in self._rows:
            ticks = agent._ticks_in_state = agent._ticks_in_state + 1
            limit = self._limits.get(agent._state) or agent._timeout_threshold
        else:
            ticks, limit = self._dwell(agent)

        if limit is None or ticks <= limit:
            return None
        if self._schedule is not None:
            # rates and composites need no count of the agent's
            moved: StateT | None = self._schedule.tick(self, agent, ticks or 1, context)
            return moved
        return self.fire(agent, TIMEOUT, context) if TIMEOUT in self._triggers else None

    def _dwell(self, agent: Any) -> tuple[int, float | None]:
        """Count one more tick in the state; return the ticks, 0 if none are kept, and the limit."""
        state = self._require_known_state(agent)
        ticks = ticks_of(agent)
        if ticks is not None:
            self._writer_of(agent)
            ticks = count_tick(agent, ticks)
        elif self._definition.timeouts:
            kind = type(agent).__name__
            problem = f"agents of {kind} have no 'ticks_in_state', so they never time out"
            adds = "give the class one that begins at 0"
            self._warn_once(kind, f"chart {self._definition.name!r}: {problem}: {adds}")

        own_limit = getattr(agent, "timeout_threshold", None)
        return ticks or 0, self._limits.get(state) or own_limit

    # Choosing

    def _fire_or_queue(
        self, agent: Any, trigger: str, context: Any, answer: Answer | None = None
    ) -> StateT | None:
        # one look: another thread's transition may end between two
        firing = self._firing.get(id(agent))
        if firing is not None:
            self._require_one_thread(agent, firing[0])
            # a mistaken event is reported where it is fired, not where its turn comes
            self._require_trigger(trigger)
            if firing[1] is None:
                firing[1] = deque()
            firing[1].append(QueuedFire(trigger, context, answer))
            return None

        candidate = self._first_enabled(agent, trigger, context, answer)
        return None if candidate is None else self._run(agent, candidate, context)

    # Committing

    def _run(self, agent: Any, candidate: Candidate[StateT], context: Any) -> StateT | None:
        """Make one transition and everything that its action queues, until the agent is at rest."""
        # a list, which is made faster than anything else; few actions queue anything
        firing: Firing = [get_ident(), None, None]
        key, under_way = id(agent), self._firing
        other = under_way.setdefault(key, firing)
        if other is not firing:
            self._require_one_thread(agent, other[0])

        plan = candidate[3].plan
        try:
            state = candidate[2]
            if plan is None:
                self._make(agent, candidate, context)
            elif not plan.settles:
                self._make_step(agent, candidate, context, firing)
            elif self._steps(agent, candidate, context, firing):
                state = agent.state
            else:
                return None

            if firing[1] is not None:
                self._drain(agent, firing)
                state = agent.state
            return state if state is candidate[2] else self._members.get(state, state)
        finally:
            del under_way[key]

    def _drain(self, agent: Any, firing: Firing) -> None:
        queue, fired = firing[1], 0
        while queue:
            trigger, context, answer = queue.popleft()
            fired += 1
            if fired > MOST_QUEUED_FIRES:
                raise runaway(self.definition.name, agent, trigger)

            following = self._first_enabled(agent, trigger, context, answer)
            if following is not None and following[3].plan is None:
                self._make(agent, following, context)
            elif following is not None:
                self._steps(agent, following, context, firing)

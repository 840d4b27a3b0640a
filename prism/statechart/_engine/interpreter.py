"""The interpreter of a chart: one event, one agent, from the choice of a transition to its commit.

Everything that chooses among candidates is here. `Statechart` inherits the interpreter: as a
member it would cost every fire one more call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from math import inf
from threading import get_ident
from typing import Any, Never, cast

from prism.errors import AgentError
from prism.statechart._definition import TIMEOUT, Definition
from prism.statechart._engine.arguments import (
    NOT_GIVEN,
    Checks,
    checks_reasoner_itself,
    refuse_state,
    require_own_state_type,
    require_reasoner,
)
from prism.statechart._engine.machine import (
    PASSED,
    Candidate,
    Rows,
    distinct,
    evaluate,
    leading_to,
)
from prism.statechart._engine.pending import (
    MOST_QUEUED_FIRES,
    Answer,
    Decider,
    OpenQuestions,
    QueuedFire,
    note_dropped,
    runaway,
)
from prism.statechart._engine.writing import (
    Reporter,
    Writer,
    count_tick,
    write_kept,
    writer_of,
    writes_quietly,
)
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge, StateT, shared_edge
from prism.telemetry._instrument import (
    ChartBuilt,
    GuardEvaluated,
    TransitionDetails,
    engine_hooks,
    observe,
)
from prism.telemetry._loggers import somebody_listens


class Interpreter(Checks[StateT]):
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
        self._members: dict[Any, StateT] = {state: state for state in definition.states}
        # no dwell time is too long in a final state
        self._limits: dict[Any, float] = {
            **definition.timeouts,
            **dict.fromkeys(definition.final_states, inf),
        }
        self._reporter = reporter
        self._has_logger = reporter.has_logger
        self._clock = clock
        self._writers: dict[type, Writer] = {}
        self._quiet_writers: dict[type, Writer] = {}
        # by an agent's address: the thread that makes its transition, and the fires that wait
        self._firing: dict[int, tuple[int, deque[QueuedFire]]] = {}
        self._questions = OpenQuestions(reporter, definition)
        observe("chart_built", ChartBuilt, definition)

    def fire(  # noqa: C901 - written out for speed, as it says below
        self, agent: Any, trigger: str, context: Any = None, current_state: Never = NOT_GIVEN
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
            current_state: Never given. Calls written for engines that take it get an error that
                shows the right call.

        Returns:
            The agent's state once all that the event set off has run; None if nothing applied or it
            was queued.

        Raises:
            AgentError: (a TypeError) if the object has no ``state``, its class declares another
                enum as ``state_type`` than the chart's, or another thread fires on it.
            TypeError: If the arguments are in another order, or a current state is among them.
            UnknownStateError: If the agent is in a state that this chart does not define. A member
                of another enum is one, whatever its text; plain text is taken for the member.
            UnknownTriggerError: If the chart is strict and does not have the trigger.
            RunawayError: If the agent's actions go on firing without end.
        """
        if engine_hooks or self._firing or current_state is not NOT_GIVEN:
            refuse_state("fire", agent, trigger, current_state)
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
            self._require_trigger(trigger, context)
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

        if self._questions.by_agent:
            self._questions.drop(agent)

        dwell = write(agent, edge, self._clock(), context)
        if self._has_logger or somebody_listens():
            self._reporter.moved(agent, edge, dwell, context)

        return target

    @checks_reasoner_itself
    async def afire(
        self,
        agent: Any,
        trigger: str,
        context: Any = None,
        current_state: Never = NOT_GIVEN,
        *,
        reasoner: Decider,
    ) -> StateT | None:
        """Make the transition that the event calls for; a reasoner decides if several are enabled.

        In a decision state with more than one distinct enabled target the reasoner chooses among
        them. Everywhere else, and inside an action, where nothing can wait for an answer, this is
        exactly `fire`. When the answer arrives, the guard of the chosen transition is evaluated
        again. If it fails now, or the agent has moved, even if it came back, the answer is
        discarded and logged. A cancelled call leaves the agent as it was.

        The decision is announced as ``reasoner.decision``, by the reasoner or in its place.

        Args:
            agent: Anything with a writable ``state``.
            trigger: Name of the event.
            context: What the event is about.
            current_state: Never given, as in `fire`.
            reasoner: Chooses among the enabled targets.

        Returns:
            As `fire`; None if the answer was discarded.

        Raises:
            ReasonerError: If the reasoner answers with something outside the options.
        """
        require_reasoner(agent, trigger, current_state, reasoner)
        state = self._require_known_state(agent)
        if state not in self.definition.decision_states or id(agent) in self._firing:
            return self.fire(agent, trigger, context)

        candidates = self._enabled(agent, trigger, context)
        options = distinct(target for _, _, target, _ in candidates)
        if not options:
            return None
        if len(options) == 1:
            return self._run(agent, candidates[0], context)

        chosen, has_stayed = await self._questions.ask(reasoner, agent, trigger, options, context)
        if not has_stayed:
            self._reporter.discarded(agent, trigger, state, chosen, "moved")
            return None

        candidate = leading_to(chosen, candidates)
        if next(self._passing([candidate], agent, context), None) is None:
            self._reporter.discarded(agent, trigger, state, chosen, "not_enabled")
            return None

        return self._run(agent, candidate, context)

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
            context: What the event is about.
            asked_in: State in which the agent was asked; if it is in another one now, the answer no
                longer applies.
            quiet: Log no discarded answer: the caller says itself what came of it.

        Returns:
            As `fire`; None if no enabled transition leads to the target.
        """
        return self._fire_or_queue(agent, trigger, context, Answer(target, asked_in, quiet))

    def tick(self, agent: Any, context: Any = None) -> StateT | None:
        """Let one tick pass for an agent, and fire ``timeout`` if it has dwelt too long.

        The limit is ``chart.timeouts[state]`` where set, else ``agent.timeout_threshold``; the
        time-out fires when ``ticks_in_state`` is strictly greater (specification, FR-6.2). An
        object without ``ticks_in_state`` never times out, nor does an agent in a final state or on
        a chart without the trigger ``timeout``.

        Returns:
            The new state if the time-out moved the agent, else None.
        """
        # the usual case, without the properties of `StatechartMixin`
        if self._quiet_writers.get(agent.__class__) is write_kept and agent._state in self._rows:
            ticks = agent._ticks_in_state = agent._ticks_in_state + 1
            limit = self._limits.get(agent._state) or agent._timeout_threshold
        else:
            ticks, limit = self._dwell(agent)

        if ticks is None or limit is None or ticks <= limit or TIMEOUT not in self._triggers:
            return None
        return self.fire(agent, TIMEOUT, context)

    def enabled_targets(self, agent: Any, trigger: str, context: Any = None) -> list[StateT]:
        """Return the distinct targets whose guards pass now, in definition order.

        Nothing is changed.
        """
        return distinct(target for _, _, target, _ in self._enabled(agent, trigger, context))

    def enabled_triggers(self, agent: Any, context: Any = None) -> list[str]:
        """Return the events that would cause a transition now, in definition order.

        Nothing is changed. Guards are evaluated with this context, whatever the event.

        Args:
            agent: Anything with a ``state``.
            context: What the event would be about.

        Returns:
            The triggers of the agent's state that have a candidate whose guard passes.
        """
        row = self._rows[self._require_known_state(agent)]
        return [
            trigger
            for trigger in self._triggers
            if any(self._passing(row.get(trigger, ()), agent, context))
        ]

    def _dwell(self, agent: Any) -> tuple[int | None, float | None]:
        """Count one more tick in the state; return the ticks now, and the limit."""
        ticks = getattr(agent, "ticks_in_state", None)
        if ticks is not None:
            self._require_known_state(agent)
            self._writer_of(agent)
            ticks = count_tick(agent, ticks)

        own_limit = getattr(agent, "timeout_threshold", None)

        return ticks, self._limits.get(self._state_of(agent)) or own_limit

    # Choosing

    def _fire_or_queue(
        self, agent: Any, trigger: str, context: Any, answer: Answer | None = None
    ) -> StateT | None:
        # one look: another thread's transition may end between two
        firing = self._firing.get(id(agent))
        if firing is not None:
            thread, queue = firing
            self._require_one_thread(agent, thread)
            # a mistaken event is reported where it is fired, not where its turn comes
            self._require_trigger(trigger, context)
            queue.append(QueuedFire(trigger, context, answer))
            return None

        candidate = self._first_enabled(agent, trigger, context, answer)
        return None if candidate is None else self._run(agent, candidate, context)

    def _first_enabled(
        self, agent: Any, trigger: str, context: Any, answer: Answer | None
    ) -> Candidate[StateT] | None:
        candidates = self._candidates(agent, trigger, context)
        if answer is None:
            return next(self._passing(candidates, agent, context), None)

        target, asked_in, is_quiet = answer
        has_moved = asked_in is not None and asked_in != agent.state
        leading = [] if has_moved else [item for item in candidates if item[2] == target]
        for candidate in self._passing(leading, agent, context):
            return candidate

        # of an event that the chart does not have there is a warning already
        if not is_quiet and type(trigger) is str and trigger in self._triggers:
            state = agent.state if asked_in is None else asked_in
            self._reporter.discarded(
                agent, trigger, state, target, "moved" if has_moved else "not_enabled"
            )

        return None

    def _enabled(self, agent: Any, trigger: str, context: Any) -> list[Candidate[StateT]]:
        return list(self._passing(self._candidates(agent, trigger, context), agent, context))

    def _passing(
        self, candidates: Iterable[Candidate[StateT]], agent: Any, context: Any
    ) -> Iterator[Candidate[StateT]]:
        """Yield the candidates whose guards pass, in order; report the guards that raise."""
        for candidate in candidates:
            verdict = evaluate(candidate[0], agent, context)
            if engine_hooks and candidate[0] is not None:
                number = self._numbers[candidate[3]]
                observe("guard", GuardEvaluated, self.definition, number, agent, context, *verdict)

            if verdict.error is not None:
                self._reporter.guard_failed(verdict.error, agent, candidate[3])
            elif verdict is PASSED:
                yield candidate

    def _candidates(self, agent: Any, trigger: str, context: Any) -> tuple[Candidate[StateT], ...]:
        row = self._rows[self._require_known_state(agent)]
        try:
            return row[trigger]
        except (KeyError, TypeError):
            # nothing is wrong with an event that does not apply
            self._require_trigger(trigger, context)
            return ()

    # Committing

    def _run(self, agent: Any, candidate: Candidate[StateT], context: Any) -> StateT | None:
        """Make one transition and everything that its action queues, until the agent is at rest."""
        queue: deque[QueuedFire] = deque()
        firing = (get_ident(), queue)
        other = self._firing.setdefault(id(agent), firing)
        if other is not firing:
            self._require_one_thread(agent, other[0])

        try:
            self._make(agent, candidate, context)
            self._drain(agent, queue)
            return cast(StateT, self._members.get(agent.state, agent.state))
        except BaseException as error:
            note_dropped(error, self.definition.name, agent, queue)
            raise
        finally:
            del self._firing[id(agent)]

    def _drain(self, agent: Any, queue: deque[QueuedFire]) -> None:
        fired = 0
        while queue:
            trigger, context, answer = queue.popleft()
            fired += 1
            if fired > MOST_QUEUED_FIRES:
                raise runaway(self.definition.name, agent, trigger)

            following = self._first_enabled(agent, trigger, context, answer)
            if following is not None:
                self._make(agent, following, context)

    def _make(self, agent: Any, candidate: Candidate[StateT], context: Any) -> None:
        """Run the action and commit."""
        _, action, target, edge = candidate
        # looked up before the action runs, since it refuses classes that the chart cannot drive
        write = self._writers.get(agent.__class__) or self._writer_of(agent)
        if engine_hooks:
            self._observe_transition("transition_began", agent, edge, context)

        if action is not None:
            try:
                action(agent, context)
            except Exception as error:
                self._reporter.action_failed(error, agent, edge)

            edge = self._edge_after_action(agent, edge)

        if target != edge.from_state:
            dwell = write(agent, edge, self._clock(), context)
            if self._questions.by_agent:
                self._questions.drop(agent)
            if self._has_logger or somebody_listens():
                self._reporter.moved(agent, edge, dwell, context)

        if engine_hooks:
            self._observe_transition("transition", agent, candidate[3], context)

    def _edge_after_action(self, agent: Any, edge: Edge) -> Edge:
        """Report an action that moved the agent; the transition then starts from where it is."""
        state = agent.state
        if state == edge.from_state:
            return edge

        problem = (
            f"the action of {edge.trigger!r} moved the agent to {state_text(state)!r} itself: "
            "let it fire an event instead, which runs right after this transition"
        )
        self._reporter.action_failed(AgentError(problem), agent, edge)

        return shared_edge(self._members.get(state, state), edge.to_state, edge.trigger)

    def _writer_of(self, agent: Any) -> Writer:
        cls = agent.__class__
        writer = self._writers.get(cls)
        if writer is None:
            require_own_state_type(self._definition, agent)
            writer = self._writers[cls] = writer_of(cls)
            if writes_quietly(cls):
                self._quiet_writers[cls] = writer

        return writer

    # Observing

    def _observe_transition(self, hook: str, agent: Any, edge: Edge, context: Any) -> None:
        observe(hook, TransitionDetails, self.definition, self._numbers[edge], agent, context)

    @cached_property
    def _numbers(self) -> dict[Edge, int]:
        """The places of the transitions in the definition, by the edges of their candidates."""
        remaining = {
            (state, trigger): iter(candidates)
            for state, row in self._rows.items()
            for trigger, candidates in row.items()
        }
        return {
            next(remaining[item.source, item.trigger])[3]: number
            for number, item in enumerate(self.definition.transitions)
        }

"""The steps of a chart with composites, and the steps that follow without another event.

After every step eventless transitions are made, then what was raised is answered, until the agent
has settled (SCXML, appendix D, ``mainEventLoop``). Only then follows what its actions have queued.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from prism.statechart._engine.machine import PASSED, MachineError, Verdict, evaluate
from prism.statechart._engine.memory import forget, histories, memory_of, random_of, remember
from prism.statechart._engine.pending import MOST_QUEUED_FIRES, Choice, Run, restless
from prism.statechart._engine.rows import EVENTLESS, Candidate, NestedRows, Resolver
from prism.statechart._engine.writing import Writer, restart_time
from prism.statechart._identity import shown_name
from prism.statechart._tree.numbers import Arc, Plan
from prism.statechart.states import state_text
from prism.statechart.transitions import Action, Edge
from prism.telemetry._instrument import GuardEvaluated, TransitionDetails, engine_hooks, observe


class Steps:
    """Makes the steps of a chart with composites.

    Args:
        chart: The chart.
        rows: Its transitions as candidates.
    """

    def __init__(self, chart: Any, rows: NestedRows) -> None:
        self._chart = chart
        self._rows = rows
        self._definition = chart._definition

    # Firing

    def fire(self, agent: Any, trigger: str, context: Any) -> Any:
        """Make the first transitions that an event enables: see `Statechart.fire`."""
        try:
            candidates = self._rows[agent.state][trigger]
        except (AttributeError, KeyError, TypeError):
            candidates = self._candidates(agent, trigger)
            if not candidates:
                return self._refused(agent, trigger, context, candidates)

        first = next(self.passing(candidates, agent, context), None)
        made = None if first is None else self._made(agent, first, context)
        return self._refused(agent, trigger, context, candidates) if made is None else made

    def _made(self, agent: Any, candidate: Candidate, context: Any) -> Any:
        """Make a candidate; return None if it turns out that no guard passes."""
        resolved = self._resolved(candidate, agent, context)
        if resolved is None:
            return None

        _, _, target, edge = resolved
        write = self._chart._quiet_writers.get(type(agent))
        # without code of the application's, nothing can fire in turn
        if engine_hooks or write is None or edge.leaves is not agent.state:
            return self.run(agent, resolved, context)
        self._chart._commit(agent, edge, write, context)
        return target

    def run(self, agent: Any, candidate: Candidate, context: Any) -> Any:
        """Make one transition and everything that follows; return the agent's state."""
        made = self._chart._complete(agent, self._steps, agent, candidate, context)
        return agent.state if made else None

    def begin(self, agent: Any, context: Any) -> None:
        """Enter the state in which an agent is."""
        if self._rows.planner.remembers:
            forget(memory_of(self._definition.name, agent))
        is_initial = agent.state == self._definition.initial
        self.run(agent, self._rows.beginning(None if is_initial else agent.state), context)

    def alone(self, agent: Any, arc: Arc, context: Any) -> Any:
        """Make one transition whose time has come, and no other of its trigger.

        None is made where a rate's function has moved the agent away.
        """
        candidate = self._rows.alone(agent.state, arc)
        if candidate is None:
            return None
        passing = next(self.passing([candidate], agent, context), None)
        return None if passing is None else self.run(agent, passing, context)

    def settle(self, agent: Any, context: Any) -> Any:
        """Make the eventless transitions that are enabled now, if any are."""
        following = self._reacting(agent, EVENTLESS, context)
        return None if following is None else self.run(agent, following, context)

    def _refused(
        self, agent: Any, trigger: str, context: Any, candidates: Sequence[Candidate]
    ) -> None:
        guards = self._guard_names(agent.state, trigger)
        self._chart._reporter.refused(agent, state_text(agent.state), trigger, guards, context)
        if self._definition.strict and not candidates:
            raise MachineError(
                f"{self._definition.name}: Can't trigger event {trigger} from state "
                f"{state_text(agent.state)}!"
            )

    def _guard_names(self, state: Any, trigger: str) -> Iterator[str]:
        for arc in self._rows.arcs(state, trigger):
            yield shown_name(arc.guard, "guard") or ""

    # Choosing

    def enabled(self, agent: Any, trigger: str, context: Any) -> Iterator[Choice]:
        """Yield the transitions whose guards pass now, in order."""
        for each in self._opened(self._candidates(agent, trigger), agent, context):
            yield Choice(each[2], each, each[3])

    def carrying_out(
        self,
        agent: Any,
        trigger: str,
        target: Any,
        context: Any,
        asked_in: Any,
        chosen: Candidate | None,
    ) -> Iterator[Choice]:
        """Yield the transitions that carry out an answer and are enabled now."""
        candidates: Iterable[Candidate] = self._candidates(agent, trigger)
        numbers = None if chosen is None else {chosen[3].plan.numbers}
        if asked_in not in (None, agent.state):
            # other regions have moved, so the same transitions lead to another target now
            about = self._rows.leaves_asked(asked_in, trigger)
            candidates = [self._rows.about(agent.state, trigger, about)]
            then = self._rows.about(asked_in, trigger, about)[3].plan
            numbers = numbers or self._leading_to(target, then, agent)

        for each in self._opened(candidates, agent, context):
            if each[2] == target if numbers is None else each[3].plan.numbers in numbers:
                yield Choice(each[2], each, each[3])

    def _leading_to(self, target: Any, resolver: Resolver, agent: Any) -> set[tuple[int, ...]]:
        """Return the numbers of the transitions that lead to a target, guards ignored."""
        enabled = resolver.enabled(lambda _: True, partial(self._histories, agent))
        return {each[3].plan.numbers for each in enabled if each[2] == target}

    def _candidates(self, agent: Any, trigger: str) -> tuple[Candidate, ...]:
        row = self._rows[self._chart._require_known_state(agent)]
        try:
            found: tuple[Candidate, ...] = row[trigger]
        except (KeyError, TypeError):
            # nothing is wrong with an event that does not apply
            self._chart._require_trigger(trigger)
            return ()
        return found

    def _opened(
        self, candidates: Iterable[Candidate], agent: Any, context: Any
    ) -> Iterator[Candidate]:
        """Yield the candidates that pass; one that stands for several is replaced by them."""
        for candidate in self.passing(candidates, agent, context):
            edge = candidate[3]
            if edge.plan.is_open:
                yield from edge.plan.enabled(
                    self._asking(edge, agent, context), partial(self._histories, agent)
                )
            else:
                yield candidate

    def _resolved(self, candidate: Candidate, agent: Any, context: Any) -> Candidate | None:
        """Resolve a candidate now; return None if no guard passes, or chance decides against it."""
        edge = candidate[3]
        if not edge.plan.is_open:
            return candidate

        found: Candidate | None = edge.plan.resolve(
            self._asking(edge, agent, context),
            lambda: random_of(self._definition.name, agent).random(),
            lambda: self._histories(agent),
        )
        return found

    def _asking(self, edge: Edge, agent: Any, context: Any) -> Callable[[Arc], bool]:
        """Return what evaluates guards, each once though several regions share a transition."""
        answers: dict[Arc, bool] = {}

        def ask(arc: Arc) -> bool:
            if arc.guard is None:
                return True
            passes = answers.get(arc)
            if passes is None:
                verdict = evaluate(arc.guard, agent, context)
                if engine_hooks or verdict.error is not None:
                    self._tell_guard(verdict, (arc.place,), edge, agent, context)
                passes = answers[arc] = verdict is PASSED
            return passes

        return ask

    def _tell_guard(
        self, verdict: Verdict, numbers: tuple[int, ...], edge: Edge, agent: Any, context: Any
    ) -> None:
        """Tell who observes guards about one, and report one that raised."""
        if engine_hooks:
            observe("guard", GuardEvaluated, self._definition, numbers, agent, context, *verdict)
        if verdict.error is not None:
            self._chart._reporter.guard_failed(verdict.error, agent, edge)

    def _histories(self, agent: Any) -> dict[int, tuple[int, ...]]:
        return histories(memory_of(self._definition.name, agent), self._rows.tree)

    def passing(
        self, candidates: Iterable[Candidate], agent: Any, context: Any
    ) -> Iterator[Candidate]:
        """Yield the candidates whose guards pass, in order; report the guards that raise."""
        for candidate in candidates:
            guard, _, _, edge = candidate
            if guard is None:
                yield candidate
                continue

            verdict = evaluate(guard, agent, context)
            if engine_hooks or verdict.error is not None:
                self._tell_guard(verdict, edge.plan.numbers, edge, agent, context)
            if verdict is PASSED:
                yield candidate

    # Making

    def _steps(self, run: Run, agent: Any, candidate: Candidate, context: Any) -> bool:
        """Make one step and those that follow from it; return False if none is enabled."""
        step = self._resolved(candidate, agent, context)
        if step is None:
            return False

        raised: deque[str] = deque()
        for _ in range(MOST_QUEUED_FIRES + 1):
            plan: Plan = step[3].plan
            self._make_step(run, agent, step, context)
            raised.extend(plan.raised)
            if not (plan.settles or raised):
                return True

            step, context = self._following(agent, context, raised)
            if step is None:
                return True

        raise restless(self._definition.name, agent)

    def _following(
        self, agent: Any, context: Any, raised: deque[str]
    ) -> tuple[Candidate | None, Any]:
        """Return the next step that needs no further event, and its context.

        Eventless transitions come first, then those that what was raised enables.
        """
        step = self._reacting(agent, EVENTLESS, context)
        while step is None and raised:
            # nothing says what is done is about
            context = None
            step = self._reacting(agent, raised.popleft(), context)

        return step, context

    def _reacting(self, agent: Any, trigger: Any, context: Any) -> Candidate | None:
        candidates = self._rows[agent.state].get(trigger, ())
        first = next(self.passing(candidates, agent, context), None)
        return None if first is None else self._resolved(first, agent, context)

    def _make_step(self, run: Run, agent: Any, candidate: Candidate, context: Any) -> None:
        """Run exit actions and the transition's own, commit, and run entry actions.

        Each action runs while its states are active. One that fails does not stop the others.
        """
        edge = candidate[3]
        plan: Plan = edge.plan
        # looked up before actions run, since both refuse what the chart cannot drive
        write = self._chart._writer_of(agent)
        if plan.notes is not None:
            memory_of(self._definition.name, agent)
        if engine_hooks:
            self._observe("transition_began", agent, edge, context)

        for action, active in plan.before:
            self._act(run, active, action, agent, edge, context)

        run.active, made = None, edge
        if agent.state is not edge.from_state:
            made = self._chart._edge_after_action(agent, edge)
        self._enter(run, agent, edge, made, write, context)
        if engine_hooks:
            self._observe("transition", agent, edge, context)

    def _act(
        self, run: Run, active: Any, action: Action, agent: Any, edge: Edge, context: Any
    ) -> None:
        """Run an action while its states are active."""
        run.active, result = active, None
        try:
            result = action(agent, context)
        except Exception as error:
            self._chart._reporter.action_failed(error, agent, edge)
        if result is not None:
            self._chart._wait_for(result, agent, edge)

    def _enter(
        self, run: Run, agent: Any, edge: Edge, made: Edge, write: Writer, context: Any
    ) -> None:
        """Commit, remember what was left, and run entry actions."""
        plan: Plan = edge.plan
        if plan.moves if made is edge else made.leaves is not None:
            self._chart._record(agent, made, write, context)
        elif plan.exits:
            restart_time(agent)

        if plan.notes is not None:
            remember(memory_of(self._definition.name, agent), plan.notes)

        entries = iter(plan.after)
        try:
            for action, active in entries:
                self._act(run, active, action, agent, edge, context)
        except Exception as error:
            error.add_note(
                f"the agent is in {edge.to_text!r} nevertheless; "
                f"{len([*entries])} more entry actions did not run"
            )
            raise

        run.active = None

    def _observe(self, hook: str, agent: Any, edge: Edge, context: Any) -> None:
        numbers = edge.plan.numbers
        observe(hook, TransitionDetails, self._definition, numbers, agent, context)

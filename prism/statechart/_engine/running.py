"""The steps of a chart with composites, and the steps that follow without another event.

After every step eventless transitions are made, then what was raised is answered, until the agent
has settled (SCXML, appendix D, ``mainEventLoop``). Only then follows what its actions have queued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from prism.statechart._engine.machine import PASSED, MachineError, evaluate
from prism.statechart._engine.memory import forget, histories, memory_of, random_of, remember
from prism.statechart._engine.pending import MOST_QUEUED_FIRES, Choice, Run, restless
from prism.statechart._engine.rows import EVENTLESS, NestedRows, Resolver
from prism.statechart._engine.writing import restart_time
from prism.statechart._identity import shown_name
from prism.statechart._tree.numbers import Arc, Call, Plan
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge
from prism.telemetry.instruments import GuardEvaluated, TransitionDetails, engine_hooks, observe


class Steps:
    """Makes the steps of a chart with composites.

    Args:
        chart: The chart.
        rows: Its transitions.
    """

    def __init__(self, chart: Any, rows: NestedRows) -> None:
        self._chart = chart
        self._rows = rows
        self._definition = chart._definition
        # only an error keeps raised events from being answered at once
        self._keeps_raised = self._definition.strict and self._definition.hierarchy.answers_done

    # Firing

    def fire(self, agent: Any, trigger: str, context: Any) -> Any:
        """Make the first transitions that an event enables: see `Statechart.fire`."""
        if self._keeps_raised and memory_of(self._definition, agent).get("raised"):
            self.run(agent, None, None)
        resolver = self._resolver(agent, trigger)
        step = None if resolver is None else self._resolved(resolver, agent, context)
        if step is None:
            return self._refused(agent, trigger, context, is_known=resolver is not None)

        write = self._chart._quiet_writers.get(type(agent))
        # without code of the application's, nothing can fire in turn
        if engine_hooks or write is None or step.leaves is not agent.state:
            return self.run(agent, step, context)
        self._chart._commit(agent, step, write, context)
        return step.to_state

    def _resolver(self, agent: Any, trigger: str) -> Resolver | None:
        """Return what chooses among the transitions that may react; None if there are none."""
        row = self._rows[self._chart._require_known_state(agent)]
        try:
            resolver: Resolver | None = row[trigger]
        except TypeError:
            # no event is unhashable
            resolver = None
        if resolver is None:
            self._chart._require_trigger(trigger)
        return resolver

    def _resolved(self, resolver: Resolver, agent: Any, context: Any) -> Edge | None:
        """Return the step that is enabled now; None if no guard passes, or by chance."""
        return resolver.resolve(
            self._asking(agent, context),
            lambda: random_of(self._definition.name, agent).random(),
            partial(self._histories, agent),
        )

    def run(self, agent: Any, step: Edge | None, context: Any) -> Any:
        """Make one transition, or what needs no event, and everything that follows.

        Return the agent's state; None if nothing was enabled.
        """
        made = self._chart._complete(agent, self._steps, agent, step, context)
        return agent.state if made else None

    def begin(self, agent: Any, context: Any) -> None:
        """Enter the state in which an agent is."""
        if self._rows.planner.remembers or self._keeps_raised:
            forget(memory_of(self._definition, agent))
        is_initial = agent.state == self._definition.initial
        self.run(agent, self._rows.beginning(None if is_initial else agent.state), context)

    def alone(self, agent: Any, arc: Arc, context: Any) -> Any:
        """Make one transition whose time has come, and no other of its trigger.

        None is made where a rate's function has moved the agent away.
        """
        resolver = self._rows.alone(agent.state, arc)
        step = None if resolver is None else self._resolved(resolver, agent, context)
        return None if step is None else self.run(agent, step, context)

    def _refused(self, agent: Any, trigger: str, context: Any, *, is_known: bool) -> None:
        guards = self._guard_names(agent.state, trigger)
        self._chart._reporter.refused(agent, state_text(agent.state), trigger, guards, context)
        if self._definition.strict and not is_known:
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
        resolver = self._resolver(agent, trigger)
        if resolver is not None:
            for each in self._enabled(resolver, agent, context):
                yield Choice(each.to_state, each, each)

    def _enabled(self, resolver: Resolver, agent: Any, context: Any) -> Iterator[Edge]:
        return resolver.enabled(self._asking(agent, context), partial(self._histories, agent))

    def carrying_out(
        self,
        agent: Any,
        trigger: str,
        target: Any,
        context: Any,
        asked_in: Any,
        chosen: Edge | None,
    ) -> Iterator[Choice]:
        """Yield the transitions that carry out an answer and are enabled now."""
        resolver = self._resolver(agent, trigger)
        numbers = None if chosen is None else {chosen.plan.numbers}
        if asked_in not in (None, agent.state):
            # other regions have moved, so the same transitions lead to another target now
            about = self._rows.leaves_asked(asked_in, trigger)
            resolver = self._rows.about(agent.state, trigger, about)
            then = self._rows.about(asked_in, trigger, about)
            numbers = numbers or self._leading_to(target, then, agent)

        for each in () if resolver is None else self._enabled(resolver, agent, context):
            if each.to_state == target if numbers is None else each.plan.numbers in numbers:
                yield Choice(each.to_state, each, each)

    def _leading_to(self, target: Any, resolver: Resolver, agent: Any) -> set[tuple[int, ...]]:
        """Return the numbers of the transitions that lead to a target, guards ignored."""
        enabled = resolver.enabled(lambda _: True, partial(self._histories, agent))
        return {each.plan.numbers for each in enabled if each.to_state == target}

    def _asking(self, agent: Any, context: Any) -> Callable[[Arc], bool]:
        """Return what evaluates guards, each once though several regions share a transition."""
        answers: dict[Arc, bool] = {}
        state = agent.state

        def ask(arc: Arc) -> bool:
            if arc.guard is None:
                return True
            passes = answers.get(arc)
            if passes is None:
                verdict = evaluate(arc.guard, agent, context)
                if engine_hooks:
                    chart, numbers = self._definition, (arc.place,)
                    observe("guard", GuardEvaluated, chart, numbers, agent, context, *verdict)
                if verdict.error is not None:
                    edge = self._rows.alone(state, arc).together((arc,))
                    self._chart._reporter.guard_failed(verdict.error, agent, edge)
                passes = answers[arc] = verdict is PASSED
            return passes

        return ask

    def _histories(self, agent: Any) -> dict[int, tuple[int, ...]]:
        return histories(memory_of(self._definition, agent), self._rows.tree)

    # Making

    def _steps(self, run: Run, agent: Any, step: Edge | None, context: Any) -> bool:
        """Make one step and those that follow from it; return False if none is enabled.

        What an error leaves unanswered is kept for the next event or tick.
        """
        memory = memory_of(self._definition, agent) if self._keeps_raised else {}
        run.raised, run.answered = memory.get("raised", []), 0
        if step is None:
            step, context = self._following(run, agent, context)
        if step is None:
            return False

        memory["raised"] = run.raised
        for _ in range(MOST_QUEUED_FIRES + 1):
            self._make_step(run, agent, step, context)
            settles = step.plan.settles or run.raised
            step, context = self._following(run, agent, context) if settles else (None, None)
            if step is None:
                del memory["raised"]
                return True

        raise restless(self._definition.name, agent)

    def _following(self, run: Run, agent: Any, context: Any) -> tuple[Edge | None, Any]:
        """Return the next step that needs no further event, and its context.

        Eventless transitions come first, then those that what was raised enables. What a step
        answers stays among the raised until the step is made.
        """
        run.answered = 0
        step = self._reacting(agent, EVENTLESS, context)
        while step is None and run.raised:
            # nothing says what is done is about
            context = None
            step = self._reacting(agent, run.raised[0], context)
            if step is None:
                del run.raised[0]
            else:
                run.answered = 1

        return step, context

    def _reacting(self, agent: Any, trigger: Any, context: Any) -> Edge | None:
        resolver = self._rows[agent.state][trigger]
        return None if resolver is None else self._resolved(resolver, agent, context)

    def _make_step(self, run: Run, agent: Any, edge: Edge, context: Any) -> None:
        """Run exit actions and the transition's own, commit, and run entry actions.

        Each action runs while its states are active. One that fails does not stop the others.
        """
        plan: Plan = edge.plan
        # looked up before actions run, since both refuse what the chart cannot drive
        write = self._chart._writer_of(agent)
        memory = {} if plan.notes is None else memory_of(self._definition, agent)
        if engine_hooks:
            self._observe("transition_began", agent, edge, context)

        self._act(run, agent, edge, iter(plan.before), context)
        made = edge
        if agent.state is not edge.from_state:
            made = self._chart._edge_after_action(agent, edge)
        if plan.moves if made is edge else made.leaves is not None:
            self._chart._record(agent, made, write, context)
        elif plan.exits:
            restart_time(agent)
        if plan.notes is not None:
            remember(memory, plan.notes)
        run.raised[: run.answered] = []
        run.raised += plan.raised

        entries = iter(plan.after)
        try:
            self._act(run, agent, edge, entries, context)
        except Exception as error:
            error.add_note(
                f"the agent is in {edge.to_text!r} nevertheless; "
                f"{len([*entries])} more entry actions did not run"
            )
            raise
        schedule = self._chart._schedule
        if schedule is not None and plan.notes is not None and agent.state == edge.to_state:
            for state in filter(schedule.after.__contains__, plan.notes.started):
                schedule.begin(self._chart, agent, state, context)
        if engine_hooks:
            self._observe("transition", agent, edge, context)

    def _act(self, run: Run, agent: Any, edge: Edge, calls: Iterator[Call], context: Any) -> None:
        """Run the actions of a step, each while its states are active; report those that fail."""
        for action, active in calls:
            run.active = active
            self._chart._run_action(action, agent, edge, context)
        run.active = None

    def _observe(self, hook: str, agent: Any, edge: Edge, context: Any) -> None:
        numbers = edge.plan.numbers
        observe(hook, TransitionDetails, self._definition, numbers, agent, context)

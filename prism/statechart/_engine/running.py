"""The steps of a chart with composites, and the steps that follow without another event.

After every step eventless transitions are made, then what was raised is answered, until the agent
has settled (SCXML, appendix D, ``mainEventLoop``). Only then follows what its actions have queued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from threading import get_ident
from typing import Any

from prism.statechart._engine.machine import PASSED, MachineError, evaluate
from prism.statechart._engine.pending import MOST_QUEUED_FIRES, Choice, Run, drain, restless
from prism.statechart._engine.rows import EVENTLESS, Call, NestedRows, Reaction
from prism.statechart._engine.writing import restart_time
from prism.statechart._numbers import Arc
from prism.statechart.memory import forget, histories, memory_of, random_of, remember
from prism.statechart.names import shown_name
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge, trigger_text
from prism.telemetry.instruments import GuardEvaluated, TransitionDetails, engine_hooks, observe
from prism.telemetry.loggers import somebody_listens


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
        self._keeps_raised = self._definition.strict and rows.hierarchy.answers_done

    # Firing

    def fire(self, agent: Any, trigger: str, context: Any) -> Any:
        """Make the first transitions that an event enables: see `Statechart.fire`."""
        if self._keeps_raised and memory_of(self._definition, agent).get("raised"):
            self.run(agent, None, None)
        reaction = self._reaction(agent, trigger)
        if reaction is None:
            return self._refused(agent, trigger, context, ())
        step = reaction.sure or self._first(reaction, agent, context)
        if step is None:
            return self._refused(agent, trigger, context, reaction.groups)

        # without code of the application's, nothing can fire in turn; `run` takes twice as long
        chart = self._chart
        write = chart._quiet_writers.get(type(agent))
        is_moving = step.leaves is agent.state and write is not None
        if not (is_moving and step.plan.is_quiet) or engine_hooks:
            return self.run(agent, step, context)
        dwell = write(agent, step, chart._clock(), context)
        if chart._has_logger or somebody_listens():
            chart._reporter.moved(agent, step, dwell, context)
        return step.to_state

    def _reaction(self, agent: Any, trigger: str) -> Reaction | None:
        """Return what may react to an event of an agent; None if nothing does."""
        try:
            state = agent.state
            reaction = self._rows.reaction(state, trigger)
        except (AttributeError, KeyError, TypeError):
            reaction = None
        if reaction is None or reaction.place.state is not state:
            self._chart._require_known_state(agent)
            self._chart._require_trigger(trigger)
        return reaction

    def run(self, agent: Any, step: Edge | None, context: Any) -> Any:
        """Make one step, or what needs no event, and everything that follows.

        Return the agent's state; None if nothing was enabled.
        """
        firing, key, run = self._chart._firing, id(agent), Run()
        if firing.setdefault(key, run) is not run:
            made = self._chart._complete(agent, self._settle, agent, step, context)
            return agent.state if made else None

        # from here on this is `_complete`, written out: by its calls, a fire with entry and exit
        # takes 2.6 times as long as a flat one, instead of 2.2
        run.thread = get_ident()
        try:
            if step is None or step.plan.settles or self._keeps_raised:
                made = self._settle(run, agent, step, context)
            else:
                made = self._make(run, agent, step, context)
            if run.queue:
                drain(self._definition.name, agent, run)
        finally:
            del firing[key]
        return agent.state if made else None

    def begin(self, agent: Any, context: Any) -> None:
        """Enter the state in which an agent is."""
        if self._rows.hierarchy.remembers or self._keeps_raised:
            forget(memory_of(self._definition, agent))
        is_initial = agent.state == self._definition.initial
        self.run(agent, self._rows.beginning(None if is_initial else agent.state), context)

    def alone(self, arc: Arc, agent: Any, context: Any = None) -> Any:
        """Make one transition whose time has come, and no other of its trigger.

        None is made where a rate's function has moved the agent away.
        """
        reaction = self._rows.alone(agent.state, trigger_text(arc.written.trigger), [arc])
        step = None if reaction is None else self._first(reaction, agent, context)
        return None if step is None else self.run(agent, step, context)

    def _refused(
        self, agent: Any, trigger: str, context: Any, groups: Iterable[Iterable[Arc]]
    ) -> None:
        arcs = dict.fromkeys(arc for group in groups for arc in group)
        guards = (shown_name(arc.guard, "guard") or "" for arc in arcs)
        self._chart._reporter.refused(agent, state_text(agent.state), trigger, guards, context)
        if self._definition.strict and not groups:
            raise MachineError(
                f"{self._definition.name}: Can't trigger event {trigger} from state "
                f"{state_text(agent.state)}!"
            )

    # Choosing

    def _first(self, reaction: Reaction, agent: Any, context: Any) -> Edge | None:
        """Return the step that is enabled now; None if no guard passes, or by chance."""
        return reaction.first(
            self._asking(agent, context),
            lambda: random_of(agent).random(),
            partial(self._histories, agent),
        )

    def enabled(self, agent: Any, trigger: str, context: Any) -> Iterator[Choice]:
        """Yield the steps that pass now, in order."""
        reaction = self._reaction(agent, trigger)
        if reaction is not None:
            ask, remembered = self._asking(agent, context), partial(self._histories, agent)
            for step in reaction.enabled(ask, remembered):
                yield Choice(step.to_state, step, step)

    def carrying_out(
        self, agent: Any, trigger: str, target: Any, context: Any, asked_in: Any
    ) -> Iterator[Choice]:
        """Yield the steps that carry out an answer and are enabled now.

        Other regions may have moved since the agent was asked. Then the same transitions lead to
        another target.
        """
        self._chart._require_trigger(trigger)
        ask, remembered = self._asking(agent, context), partial(self._histories, agent)
        then = self._rows.reaction(agent.state if asked_in is None else asked_in, trigger)
        for step in () if then is None else then.enabled(lambda _: True, remembered):
            arcs = step.plan.arcs
            now = self._rows.alone(agent.state, trigger, arcs)
            if step.to_state == target and now is not None and all(map(ask, arcs)):
                made = now.together(arcs, remembered)
                yield Choice(made.to_state, made, made)

    def _asking(self, agent: Any, context: Any) -> Callable[[Arc], bool]:
        """Return what evaluates guards, each once though several regions share a transition."""
        answers: dict[Arc, bool] = {}
        state = agent.state

        def ask(arc: Arc) -> bool:
            if arc.guard is None:
                return True
            if arc not in answers:
                verdict = evaluate(arc.guard, agent, context)
                if engine_hooks:
                    chart, numbers = self._definition, (arc.place,)
                    observe("guard", GuardEvaluated, chart, numbers, agent, context, *verdict)
                if verdict.error is not None:
                    self.report(verdict.error, agent, state, arc)
                answers[arc] = verdict is PASSED
            return answers[arc]

        return ask

    def report(self, error: Exception, agent: Any, state: Any, arc: Arc) -> None:
        """Report a function of a transition that failed in a state of the agent's."""
        step = self._rows.step(state, trigger_text(arc.written.trigger), (arc,))
        self._chart._reporter.guard_failed(error, agent, step)

    def _histories(self, agent: Any) -> dict[int, tuple[int, ...]]:
        return histories(memory_of(self._definition, agent), self._rows.tree)

    # Making

    def _settle(self, run: Run, agent: Any, step: Edge | None, context: Any) -> bool:
        """Make one step and those that follow from it; return False if none is enabled.

        What an error leaves unanswered is kept for the next event or tick.
        """
        kept = memory_of(self._definition, agent) if self._keeps_raised else None
        if kept:
            run.raised = kept.pop("raised", ())
        if step is None:
            step, context = self._next(run, agent, context)
        made = 0
        try:
            while step is not None:
                self._make(run, agent, step, context)
                made += 1
                if not (step.plan.settles or run.raised):
                    break
                if made > MOST_QUEUED_FIRES:
                    raise restless(self._definition.name, agent)
                step, context = self._next(run, agent, context)
        finally:
            if kept is not None and run.raised:
                kept["raised"] = [*run.raised]
        return made > 0

    def _next(self, run: Run, agent: Any, context: Any) -> tuple[Edge | None, Any]:
        """Return the next step that needs no further event, and its context.

        Eventless transitions come first, then those that what was raised enables. That stays among
        the raised until the step is made.
        """
        for number, event in enumerate((EVENTLESS, *run.raised)):
            reaction = self._rows.reaction(agent.state, event)
            # nothing says what is done is about
            context = None if number else context
            step = None if reaction is None else self._first(reaction, agent, context)
            if step is not None:
                run.answered = number
                return step, context
        run.raised = ()
        return None, None

    def _make(self, run: Run, agent: Any, edge: Edge, context: Any) -> bool:
        """Run exit actions and the transition's own, commit, and run entry actions.

        Each action runs while its states are active. One that fails does not stop the others.
        """
        chart, plan = self._chart, edge.plan
        # looked up before actions run, since both refuse what the chart cannot drive
        write = chart._writers.get(type(agent)) or chart._writer_of(agent)
        memory = memory_of(self._definition, agent) if plan.remembers else None
        if plan.before:
            self._act(run, agent, edge, plan.before, context)

        actual = edge
        if agent.state is not edge.from_state:
            actual = chart._edge_after_action(agent, edge)
        if actual.leaves is not None:
            chart._commit(agent, actual, write, context)
        elif plan.exits:
            restart_time(agent)
        if memory is not None:
            remember(memory, plan)
        if run.answered or plan.raised:
            run.raised = (*run.raised[run.answered :], *plan.raised)
            run.answered = 0

        if plan.after:
            self._act(run, agent, edge, plan.after, context)
        if plan.started and chart._schedule is not None and agent.state == edge.to_state:
            chart._schedule.begin(chart, agent, plan.started, context)
        if engine_hooks:
            numbers = tuple(arc.place for arc in plan.arcs)
            observe("transition", TransitionDetails, self._definition, numbers, agent, context)
        return True

    def _act(self, run: Run, agent: Any, edge: Edge, calls: Sequence[Call], context: Any) -> None:
        """Run the actions of a step, each while its states are active; report those that fail."""
        run_action = self._chart._run_action
        for action, run.active in calls:
            try:
                run_action(action, agent, edge, context)
            except Exception as error:  # of a strict chart
                rest = len(calls) - calls.index((action, run.active)) - 1
                state = state_text(agent.state)
                error.add_note(f"the agent is in {state!r}; {rest} more actions did not run")
                raise
        run.active = None

"""The steps of a chart with composites, and the steps that follow without another event.

After every step eventless transitions are made, then what was raised is answered, until the agent
has settled (SCXML, appendix D, ``mainEventLoop``). Only then follows what its actions have queued.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

from prism.errors import RunawayError
from prism.statechart._definition import Definition
from prism.statechart._engine.machine import MachineError, Verdict
from prism.statechart._engine.making import MOST_QUEUED_FIRES, Faults
from prism.statechart._engine.rows import EVENTLESS, Moment, NestedRows, Reaction
from prism.statechart._engine.timing import Schedule
from prism.statechart._hierarchy import Arc, Hierarchy
from prism.statechart.memory import forget, memory_of, remember
from prism.statechart.names import agent_name, shown_name
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge, trigger_text
from prism.telemetry.events import GUARD_FAILED
from prism.telemetry.instruments import GuardEvaluated, TransitionDetails, engine_hooks, observe


class Steps:
    """Makes the steps of a chart with composites.

    Args:
        chart: The chart.
        hierarchy: Its states and transitions.

    Attributes:
        definition: The definition of the chart.
        rows: What may react, and the steps that follow.
        schedule: What a tick makes.
    """

    def __init__(self, chart: Any, hierarchy: Hierarchy) -> None:
        self._chart = chart
        self.definition: Definition[Any] = chart.definition
        self.rows: NestedRows = NestedRows(hierarchy)
        self.schedule: Schedule = Schedule(chart, self)

    # Firing

    def fire(self, agent: Any, trigger: str, context: Any) -> Any:
        """Make the first transitions that an event enables: see `Statechart.fire`."""
        try:
            state = agent.state
            reaction = self.rows.reaction(state, trigger)
            is_sound = reaction is not None and reaction.place.state is state
        except (AttributeError, KeyError, TypeError):
            is_sound = False
        if not is_sound:
            state = self._chart._require_known_state(agent)
            self._chart._require_trigger(trigger)
            reaction = self.rows.reaction(state, trigger)
        step = self._first(reaction, agent, context)
        if step is not None:
            return self.run(agent, step, context)

        groups = () if reaction is None else reaction.groups
        guards = (shown_name(arc.written.guard, "guard") for arc in dict.fromkeys(chain(*groups)))
        state = state_text(agent.state)
        self._chart._reporter.refused(agent, state, trigger, guards, context)
        if self.definition.strict and reaction is None:
            raise MachineError(
                f"{self.definition.name}: Can't trigger event {trigger} from state {state}!"
            )
        return None

    def run(self, agent: Any, step: Edge | None, context: Any) -> Any:
        """Make one step, or what needs no event, and everything that follows.

        Return the agent's state; None if nothing was enabled.
        """
        if not self._chart._complete(agent, partial(self._settle, agent, step, context)):
            return None
        state = agent.state
        return self._chart._member(state) if type(state) is str else state

    def begin(self, agent: Any, context: Any) -> None:
        """Enter the state in which an agent is."""
        if self.rows.tree.kept or self.rows.tree.timed:
            forget(memory_of(agent))
        self.run(agent, self.rows.beginning(agent.state), context)

    def alone(self, arc: Arc, agent: Any, context: Any = None) -> Any:
        """Make one transition whose time has come, and no other of its trigger.

        None is made where a rate's function has moved the agent away.
        """
        step = self._first(self.rows.alone(agent.state, arc), agent, context)
        return None if step is None else self.run(agent, step, context)

    # Choosing

    def _first(self, reaction: Reaction | None, agent: Any, context: Any) -> Edge | None:
        """Return the step that is enabled now; None if no guard passes, or by chance."""
        if reaction is None:
            return None
        return reaction.sure or reaction.first(_Asking(self, agent, context))

    def enabled(self, agent: Any, trigger: str, context: Any) -> Iterator[Edge]:
        """Yield the steps that pass now, in order."""
        reaction = self.rows.reaction(agent.state, trigger)
        if reaction is not None:
            yield from reaction.enabled(_Asking(self, agent, context))

    def report(self, error: Exception, agent: Any, state: Any, arc: Arc) -> None:
        """Report a function of a transition that failed in a state of the agent's."""
        step = self.rows.step(state, trigger_text(arc.written.trigger), (arc,))
        self._chart._reporter.failed(GUARD_FAILED, error, agent, step)

    # Making

    def _settle(self, agent: Any, step: Edge | None, context: Any) -> bool:
        """Make one step and those that follow from it; return False if none is enabled.

        In a strict chart, an error before the first step commits changes nothing. A later one stops
        nothing that follows, and is raised in the end.
        """
        raised: deque[str] = deque()
        faults, made = Faults(), 0
        if step is None:
            step, context = self._next(raised, agent, context, faults)
        while step is not None:
            self._make(agent, step, context, faults, is_first=not made)
            raised += step.plan.raised
            made += 1
            if made > MOST_QUEUED_FIRES:
                raise RunawayError(
                    f"chart {self.definition.name!r}: agent {agent_name(agent)!r} did not settle "
                    f"within {MOST_QUEUED_FIRES} steps; it is now in {state_text(agent.state)!r}: "
                    "give the eventless transitions there a guard that ends them"
                )
            if not (step.plan.settles or raised):
                break
            step, context = self._next(raised, agent, context, faults)
        faults.raise_first()
        return made > 0

    def _next(
        self, raised: deque[str], agent: Any, context: Any, faults: Faults
    ) -> tuple[Edge | None, Any]:
        """Return the next step that needs no further event, and its context.

        Eventless transitions come first, then those that what was raised enables.
        """
        event: Any = EVENTLESS
        while True:
            reaction = self.rows.reaction(agent.state, event)
            step = faults.keep(self._first, reaction, agent, context)
            if step is not None or not raised:
                return step, context
            # nothing says what is done is about
            event, context = raised.popleft(), None

    def _make(
        self, agent: Any, edge: Edge, context: Any, faults: Faults, *, is_first: bool
    ) -> None:
        """Run exit actions and the transition's own, commit, and run entry actions.

        An action that fails does not stop the others.
        """
        chart, plan = self._chart, edge.plan
        # looked up before actions run, since it refuses what the chart cannot drive
        write = chart._writer_of(agent)
        for action in plan.before:
            if is_first:
                chart._run_action(action, agent, edge, context)
            else:
                faults.keep(chart._run_action, action, agent, edge, context)

        if edge.leaves is not None or plan.exits:
            chart._commit(agent, edge, write, context)
        if plan.left or plan.stopped or plan.started:
            remember(memory_of(agent), plan)
        for action in plan.after:
            faults.keep(chart._run_action, action, agent, edge, context)
        if plan.started and agent.state == edge.to_state:
            for state in plan.started:
                faults.keep(self.schedule.begin, agent, state)
        if engine_hooks:
            numbers = tuple(arc.number for arc in plan.arcs)
            observe("transition", TransitionDetails, self.definition, numbers, agent, context)


class _Asking(Moment):
    """The moment of an event that a chart answers."""

    def __init__(self, steps: Steps, agent: Any, context: Any) -> None:
        super().__init__(steps.rows.tree, agent, context)
        self._steps = steps
        # a guard may move the agent before it fails
        self._state = agent.state

    def judged(self, arc: Arc, verdict: Verdict) -> None:
        if engine_hooks and arc.written.guard is not None:
            about = self._steps.definition, (arc.number,), self._agent, self._context
            observe("guard", GuardEvaluated, *about, *verdict)
        if verdict.error is not None:
            self._steps.report(verdict.error, self._agent, self._state, arc)

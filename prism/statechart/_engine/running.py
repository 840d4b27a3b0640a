"""The steps of a chart with composites, and the steps that follow without another event.

After every step eventless transitions are made, then what was raised is answered, until the agent
has settled (SCXML, appendix D, ``mainEventLoop``). Only then follows what its actions have queued.

In a tick, time-outs come first, then ``after`` (both outermost first), rates, and settling.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from math import expm1, inf, isfinite
from operator import index
from typing import Any

from prism.errors import FieldValueError
from prism.statechart._engine.machine import PASSED, MachineError, Verdict
from prism.statechart._engine.rows import Moment, NestedRows, rows_of, selected
from prism.statechart._hierarchy import Arc, Hierarchy
from prism.statechart.memory import count, count_of, forget, memory_of, random_of, remember
from prism.statechart.names import function_label
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMEOUT, Edge, trigger_text
from prism.telemetry.events import GUARD_FAILED
from prism.telemetry.instruments import installed, observe


class Steps:
    """Makes the steps of a chart with composites, at events and in ticks.

    Args:
        chart: The chart.
        hierarchy: Its states and transitions.

    Attributes:
        rows: What may react, and the steps that follow.
    """

    def __init__(self, chart: Any, hierarchy: Hierarchy) -> None:
        self._chart = chart
        self.rows: NestedRows = rows_of(chart.definition)
        texts = hierarchy.texts
        # all by the texts of states; the timers of one by a key for the agent's memory, too
        self._limits: Mapping[str, int] = chart.definition.limits
        self._after: dict[str, dict[str, Arc]] = {}
        self._rates: dict[str, list[Arc]] = {}
        for arc in hierarchy.arcs:
            if arc.written.after is not None:
                timers = self._after.setdefault(texts[arc.source], {})
                timers[f"{arc.written.trigger} {len(timers)}"] = arc
            if arc.written.rate is not None:
                self._rates.setdefault(texts[arc.source], []).append(arc)
        self._timed = frozenset(texts[number] for number in hierarchy.timed)

    # Firing

    def fire(self, agent: Any, trigger: str, context: Any, target: Any) -> Any:
        """Make the first transitions that an event enables: see `Statechart.fire`."""
        chart, rows, state = self._chart, self.rows, agent.state
        moment = self._moment(agent, context)
        leading = (each for each in rows.enabled(state, trigger, moment) if each.to_state == target)
        step = rows.first(state, trigger, moment) if target is None else next(leading, None)
        if step is not None:
            return self.run(agent, step, context)

        refusing = [arc for arc, verdict in moment.verdicts.items() if verdict is not PASSED]
        guards = (function_label(arc.written.guard, "guard") for arc in refusing)
        chart._reporter.refused(agent, state_text(state), trigger, guards, context)
        if chart.definition.strict and target is None and not rows.groups(state, trigger):
            where = state_text(state)
            raise MachineError(f"{chart.name}: Can't trigger event {trigger} from state {where}!")
        return None

    def run(self, agent: Any, step: Edge | None, context: Any) -> Any:
        """Make one step, or what needs no event, and everything that follows.

        Return the agent's state; None if nothing was enabled.
        """
        is_made = self._chart._complete(agent, partial(self._settle, agent, step, context))
        return self._chart._member(agent.state) if is_made else None

    def begin(self, agent: Any, context: Any) -> None:
        """Enter the state in which an agent is."""
        if self.rows.tree.kept or self.rows.tree.timed:
            forget(memory_of(agent))
        self.run(agent, self.rows.beginning(agent.state), context)

    def alone(self, arc: Arc, agent: Any, context: Any) -> Any:
        """Make one transition whose time has come, and no other of its trigger.

        None is made where a rate's function has moved the agent away.
        """
        state, moment = agent.state, self._moment(agent, context)
        if arc.source not in self.rows.resolve(state).active or not moment.passes(arc):
            return None
        step = self.rows.together(state, arc.written.trigger, [arc], moment)
        return self.run(agent, step, context)

    # Choosing

    def enabled(self, agent: Any, trigger: str, context: Any) -> Iterator[Edge]:
        """Yield the steps that pass now, in order."""
        return self.rows.enabled(agent.state, trigger, self._moment(agent, context))

    def _moment(self, agent: Any, context: Any) -> Moment:
        # a guard may move the agent before it fails
        judged = partial(self._judged, agent, agent.state, context)
        return Moment(self.rows.tree, agent, context, judged)

    def _judged(self, agent: Any, state: Any, context: Any, arc: Arc, verdict: Verdict) -> None:
        """Tell who observes guards about one, and report one that raised."""
        if installed and arc.written.guard is not None:
            about = self._chart.definition, (arc.number,), agent, context
            observe("guard", *about, verdict.error or verdict.outcome)
        if verdict.error is not None:
            self._report(verdict.error, agent, state, arc)

    def _report(self, error: Exception, agent: Any, state: Any, arc: Arc) -> None:
        """Report a function of a transition that failed in a state of the agent's."""
        step = self.rows.step(state, trigger_text(arc.written.trigger), (arc,))
        self._chart._fail(GUARD_FAILED, error, agent, step)

    # Making

    def _settle(self, agent: Any, step: Edge | None, context: Any) -> bool:
        """Make one step and those that follow from it; return False if none is enabled.

        In a strict chart, an error before the first step commits changes nothing. A later one stops
        nothing that follows, and is raised in the end.
        """
        run, raised, is_made = self._chart._firing[id(agent)], deque[str](), False
        run.errors = None
        first = [] if step is None else [(step, context)]
        for each, about in chain(first, self._next(raised, agent, context)):
            self._chart._count_step(agent, run, each.trigger)
            self._make(agent, each, about, run)
            raised += each.plan.raised
            is_made = True
        if run.errors:
            raise run.errors[0]
        return is_made

    def _next(self, raised: deque[str], agent: Any, context: Any) -> Iterator[tuple[Edge, Any]]:
        """Yield the steps that need no further event, each once the last is made, and its context.

        Eventless transitions come first, then those that what was raised enables.
        """
        event = None
        while True:
            step = self.rows.first(agent.state, event, self._moment(agent, context))
            if step is not None:
                yield step, context
                event = None
            elif raised:
                # nothing says what is done is about
                event, context = raised.popleft(), None
            else:
                return

    def _make(self, agent: Any, edge: Edge, context: Any, run: Any) -> None:
        """Run exit actions and the transition's own, commit, and run entry actions.

        An action that fails does not stop the others.
        """
        chart, plan = self._chart, edge.plan
        chart._require_writer(agent)
        for action in plan.before:
            chart._run_action(action, agent, edge, context)

        if edge.leaves is not None or plan.exits:
            chart._commit(agent, edge, context)
        run.errors = run.errors or []
        if plan.left or plan.stopped or plan.started:
            remember(memory_of(agent), plan)
        for action in plan.after:
            chart._run_action(action, agent, edge, context)
        for state in plan.started if agent.state == edge.to_state else ():
            for key, arc in self._after.get(state, {}).items():
                self._limit(agent, state, key, arc)
        if installed:
            numbers = tuple(arc.number for arc in plan.arcs)
            observe("transition", chart.definition, numbers, agent, context)

    # Ticks

    def tick(self, agent: Any, ticks: int, context: Any = None) -> Any:
        """Make the transitions of one tick; return the new state, or None if there were none.

        An error of one keeps none of the others from being made: the first is raised in the end.

        Args:
            agent: The agent.
            ticks: How many it has spent in its state, this one included.
            context: What guards and actions get.
        """
        made, errors = None, list[Exception]()
        for make in self._due(agent, ticks, context):
            try:
                made = make() or made
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return made

    def _due(self, agent: Any, ticks: int, context: Any) -> Iterator[Callable[[], Any]]:
        """Yield what makes each transition that may be due, in turn."""
        active = self._active(agent)
        if self._timed:
            count(memory_of(agent), [state for state in active if state in self._timed])
        if TIMEOUT in self.rows.tree.triggers:
            late = self._late(agent, ticks, active)
            yield from (partial(self._chart.fire, agent, TIMEOUT, context) for _ in late)
        for state in active:
            for key, arc in self._after.get(state, {}).items():
                yield partial(self._run_due, agent, ticks, context, state, key, arc)
        for state in active:
            if state in self._rates and state in self._active(agent):
                yield partial(self._make_by_chance, agent, context, self._rates[state])
        if self.rows.tree.eventless:
            yield partial(self.run, agent, None, context)

    def _late(self, agent: Any, ticks: int, active: Sequence[str]) -> Iterator[str]:
        """Yield the states that have been active for longer than their limits."""
        limited = [state for state in active if state in self._limits]
        # the agent's own limit is for states that the chart sets none for
        if not limited and ticks > (count_of(agent, "timeout_threshold") or inf):
            yield active[-1]
        for state in limited:
            if self._time_in(agent, state, ticks) > self._limits[state]:
                yield state

    def _active(self, agent: Any) -> list[str]:
        """Return the texts of the active states, outermost first."""
        return [*map(state_text, self.rows.resolve(agent.state).around)]

    def _time_in(self, agent: Any, state: str, ticks: int) -> int:
        """Return the ticks for which a state has been active; -1 if it is not."""
        if state not in self._active(agent):
            return -1
        return int(memory_of(agent).get("ticks", {}).get(state, ticks))

    # After a time

    def _limit(self, agent: Any, state: str, key: str, arc: Arc) -> int:
        """Return the ticks until a transition's time comes; 0 if it came, or nothing says it."""
        after: Any = arc.written.after
        limits: dict[str, int] = memory_of(agent).setdefault("after", {}).setdefault(state, {})
        if callable(after) and key not in limits:
            ticks = int(self._result_of(agent, arc, lambda: max(1, index(after(agent)))))
            if not ticks:
                return 0
            limits[key] = ticks
        return int(limits.get(key, after))

    def _run_due(self, agent: Any, ticks: int, context: Any, state: str, key: str, arc: Arc) -> Any:
        """Make a transition if its time has come; unless it raises, it has then had its time."""
        time = self._time_in(agent, state, ticks)
        limit = 0 if time < 0 else self._limit(agent, state, key, arc)
        if not limit or time < limit:
            return None

        made = self.alone(arc, agent, context)
        if self._time_in(agent, state, ticks) == time:
            memory_of(agent)["after"][state][key] = 0
        return made

    # At a rate

    def _make_by_chance(self, agent: Any, context: Any, arcs: list[Arc]) -> Any:
        """Make the one of the competing transitions that happens, if any does.

        One number says both. The sum of the rates makes it happen with ``1 - exp(-sum)``, and each
        has the share of its rate, as for exponential times of which the first counts.
        """
        rates = [self._rate_of(arc, agent, context) for arc in arcs]
        chance = -expm1(-sum(rates))
        # no number is drawn where nothing can happen
        number = random_of(agent).random() if chance > 0 else 1
        if number >= chance:
            return None
        happening = selected(arcs, rates, number / chance * sum(rates))
        return self.alone(happening or arcs[-1], agent, context)

    def _rate_of(self, arc: Arc, agent: Any, context: Any) -> float:
        """Return how often a tick a transition happens now."""
        rate: Any = arc.written.rate
        now = rate if callable(rate) else lambda *_: rate
        return self._result_of(agent, arc, lambda: _checked(now(agent, context)))

    def _result_of(self, agent: Any, arc: Arc, function: Callable[[], float]) -> float:
        """Return what a function of a transition says; if it fails, report that, and return 0."""
        # it may move the agent before it fails
        state = agent.state
        try:
            return function()
        except Exception as error:
            self._report(error, agent, state, arc)
            return 0


def _checked(value: Any) -> float:
    rate = float(value)
    if not (isfinite(rate) and rate >= 0):
        raise FieldValueError(f"a rate must be a finite number, 0 or more, got {rate!r}")
    return rate

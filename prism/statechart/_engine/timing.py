"""Ticks of charts with limits of composites, `after`, rates or eventless transitions.

Within a tick, time-outs come first, then ``after`` (both outermost first), rates, and settling.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from math import expm1, isfinite
from numbers import Integral
from typing import TYPE_CHECKING, Any

from prism.errors import FieldValueError
from prism.statechart._definition import TIMEOUT, Definition
from prism.statechart._engine.memory import count, memory_of, random_of
from prism.statechart.states import state_text
from prism.statechart.transitions import takes_agent_alone

if TYPE_CHECKING:
    from prism.statechart._engine.rows import NestedRows
    from prism.statechart._tree.hierarchy import Hierarchy
    from prism.statechart._tree.numbers import Arc


class Schedule:
    """The timers and rates that a tick checks in a chart with composites.

    Args:
        definition: The chart's definition.

    Attributes:
        limits: Ticks beyond which ``timeout`` is fired, by the text of the state.
        after: Transitions that are made at one tick, by the text of their source and a key.
        rates: Transitions that compete in every tick, likewise.
        timed: The texts of the states whose time is kept.
        settles: Whether something may follow without an event in every tick.
        is_empty: Whether there is nothing to look at but the limit of the agent's state.
    """

    def __init__(self, definition: Definition[Any]) -> None:
        hierarchy = definition.hierarchy
        tree, planner = hierarchy.tree, hierarchy.planner
        self.limits: dict[str, int] = {
            state_text(state): ticks for state, ticks in hierarchy.timeouts.items()
        }
        self.after: dict[str, dict[str, Arc]] = {
            state: {f"{arc.written.trigger} {place}": arc for place, arc in enumerate(arcs)}
            for state, arcs in _by_source(hierarchy, "after").items()
        }
        self.rates: dict[str, list[Arc]] = _by_source(hierarchy, "rate")
        self.settles: bool = bool(
            planner.reacting or (definition.strict and hierarchy.answers_done)
        )
        # in a configuration no state alone has the limit
        has_timeout = tree.has_regions and TIMEOUT in hierarchy.triggers
        self.timed: frozenset[str] = frozenset(tree.texts[number] for number in planner.timed)
        has_timers = self.limits or self.after or self.rates or self.settles
        self.is_empty: bool = not (has_timers or has_timeout)

    def tick(
        self, chart: Any, agent: Any, ticks: int, context: Any, *, by_chance: bool = True
    ) -> Any:
        """Make the transitions of one tick; return the new state, or None if there were none.

        An error of one keeps none of the others from being made: the first is raised in the end.

        Args:
            chart: The chart.
            agent: The agent.
            ticks: How many it has spent in its state, this one included.
            context: What guards and actions get.
            by_chance: Whether rates are looked at; whoever has a time for each event does it.
        """
        made, errors = None, list[Exception]()
        for make in _Tick(self, chart, agent, ticks, context).calls(by_chance=by_chance):
            try:
                state = make()
                made = made if state is None else state
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return made

    def begin(self, chart: Any, agent: Any, state: str, context: Any) -> dict[str, int]:
        """Let the functions of a state say its time-outs, unless they have done so.

        Return what is remembered of the state's time-outs, by key: what a function said, and below
        0 those that have come without moving the agent.
        """
        memory = memory_of(chart.definition, agent)
        kept: dict[str, int] = memory.setdefault("after", {}).setdefault(state, {})
        for key, arc in self.after[state].items():
            if callable(arc.written.after) and key not in kept:
                kept[key] = _delay_of(chart, agent, arc, context)
        return kept


def _by_source(hierarchy: Hierarchy, timing: str) -> dict[str, list[Arc]]:
    found: dict[str, list[Arc]] = {}
    for arc in hierarchy.arcs:
        if getattr(arc.written, timing) is not None:
            found.setdefault(hierarchy.tree.texts[arc.source], []).append(arc)
    return found


def rate_of(chart: Any, agent: Any, arc: Arc, context: Any) -> float:
    """Return how often a tick a transition happens now; a function that fails is reported."""
    rate: Any = arc.written.rate

    def compute() -> float:
        value = float(rate(agent, context))
        if not (isfinite(value) and value >= 0):
            raise FieldValueError(f"a rate must be a finite number, 0 or more, got {value!r}")
        return value

    return _computed(compute, chart, agent, arc) if callable(rate) else float(rate)


def _delay_of(chart: Any, agent: Any, arc: Arc, context: Any) -> int:
    """Return after how many ticks a transition is made, as its function says; 0 if that fails."""
    after: Any = arc.written.after

    def compute() -> int:
        value = after(agent) if takes_agent_alone(after) else after(agent, context)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise FieldValueError(
                "after must be a whole number of ticks, 1 or more, but its function returned "
                f"{value!r}"
            )
        return int(value)

    return int(_computed(compute, chart, agent, arc))


def _computed(compute: Callable[[], float], chart: Any, agent: Any, arc: Arc) -> float:
    """Return what a function of a transition says; if it fails, report that, and return 0."""
    # it may move the agent before it fails
    state = agent.state
    try:
        return compute()
    except Exception as error:
        edge = chart._nested.alone(state, arc).together((arc,))
        chart._reporter.guard_failed(error, agent, edge)
        return 0


class _Tick:
    """One tick of one agent, as a series of calls, each of a transition whose state is active.

    Args:
        schedule: What to look at.
        chart: The chart's interpreter.
        agent: The agent.
        ticks: How many it has spent in its state, this one included.
        context: What guards and actions get.
    """

    def __init__(
        self, schedule: Schedule, chart: Any, agent: Any, ticks: int, context: Any
    ) -> None:
        self._schedule, self._chart = schedule, chart
        self._nested: NestedRows = chart._nested
        self._agent, self._ticks, self._context = agent, ticks, context
        self._active = self._active_now()
        self._memory: dict[str, Any] = {"entered": {}}
        if schedule.timed:
            self._memory = memory_of(chart.definition, agent)
            count(self._memory, [state for state in self._active if state in schedule.timed])

    def calls(self, *, by_chance: bool) -> Iterator[Callable[[], Any]]:
        """Yield what makes each transition that may be due, in turn."""
        yield from self._time_outs()
        for state in self._active:
            for key, arc in self._schedule.after.get(state, {}).items():
                yield partial(self._make_in_time, state, key, arc)
        for state in self._active if by_chance else ():
            if state in self._schedule.rates and state in self._active_now():
                yield partial(self._make_by_chance, self._schedule.rates[state])
        if self._schedule.settles:
            yield partial(self._chart._steps.run, self._agent, None, self._context)

    def _time_outs(self) -> Iterator[Callable[[], Any]]:
        if TIMEOUT not in self._chart._triggers:
            return

        fire = partial(self._chart.fire, self._agent, TIMEOUT, self._context)
        limits = self._schedule.limits
        limited = [state for state in self._active if state in limits]
        own = getattr(self._agent, "timeout_threshold", None)
        # the agent's own limit is for states that the chart sets none for
        if not limited and own is not None and self._ticks > own:
            yield fire
        for state in limited:
            if self._time_in(state) > limits[state]:
                yield fire

    def _make_in_time(self, state: str, key: str, arc: Arc) -> Any:
        """Make a transition if its time has come; unless it raises, it has then had its time."""
        time = self._time_in(state)
        if time < 0:
            return None
        kept = self._schedule.begin(self._chart, self._agent, state, self._context)
        after: Any = arc.written.after
        limit = abs(kept[key]) if callable(after) else after
        if time < limit or kept.get(key) == -limit:
            return None

        since = self._memory["entered"][state]
        made = self._chart._steps.alone(self._agent, arc, self._context)
        if self._memory["entered"].get(state) == since:
            kept[key] = -limit
        return made

    def _make_by_chance(self, arcs: list[Arc]) -> Any:
        """Make the one of the competing transitions that happens, if any does.

        One number says both. The sum of the rates makes it happen with ``1 - exp(-sum)``, and each
        has the share of its rate, as for exponential times of which the first counts.
        """
        rates = (rate_of(self._chart, self._agent, arc, self._context) for arc in arcs)
        sums = [*accumulate(rates)]
        chance = -expm1(-sums[-1])
        # no number is drawn where nothing can happen
        if chance <= 0:
            return None
        number = random_of(self._chart.definition.name, self._agent).random()
        if number >= chance:
            return None
        happening = min(bisect_right(sums, number / chance * sums[-1]), len(arcs) - 1)
        return self._chart._steps.alone(self._agent, arcs[happening], self._context)

    def _active_now(self) -> list[str]:
        texts = self._nested.tree.texts
        return [texts[number] for number in sorted(self._nested.place(self._agent.state).active)]

    def _time_in(self, state: str) -> int:
        """Return the ticks for which a state has been active; -1 if it is not."""
        if state not in self._active_now():
            return -1
        since = self._memory["entered"].get(state)
        return self._ticks if since is None else int(self._memory["ticks"] - since)

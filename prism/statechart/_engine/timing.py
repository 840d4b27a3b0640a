"""Ticks of charts with limits of composites, `after`, rates or eventless transitions.

Within a tick, time-outs come first, then ``after`` (both outermost first), rates, and settling.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, chain
from math import expm1, isfinite
from typing import TYPE_CHECKING, Any

from prism.errors import FieldValueError
from prism.statechart._definition import TIMEOUT
from prism.statechart._engine.machine import EVENTLESS
from prism.statechart._engine.memory import count, memory_of, random_of
from prism.statechart._engine.writing import ticks_of
from prism.statechart.states import state_text

if TYPE_CHECKING:
    from prism.statechart._engine.rows import NestedRows
    from prism.statechart._tree.hierarchy import Hierarchy
    from prism.statechart._tree.numbers import Arc


class Limits(dict[Any, float]):
    """The limits of a chart with timers, which looks at them in every tick."""

    def get(self, state: Any, default: Any = None) -> float:  # noqa: ARG002
        """Return a limit that every tick is over."""
        return -1.0


class Schedule:
    """The timers and rates that a tick checks in a chart with composites.

    Args:
        hierarchy: The chart's states and transitions.

    Attributes:
        limits: Ticks beyond which ``timeout`` is fired, by the number of the state.
        after: Transitions that are made at one tick, by that of their source.
        rates: Transitions that compete in every tick, likewise.
        remembers: Whether times are kept in the agent's memory, not in ``ticks_in_state``.
        is_empty: Whether there is nothing to look at but the limit of the agent's state.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        tree, planner = hierarchy.tree, hierarchy.planner
        self.limits: dict[int, int] = {
            tree.numbers[state_text(state)]: ticks for state, ticks in hierarchy.timeouts.items()
        }
        self.after: dict[int, list[Arc]] = _by_source(hierarchy, "after")
        self.rates: dict[int, list[Arc]] = _by_source(hierarchy, "rate")
        self.remembers: bool = bool(planner.timed)
        # in a configuration no state alone has the limit
        has_timeout = tree.has_regions and TIMEOUT in hierarchy.triggers
        has_timers = self.limits or self.after or self.rates or planner.reacting
        self.is_empty: bool = not (has_timers or has_timeout)

    def tick(
        self, chart: Any, agent: Any, ticks: int, context: Any, *, by_chance: bool = True
    ) -> Any:
        """Make the transitions of one tick; return the new state, or None if there were none.

        Args:
            chart: The chart.
            agent: The agent.
            ticks: How many it has spent in its state, this one included.
            context: What guards and actions get.
            by_chance: Whether rates are looked at; whoever has a time for each event does it.
        """
        tick = _Tick(self, chart, agent, ticks, context)
        due = (tick.time_outs(), tick.moments(), tick.chances() if by_chance else (), tick.rest())
        made = [state for state in chain(*due) if state is not None]
        return made[-1] if made else None


def _by_source(hierarchy: Hierarchy, timing: str) -> dict[int, list[Arc]]:
    arcs_of = hierarchy.arcs_of
    timed = {
        source: [arc for arc in arcs if getattr(arc.written, timing) is not None]
        for source, arcs in arcs_of.items()
    }
    return {source: arcs for source, arcs in timed.items() if arcs}


def rate_of(chart: Any, agent: Any, arc: Arc, context: Any) -> float:
    """Return how often a tick a transition happens now; a function that fails is reported."""
    rate: Any = arc.written.rate
    if not callable(rate):
        return float(rate)

    # a function may move the agent before it fails
    state = agent.state
    try:
        value = float(rate(agent, context))
        if not (isfinite(value) and value >= 0):
            raise FieldValueError(f"a rate must be a finite number, 0 or more, got {value!r}")
    except Exception as error:
        alone = chart._nested.alone(state, arc)
        chart._reporter.guard_failed(error, agent, alone[3])
        return 0.0

    return value


def fire_alone(chart: Any, agent: Any, arc: Arc, context: Any) -> Any:
    """Make one transition whose time has come, and no other of its trigger.

    None is made where a rate's function has moved the agent away.
    """
    alone = chart._nested.alone(agent.state, arc)
    if alone is None:
        return None

    passing = next(chart._passing([alone], agent, context), None)
    return None if passing is None else chart._run(agent, passing, context)


class _Tick:
    """One tick of one agent. Each transition is made only if its state is active at its turn.

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
        self._active = sorted(self._nested.place(agent.state).active)
        self._memory: dict[str, Any] = {}
        if schedule.remembers:
            self._memory = memory_of(chart.definition.name, agent)
            timed, texts = self._nested.planner.timed, self._nested.tree.texts
            count(self._memory, [texts[number] for number in self._active if number in timed])

    def time_outs(self) -> Iterator[Any]:
        """Fire ``timeout`` for each state that has been active too long."""
        if TIMEOUT not in self._chart._triggers:
            return

        limits = self._schedule.limits
        limited = [number for number in self._active if number in limits]
        own = getattr(self._agent, "timeout_threshold", None)
        # the agent's own limit is for states that the chart sets none for
        if not limited and own is not None and self._ticks > own:
            yield self._chart.fire(self._agent, TIMEOUT, self._context)
        for number in limited:
            if self._time_in(number) > limits[number]:
                yield self._chart.fire(self._agent, TIMEOUT, self._context)

    def moments(self) -> Iterator[Any]:
        """Make the transitions whose ``after`` has come."""
        for number in self._active:
            for arc in self._schedule.after.get(number, ()):
                if self._time_in(number) == arc.written.after:
                    yield fire_alone(self._chart, self._agent, arc, self._context)

    def chances(self) -> Iterator[Any]:
        """Make the transitions by rate that happen in this tick."""
        for number in self._active:
            if number in self._schedule.rates and self._is_active(number):
                for arc in self._drawn(self._schedule.rates[number]):
                    yield fire_alone(self._chart, self._agent, arc, self._context)

    def _drawn(self, arcs: list[Arc]) -> list[Arc]:
        """Return which of the competing transitions happens, if any.

        One number says both. The sum of the rates makes it happen with ``1 - exp(-sum)``, and each
        has the share of its rate, as for exponential times of which the first counts.
        """
        rates = (rate_of(self._chart, self._agent, arc, self._context) for arc in arcs)
        sums = [*accumulate(rates)]
        chance = -expm1(-sums[-1])
        # no number is drawn where nothing can happen
        if chance <= 0:
            return []
        number = random_of(self._chart.definition.name, self._agent).random()
        happening = min(bisect_right(sums, number / chance * sums[-1]), len(arcs) - 1)
        return [arcs[happening]] if number < chance else []

    def rest(self) -> Iterator[Any]:
        """Settle once."""
        chart, agent, context = self._chart, self._agent, self._context
        if self._nested.planner.reacting:
            following = chart._reacting(agent, EVENTLESS, context)
            yield None if following is None else chart._run(agent, following, context)

    def _is_active(self, number: int) -> bool:
        return number in self._nested.place(self._agent.state).active

    def _time_in(self, number: int) -> int:
        """Return the ticks for which a state has been active; -1 if it is not, or none are kept."""
        if not self._is_active(number):
            return -1
        if self._schedule.remembers:
            now, entered = self._memory["ticks"], self._memory["entered"]
            return int(now - entered.get(self._nested.tree.texts[number], now))

        ticks = ticks_of(self._agent)
        return -1 if ticks is None else ticks

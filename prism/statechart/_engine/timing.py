"""The ticks of charts with limits of composites, ``after``, rates or eventless transitions.

Within a tick, time-outs come first, then ``after`` (both outermost first), rates, and settling.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import expm1, isfinite
from operator import index
from typing import Any, NamedTuple

from prism.errors import FieldValueError
from prism.statechart._definition import Definition
from prism.statechart._numbers import Arc
from prism.statechart.memory import count, memory_of, random_of
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMEOUT, takes_agent_alone


class Rated(NamedTuple):
    """A transition that happens at a rate.

    Args:
        source: The state that it leaves, a leaf or a composite.
        rate: How often a tick it happens, or a function that returns it for an agent now.
        make: Makes it for an agent, if its guard passes; returns the new state, else None.
    """

    source: Any
    rate: float | Callable[[Any], float]
    make: Callable[[Any], Any]


class Schedule:
    """The timers and rates that a tick checks in a chart with composites.

    Args:
        definition: The chart's definition.

    Attributes:
        limits: Ticks beyond which ``timeout`` is fired, by the text of the state.
        after: Transitions that are made at one tick, by the text of their source and a key.
        rates: Transitions that compete in every tick, by the text of their source.
        timed: The texts of the states whose time is kept.
        settles: Whether something may follow without an event in every tick.
        is_empty: Whether there is nothing to look at but the limit of the agent's state.
    """

    def __init__(self, definition: Definition[Any]) -> None:
        hierarchy = definition.hierarchy
        texts = hierarchy.tree.texts
        self.limits = {state_text(state): ticks for state, ticks in hierarchy.timeouts.items()}
        self.after: dict[str, dict[str, Arc]] = {}
        self.rates: dict[str, list[Arc]] = {}
        for arc in hierarchy.arcs:
            if arc.written.after is not None:
                timers = self.after.setdefault(texts[arc.source], {})
                timers[f"{arc.written.trigger} {len(timers)}"] = arc
            if arc.written.rate is not None:
                self.rates.setdefault(texts[arc.source], []).append(arc)
        self.timed = frozenset(texts[number] for number in hierarchy.timed)
        self.settles = bool(hierarchy.eventless or (definition.strict and hierarchy.answers_done))
        # in a configuration no state alone has the limit
        has_timeout = hierarchy.tree.has_regions and TIMEOUT in hierarchy.triggers
        has_timers = self.limits or self.after or self.rates
        self.is_empty = not (has_timers or self.settles or has_timeout)

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
        memory = memory_of(chart.definition, agent) if self.timed else {}
        tick = _Tick(self, chart, agent, ticks, context, memory)
        made, errors = None, list[Exception]()
        for make in tick.calls(by_chance=by_chance):
            try:
                made = make() or made
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return made

    def rated(self, chart: Any) -> Iterator[Rated]:
        """Yield the transitions that happen at rates: see `Statechart.rated`."""
        nodes = chart.definition.hierarchy.tree.nodes
        for arc in (arc for arcs in self.rates.values() for arc in arcs):
            rate: Any = arc.written.rate
            yield Rated(
                nodes[arc.source].state,
                partial(rate_of, chart, arc) if callable(rate) else float(rate),
                partial(chart._steps.alone, arc),
            )

    def begin(self, chart: Any, agent: Any, states: Iterable[str], context: Any) -> None:
        """Let functions say the time-outs of states that are entered."""
        for state in states:
            if state in self.after:
                self.delays(chart, agent, state, context)

    def delays(self, chart: Any, agent: Any, state: str, context: Any) -> dict[str, int]:
        """Return what is remembered of the timers of a state.

        That is what functions said, which are asked once, and below 0 what has come already.
        """
        memory = memory_of(chart.definition, agent)
        delays: dict[str, int] = memory.setdefault("after", {}).setdefault(state, {})
        for key, arc in self.after[state].items():
            after: Any = arc.written.after
            if callable(after) and key not in delays:
                delays[key] = int(_result_of(_whole_ticks, after, chart, agent, arc, context))
        return delays


def rate_of(chart: Any, arc: Arc, agent: Any, context: Any = None) -> float:
    """Return how often a tick a transition happens now; a function that fails is reported."""
    rate: Any = arc.written.rate
    return _result_of(_rate, rate, chart, agent, arc, context) if callable(rate) else float(rate)


def _result_of(
    check: Callable[[Any], float], function: Any, chart: Any, agent: Any, arc: Arc, context: Any
) -> float:
    """Return what a function of a transition says; if it fails, report that, and return 0."""
    # it may move the agent before it fails
    state = agent.state
    try:
        is_alone = check is _whole_ticks and takes_agent_alone(function)
        return check(function(agent) if is_alone else function(agent, context))
    except Exception as error:
        chart._steps.report(error, agent, state, arc)
        return 0


def _whole_ticks(value: Any) -> int:
    return max(1, index(value))


def _rate(value: Any) -> float:
    rate = float(value)
    if not (isfinite(rate) and rate >= 0):
        raise FieldValueError(f"a rate must be a finite number, 0 or more, got {rate!r}")
    return rate


@dataclass
class _Tick:
    """One tick of one agent, as a series of calls, each of a transition whose state is active."""

    schedule: Schedule
    chart: Any
    agent: Any
    ticks: int
    context: Any
    memory: dict[str, Any]

    def calls(self, *, by_chance: bool) -> Iterator[Callable[[], Any]]:
        """Yield what makes each transition that may be due, in turn."""
        schedule, active = self.schedule, self._active()
        if schedule.timed:
            timed = [state for state in active if state in schedule.timed]
            count(self.memory, timed, self._active)
        if TIMEOUT in self.chart._triggers:
            yield from self._time_outs(active)
        for state in active:
            for key in schedule.after.get(state, ()):
                yield partial(self._make_in_time, state, key)
        for state in active if by_chance else ():
            if state in schedule.rates and state in self._active():
                yield partial(self._make_by_chance, schedule.rates[state])
        if schedule.settles:
            yield partial(self.chart._steps.run, self.agent, None, self.context)

    def _time_outs(self, active: Iterable[str]) -> Iterator[Callable[[], Any]]:
        fire = partial(self.chart.fire, self.agent, TIMEOUT, self.context)
        limits = self.schedule.limits
        limited = [state for state in active if state in limits]
        threshold = getattr(self.agent, "timeout_threshold", None)
        # the agent's own limit is for states that the chart sets none for
        if not limited and threshold is not None and self.ticks > threshold:
            yield fire
        for state in limited:
            if self._time_in(state) > limits[state]:
                yield fire

    def _make_in_time(self, state: str, key: str) -> Any:
        """Make a transition if its time has come; unless it raises, it has then had its time."""
        time = self._time_in(state)
        if time < 0:
            return None
        timers = self.schedule.after[state]
        delays = self.schedule.delays(self.chart, self.agent, state, self.context)
        after: Any = timers[key].written.after
        limit = abs(delays[key]) if callable(after) else after
        if time < limit or delays.get(key) == -limit:
            return None

        made = self.chart._steps.alone(timers[key], self.agent, self.context)
        if self._time_in(state) == time:
            delays[key] = -limit
        return made

    def _make_by_chance(self, arcs: list[Arc]) -> Any:
        """Make the one of the competing transitions that happens, if any does.

        One number says both. The sum of the rates makes it happen with ``1 - exp(-sum)``, and each
        has the share of its rate, as for exponential times of which the first counts.
        """
        rates = (rate_of(self.chart, arc, self.agent, self.context) for arc in arcs)
        sums = [*accumulate(rates)]
        chance = -expm1(-sums[-1])
        # no number is drawn where nothing can happen
        number = random_of(self.agent).random() if chance > 0 else 1
        if number >= chance:
            return None
        happening = min(bisect_right(sums, number / chance * sums[-1]), len(arcs) - 1)
        return self.chart._steps.alone(arcs[happening], self.agent, self.context)

    def _active(self, state: Any = None) -> tuple[str, ...]:
        """Return the texts of the active states, outermost first: now, or in another state."""
        rows, state = self.chart._nested, state or self.agent.state
        return rows.place(state).texts if state in rows else ()

    def _time_in(self, state: str) -> int:
        """Return the ticks for which a state has been active; -1 if it is not."""
        if state not in self._active():
            return -1
        ticks: int = self.memory.get("ticks", {}).get(state, self.ticks)
        return ticks

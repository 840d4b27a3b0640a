"""Ticks of charts with limits of composites, `after`, rates or eventless transitions.

Within a tick, time-outs come first, then ``after`` (both outermost first), rates, and settling.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate
from math import expm1, isfinite
from numbers import Integral
from typing import Any

from prism.errors import FieldValueError
from prism.statechart._definition import TIMEOUT, Definition
from prism.statechart._engine.memory import count, memory_of, random_of
from prism.statechart._tree.numbers import Arc
from prism.statechart.states import state_text
from prism.statechart.transitions import takes_agent_alone


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
        self.is_empty = not (self.limits or self.after or self.rates or self.settles or has_timeout)

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
                made = make() or made
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return made

    def begin(self, chart: Any, agent: Any, states: Iterable[str], context: Any) -> None:
        """Let the functions of states say their time-outs, unless they have done so."""
        for state in states:
            for key, arc in self.after.get(state, {}).items():
                if callable(arc.written.after):
                    self.limit_of(chart, agent, state, key, context)

    def limit_of(self, chart: Any, agent: Any, state: str, key: str, context: Any) -> int:
        """Return after how many ticks a transition is made.

        What a function said is remembered, below 0 once it has come without moving the agent.
        """
        arc = self.after[state][key]
        after: Any = arc.written.after
        kept = memory_of(chart.definition, agent).setdefault("after", {}).setdefault(state, {})
        if callable(after) and key not in kept:
            kept[key] = _asked(_whole_ticks, after, chart, agent, arc, context)
        limit: int = kept[key] if callable(after) else after
        return abs(limit)


def rate_of(chart: Any, agent: Any, arc: Arc, context: Any) -> float:
    """Return how often a tick a transition happens now; a function that fails is reported."""
    rate: Any = arc.written.rate
    return _asked(_frequency, rate, chart, agent, arc, context) if callable(rate) else float(rate)


def _asked(check: Any, function: Any, chart: Any, agent: Any, arc: Arc, context: Any) -> Any:
    """Return what a function of a transition says; if it fails, report that, and return 0."""
    # it may move the agent before it fails
    state = agent.state
    try:
        alone = check is _whole_ticks and takes_agent_alone(function)
        return check(function(agent) if alone else function(agent, context))
    except Exception as error:
        chart._steps.report(error, agent, state, arc)
        return 0


def _whole_ticks(value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise FieldValueError(
            f"after must be a whole number of ticks, 1 or more, but its function returned {value!r}"
        )
    return int(value)


def _frequency(value: Any) -> float:
    rate = float(value)
    if not (isfinite(rate) and rate >= 0):
        raise FieldValueError(f"a rate must be a finite number, 0 or more, got {rate!r}")
    return rate


class _Tick:
    """One tick of one agent, as a series of calls, each of a transition whose state is active.

    Args:
        schedule: What to look at.
        chart: The chart.
        agent: The agent.
        ticks: How many it has spent in its state, this one included.
        context: What guards and actions get.
    """

    def __init__(
        self, schedule: Schedule, chart: Any, agent: Any, ticks: int, context: Any
    ) -> None:
        self._schedule, self._chart = schedule, chart
        self._agent, self._ticks, self._context = agent, ticks, context
        self._memory: dict[str, Any] = {"entered": {}}
        if schedule.timed:
            self._memory = memory_of(chart.definition, agent)
            timed = [state for state in self._active() if state in schedule.timed]
            count(self._memory, timed, self._active)

    def calls(self, *, by_chance: bool) -> Iterator[Callable[[], Any]]:
        """Yield what makes each transition that may be due, in turn."""
        active = self._active()
        if TIMEOUT in self._chart._triggers:
            yield from self._time_outs(active)
        for state in active:
            for key in self._schedule.after.get(state, ()):
                yield partial(self._make_in_time, state, key)
        for state in active if by_chance else ():
            if state in self._schedule.rates and state in self._active():
                yield partial(self._make_by_chance, self._schedule.rates[state])
        if self._schedule.settles:
            yield partial(self._chart._steps.run, self._agent, None, self._context)

    def _time_outs(self, active: list[str]) -> Iterator[Callable[[], Any]]:
        fire = partial(self._chart.fire, self._agent, TIMEOUT, self._context)
        limits = self._schedule.limits
        limited = [state for state in active if state in limits]
        threshold = getattr(self._agent, "timeout_threshold", None)
        # the agent's own limit is for states that the chart sets none for
        if not limited and threshold is not None and self._ticks > threshold:
            yield fire
        for state in limited:
            if self._time_in(state) > limits[state]:
                yield fire

    def _make_in_time(self, state: str, key: str) -> Any:
        """Make a transition if its time has come; unless it raises, it has then had its time."""
        time = self._time_in(state)
        if time < 0:
            return None
        schedule, chart, agent = self._schedule, self._chart, self._agent
        limit = schedule.limit_of(chart, agent, state, key, self._context)
        kept = self._memory["after"][state]
        if time < limit or kept.get(key) == -limit:
            return None

        since = self._memory["entered"][state]
        made = chart._steps.alone(agent, schedule.after[state][key], self._context)
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

    def _active(self, state: Any = None) -> list[str]:
        """Return the texts of the active states, outermost first: now, or in another state."""
        rows, state = self._chart._nested, state or self._agent.state
        active = rows.place(state).active if state in rows else ()
        return [rows.tree.texts[number] for number in sorted(active)]

    def _time_in(self, state: str) -> int:
        """Return the ticks for which a state has been active; -1 if it is not."""
        if state not in self._active():
            return -1
        since = self._memory["entered"].get(state)
        return self._ticks if since is None else int(self._memory["ticks"] - since)

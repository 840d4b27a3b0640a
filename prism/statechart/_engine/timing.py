"""Ticks of charts with limits of composites, `after`, rates or eventless transitions.

Within a tick, time-outs come first, then ``after`` (both outermost first), rates, and settling.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, chain
from math import expm1, inf, isfinite
from typing import TYPE_CHECKING, Any

from prism.errors import FieldValueError
from prism.statechart._definition import TIMEOUT, Definition
from prism.statechart._engine.interpreter import Interpreter
from prism.statechart._engine.machine import EVENTLESS, Rows
from prism.statechart._engine.memory import count, memory_of, random_of
from prism.statechart._engine.writing import Reporter, count_tick, write_kept
from prism.statechart.states import state_text
from prism.statechart.transitions import StateT

if TYPE_CHECKING:
    from prism.statechart._tree.hierarchy import Hierarchy
    from prism.statechart._tree.numbers import Arc

LIMIT_OF_TIMED = 0.5
"""Limit of every state of a chart with timers: each tick has more to look at than one limit."""


class Limits(dict[Any, float]):
    """The limits of a chart with timers."""

    def get(self, state: Any, default: Any = None) -> Any:  # noqa: ARG002
        """Return a limit that the first tick is over."""
        return LIMIT_OF_TIMED


class Schedule:
    """What a tick looks at in a chart with composites.

    Args:
        hierarchy: The chart's states and transitions.

    Attributes:
        limits: Ticks beyond which ``timeout`` is fired, by the number of the state.
        after: Transitions that are made at one tick, by that of their source.
        rates: Transitions that compete in every tick, likewise.
        is_eventless: Whether there are transitions that need no event.
        sends: Whether a document may have sent something that comes later.
        remembers: Whether times are kept in the agent's memory, not in ``ticks_in_state``.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        numbers, planner = hierarchy.tree.numbers, hierarchy.planner
        self.limits: dict[int, int] = {
            numbers[state_text(state)]: ticks for state, ticks in hierarchy.timeouts.items()
        }
        self.after: dict[int, list[Arc]] = {}
        self.rates: dict[int, list[Arc]] = {}
        for arc in hierarchy.arcs:
            if arc.written.after is not None:
                self.after.setdefault(arc.source, []).append(arc)
            if arc.written.rate is not None:
                self.rates.setdefault(arc.source, []).append(arc)

        self.is_eventless: bool = bool(planner.reacting)
        self.sends: bool = hierarchy.is_document
        self.remembers: bool = bool(planner.timed) or self.sends


def schedule_of(hierarchy: Hierarchy | None) -> Schedule | None:
    """Return what a tick looks at; None where it is only the limit of the agent's state."""
    if hierarchy is None:
        return None

    schedule = Schedule(hierarchy)
    # in a configuration no state alone has the limit
    by_own_limit = hierarchy.tree.has_regions and TIMEOUT in hierarchy.triggers
    has_timers = by_own_limit or schedule.limits or schedule.after or schedule.rates
    return schedule if has_timers or schedule.is_eventless or schedule.sends else None


class Timing(Interpreter[StateT]):
    """Runs the ticks of agents."""

    def __init__(
        self,
        definition: Definition[StateT],
        rows: Rows[StateT],
        reporter: Reporter,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(definition, rows, reporter, clock)
        # no dwell time is too long in a final state
        self._limits: dict[Any, float] = {
            **definition.timeouts,
            **dict.fromkeys(definition.final_states, inf),
        }
        self._schedule = schedule_of(definition.tree)
        if self._schedule is not None:
            self._limits = Limits(self._limits)

    def tick(self, agent: Any, context: Any = None) -> StateT | None:
        """Let one tick pass for an agent, and fire ``timeout`` if it has dwelt too long.

        The limit is ``chart.timeouts[state]`` where set, else ``agent.timeout_threshold``; the
        time-out fires when ``ticks_in_state`` is strictly greater (specification, FR-6.2). An
        object without ``ticks_in_state`` never times out, nor does an agent in a final state or on
        a chart without the trigger ``timeout``.

        In a chart with timers, time-outs come first, then ``after`` (both outermost first), then
        rates, each only if its state is still active. Then the agent settles, since guards may read
        what other agents have changed.

        Returns:
            The new state if the tick moved the agent, else None.
        """
        # the usual case, without the properties of `StatechartMixin`
        if self._quiet_writers.get(agent.__class__) is write_kept and agent._state in self._rows:
            ticks = agent._ticks_in_state = agent._ticks_in_state + 1
            limit = self._limits.get(agent._state) or agent._timeout_threshold
        else:
            ticks, limit = self._dwell(agent)

        if ticks is None or limit is None or ticks <= limit:
            return None
        if self._schedule is not None:
            return self._times_out(agent, ticks, context)
        return self.fire(agent, TIMEOUT, context) if TIMEOUT in self._triggers else None

    def _dwell(self, agent: Any) -> tuple[int | None, float | None]:
        """Count one more tick in the state; return the ticks now, and the limit."""
        ticks = getattr(agent, "ticks_in_state", None)
        if ticks is not None:
            self._require_known_state(agent)
            self._writer_of(agent)
            ticks = count_tick(agent, ticks)

        elif self._schedule is not None:
            # rates and composites need no count of the agent's
            return 1, LIMIT_OF_TIMED

        own_limit = getattr(agent, "timeout_threshold", None)

        return ticks, self._limits.get(self._state_of(agent)) or own_limit

    def _times_out(
        self, agent: Any, ticks: int, context: Any, *, by_chance: bool = True
    ) -> StateT | None:
        """Make the transitions of one tick; return the new state, or None if there were none.

        Args:
            agent: The agent.
            ticks: How many it has spent in its state, this one included.
            context: What guards and actions get.
            by_chance: Whether rates are looked at; whoever has a time for each event does it.
        """
        assert self._schedule is not None
        assert self._nested is not None
        active = sorted(self._nested.place(agent.state).active)
        if self._schedule.remembers:
            timed = self._nested.planner.timed
            texts = [self._nested.tree.texts[number] for number in active if number in timed]
            count(memory_of(self._definition.name, agent), texts)

        parts = (agent, active, context)
        due = chain(
            self._time_outs(self._schedule.limits, ticks, *parts),
            self._moments(self._schedule.after, *parts),
            self._chances(self._schedule.rates if by_chance else {}, *parts),
            self._following(self._schedule, agent, context),
        )
        made = [state for state in due if state is not None]
        return made[-1] if made else None

    # each transition is made only if its state is still active when its turn comes

    def _time_outs(
        self, limits: Mapping[int, int], ticks: int, agent: Any, active: list[int], context: Any
    ) -> Iterator[StateT | None]:
        if TIMEOUT not in self._triggers:
            return

        limited = [number for number in active if number in limits]
        own = getattr(agent, "timeout_threshold", None)
        # the agent's own limit is for states that the chart sets none for
        if not limited and own is not None and ticks > own:
            yield self.fire(agent, TIMEOUT, context)
        for number in limited:
            if self._time_in(agent, number) > limits[number]:
                yield self.fire(agent, TIMEOUT, context)

    def _moments(
        self, after: Mapping[int, list[Arc]], agent: Any, active: list[int], context: Any
    ) -> Iterator[StateT | None]:
        for number in active:
            for arc in after.get(number, ()):
                if self._time_in(agent, number) == arc.written.after:
                    yield self._fire_alone(agent, arc, context)

    def _chances(
        self, rates: Mapping[int, list[Arc]], agent: Any, active: list[int], context: Any
    ) -> Iterator[StateT | None]:
        for number in active:
            if number in rates and self._is_active(agent, number):
                arc = self._drawn(agent, rates[number], context)
                if arc is not None:
                    yield self._fire_alone(agent, arc, context)

    def _following(self, schedule: Schedule, agent: Any, context: Any) -> Iterator[StateT | None]:
        """Settle once, and fire the delayed events of a document that are due."""
        if schedule.is_eventless:
            following = self._reacting(agent, EVENTLESS, context)
            yield None if following is None else self._run(agent, following, context)
        if schedule.sends:
            from prism.statechart._engine.documents import Event, next_due

            memory = memory_of(self._definition.name, agent)
            while (sent := next_due(memory)) is not None:
                event = Event(sent["event"], sent["data"], sendid=sent["id"])
                yield self._fire_or_queue(agent, sent["event"], event)

    def _is_active(self, agent: Any, number: int) -> bool:
        assert self._nested is not None
        return number in self._nested.place(agent.state).active

    def _time_in(self, agent: Any, number: int) -> int:
        """Return the ticks for which a state has been active; -1 if it is not, or none are kept."""
        assert self._schedule is not None
        assert self._nested is not None
        if not self._is_active(agent, number):
            return -1
        if not self._schedule.remembers:
            ticks = getattr(agent, "ticks_in_state", None)
            return -1 if ticks is None else int(ticks)

        memory, text = memory_of(self._definition.name, agent), self._nested.tree.texts[number]
        return int(memory["ticks"] - memory["entered"].get(text, memory["ticks"]))

    def _drawn(self, agent: Any, arcs: list[Arc], context: Any) -> Arc | None:
        """Return which of the competing transitions happens in this tick; None if none does.

        One number says both. The sum of the rates makes it happen with ``1 - exp(-sum)``, and each
        has the share of its rate, as for exponential times of which the first counts.
        """
        sums = [*accumulate(self._rate(agent, arc, context) for arc in arcs)]
        chance = -expm1(-sums[-1])
        # no number is drawn where nothing can happen
        number = random_of(self._definition.name, agent).random() if chance > 0 else 1.0
        if number >= chance:
            return None
        return arcs[min(bisect_right(sums, number / chance * sums[-1]), len(arcs) - 1)]

    def _rate(self, agent: Any, arc: Arc, context: Any) -> float:
        rate: Any = arc.written.rate
        if not callable(rate):
            return float(rate)

        try:
            value = float(rate(agent, context))
            if not (isfinite(value) and value >= 0):
                raise FieldValueError(f"a rate must be a number, 0 or more, got {value!r}")
        except Exception as error:
            assert self._nested is not None
            edge = self._nested.alone[agent.state, arc][3]
            self._reporter.guard_failed(error, agent, edge)
            return 0.0

        return value

    def _fire_alone(self, agent: Any, arc: Arc, context: Any) -> StateT | None:
        """Make one transition whose time has come, and no other of its trigger."""
        assert self._nested is not None
        for passing in self._passing([self._nested.alone[agent.state, arc]], agent, context):
            return self._run(agent, passing, context)
        return None

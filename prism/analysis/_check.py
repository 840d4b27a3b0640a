"""Replaying a log against a chart: every step that the chart does not allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import duckdb

from prism.analysis._log import Log
from prism.statechart import Statechart
from prism.statechart.states import SEPARATOR, state_text
from prism.statechart.transitions import TIMEOUT, is_meant, trigger_text


class Fault(NamedTuple):
    """A step that a chart does not allow.

    Args:
        kind: One of the kinds that `prism.analysis.check_log` names.
        logged: What the log says.
        allowed: What the chart would allow.
    """

    kind: str
    logged: str
    allowed: str


class _Step(NamedTuple):
    """A transition between two leaves, by their texts; several stand for one with composites."""

    source: str
    trigger: str
    target: str
    has_guard: bool


class Rules:
    """What a chart allows, with states as texts, as in logs.

    Args:
        chart: The chart.
    """

    def __init__(self, chart: Statechart[Any]) -> None:
        self.chart: str = chart.name
        definition = chart.definition
        self._regions = chart if definition.hierarchy.has_regions else None
        self._steps = {
            state_text(leaf): [
                _Step(
                    state_text(leaf),
                    trigger_text(item.trigger),
                    state_text(target),
                    item.guard is not None,
                )
                for item, target in definition.steps_from(leaf)
            ]
            for leaf in definition.states
        }

        timed = [step for step in chain(*self._steps.values()) if step.trigger == TIMEOUT]
        limits = {state_text(state): ticks for state, ticks in definition.timeouts.items()}
        self._limits = {step.source: limits.get(step.source) for step in timed}
        # a guard can block the time-out; what leads back to its state begins the time anew
        loops = {step.source for step in chain(*self._steps.values()) if step.source == step.target}
        self._surely_left = {step.source for step in timed if not step.has_guard} - loops

    def state_faults(self, state: str | None) -> Iterator[Fault]:
        """Check the name of a state."""
        regions = self._regions
        if state not in self._steps if regions is None else not regions.can_be_in(state):
            yield Fault("unknown_state", str(state), f"the states {', '.join(self._steps)}")

    def transition_faults(
        self, source: str, target: str, trigger: str, ticks: int | None, threshold: int | None
    ) -> Iterator[Fault]:
        """Check a transition.

        Args:
            source: State that is left.
            target: State that is entered.
            trigger: Trigger of the transition.
            ticks: Ticks that the agent stayed in the source, if known.
            threshold: Ticks that it may stay if the chart sets no limit, if known.
        """
        unknown = [*self.state_faults(source), *self.state_faults(target)]
        yield from unknown

        allowed = self._allowed_in(source)
        if not any(is_meant(trigger, step.trigger) for step in chain(*self._steps.values())):
            yield Fault("unknown_trigger", str(trigger), allowed)
        elif not unknown and not self._allows(source, trigger, target):
            yield Fault("unknown_move", f"{source} to {target} on {trigger}", allowed)

        yield from self._dwell_faults(source, trigger, ticks, threshold)

    def decision_faults(
        self, state: str, trigger: str, options: Sequence[str] | None, chosen: str | None
    ) -> Iterator[Fault]:
        """Check a decision.

        Args:
            state: State of the agent when it was asked.
            trigger: The ambiguous trigger.
            options: The states it could choose from; None if the log lacks them.
            chosen: The state it chose.
        """
        unknown = list(self.state_faults(state))
        yield from unknown

        strange = [str(each) for each in options or () if not self._allows(state, trigger, each)]
        if strange and not unknown:
            offered = f"{', '.join(strange)} offered on {trigger}"
            allowed = ", ".join(dict.fromkeys(self._ends(state, trigger))) or f"no {trigger}"
            yield Fault("unknown_option", offered, f"{state} allows {allowed}")

        if options is not None and chosen not in options:
            allowed = f"its options {', '.join(map(str, options))}"
            yield Fault("not_an_option", f"{chosen} chosen", allowed)

    def _dwell_faults(
        self, state: str, trigger: str, ticks: int | None, threshold: int | None
    ) -> Iterator[Fault]:
        limit = self._limits[state] or threshold if state in self._limits else None
        if ticks is None or limit is None:
            return

        # A time-out is due in the first tick over the limit.
        stay, allowed = f"{ticks} ticks in {state}", f"a time-out after {limit + 1}"
        if ticks > limit + 1 and state in self._surely_left:
            yield Fault("overstayed", stay, allowed)

        if trigger == TIMEOUT and ticks <= limit:
            yield Fault("early_timeout", stay, allowed)

    def _steps_of(self, state: str) -> list[_Step]:
        """Return the steps from a state; from each leaf of a configuration."""
        leaves = [state] if self._regions is None else state.split(SEPARATOR)
        return [step for leaf in leaves for step in self._steps.get(leaf, ())]

    def _ends(self, state: str, trigger: str) -> list[str]:
        """Return the targets of the steps from a state on a trigger."""
        return [step.target for step in self._steps_of(state) if is_meant(trigger, step.trigger)]

    def _allows(self, source: str, trigger: str, target: str) -> bool:
        ends = self._ends(source, trigger)
        if self._regions is None:
            return target in ends
        # a step of several regions enters only what their transitions lead to
        entered = {*target.split(SEPARATOR)} - {*source.split(SEPARATOR)}
        return bool(ends) and entered.issubset(ends)

    def _allowed_in(self, state: str) -> str:
        steps = [f"{step.trigger} to {step.target}" for step in self._steps_of(state)]
        return f"{state} allows {', '.join(steps) or 'no transition'}"


_CHECKS: Mapping[str, tuple[Callable[..., Iterator[Fault]], Sequence[str]]] = {
    "agent.joined": (Rules.state_faults, ("state",)),
    "statechart.transition": (
        Rules.transition_faults,
        ("from_state", "to_state", "trigger", "ticks_in_state", "threshold"),
    ),
    "reasoner.decision": (Rules.decision_faults, ("state", "trigger", "options", "chosen")),
}
"""The check of each kind of event, and the keys of the event that it takes."""

# Events without a chart belong to this one. An agent times out by the limit of its last joining.
_CHECKED = """
create or replace temp table checked as
with chosen as (
    select run, line, event, agent_id, chart, state, from_state, to_state, "trigger",
           ticks_in_state, options, chosen, timeout_threshold
    from events
    where event in ('agent.joined', 'statechart.transition', 'reasoner.decision')
      and agent_id is not null and coalesce(chart, $chart) = $chart
)
select *, coalesce(last_value(if(event = 'agent.joined', timeout_threshold, null) ignore nulls)
                       over (partition by run, agent_id order by line), $threshold) as threshold
from chosen
"""

_BROKEN = """
select run, line, agent_id, 'broken_chain' as kind, 'a transition from ' || from_state as logged,
       format('a transition from {}, entered in line {}', before, before_line) as allowed,
       1 as number
from (select *, lag(coalesce(to_state, state)) over agent as before,
             lag(line) over agent as before_line
      from checked where event <> 'reasoner.decision'
      window agent as (partition by run, agent_id order by line))
where from_state <> before
"""


@dataclass(frozen=True, slots=True)
class Conformance:
    """The result of checking a log against a chart.

    Args:
        violations: The violations in the order of the log: ``line``, ``agent_id``, ``kind``,
            ``logged`` and ``allowed`` (what the chart would have allowed). If there are several
            runs, ``run`` is the first column.
        counts: Number of violations of each kind.
        checked: Number of events that were checked: transitions, decisions, and agents joining.
        other_charts: Number of transitions that were not checked because they belong to another
            chart, by the chart's name.
    """

    violations: duckdb.DuckDBPyRelation
    counts: Mapping[str, int]
    checked: int
    other_charts: Mapping[str, int]


def check_log(
    log: Log, chart: Statechart[Any], *, timeout_threshold: int | None = None
) -> Conformance:
    """Replay logs against a chart, and report every step that the chart does not allow.

    The kinds of violations:

    - ``unknown_state``, ``unknown_trigger``: the chart has no such state or trigger.
    - ``unknown_move``: the trigger does not lead from the source to the target.
    - ``broken_chain``: a transition does not start where the agent's last one ended.
    - ``overstayed``: an agent stayed although its time-out was due and no guard could block it.
    - ``early_timeout``: a time-out that was not due. It is due when the ticks are strictly more
      than the limit (specification, FR-6.2).
    - ``unknown_option``: a decision offered a state that its trigger does not lead to.
    - ``not_an_option``: a decision chose a state that it did not offer.

    Guards are not replayed, since the log lacks the data that they read.

    Args:
        log: The logs, from `read_log`.
        chart: The chart. Transitions that name another chart are left out and counted.
        timeout_threshold: Ticks after which agents time out of states for which neither the chart
            nor the log has a limit; the log of a simulation has one for every agent. Without any,
            time-outs of these states are not checked.
    """
    rules = Rules(chart)
    execute = log.connection.execute
    execute(_CHECKED, {"chart": rules.chart, "threshold": timeout_threshold})
    ((checked,),) = execute("select count(*) from checked").fetchall()
    others = execute(
        "select chart, count(*) from events where event = 'statechart.transition' and chart <> ? "
        "group by chart",
        [rules.chart],
    ).fetchall()
    _note_faults(log, rules)
    query = (
        f"select run, line, agent_id, kind, logged, allowed, number from faulty union all {_BROKEN}"
    )
    execute(f"create or replace temp table violations as {query}")
    kinds = execute("select kind, count(*) from violations group by kind").fetchall()
    run = "run::varchar as run, " if len(log.runs) > 1 else ""
    rows = log.sql(
        f"select {run}line, agent_id, kind, logged, allowed from violations "
        "order by violations.run, line, number > 0, -number"
    )

    return Conformance(rows, dict(kinds), checked, dict(others))


def _note_faults(log: Log, rules: Rules) -> None:
    """Check each case once, since a log repeats a few many times, and note all of its lines."""
    execute = log.connection.execute
    execute(
        "create or replace temp table faulty as select run, line, agent_id, '' as kind, "
        "'' as logged, '' as allowed, 0 as number from checked limit 0"
    )
    number = 0
    for event, (check, keys) in _CHECKS.items():
        names = ", ".join(f'"{key}"' for key in keys)
        cases = execute(f"select distinct {names} from checked where event = ?", [event]).fetchall()
        same = " and ".join(f'"{key}" is not distinct from ?' for key in keys)
        for case in cases:
            for fault in check(rules, *case):
                number -= 1
                execute(
                    "insert into faulty select run, line, agent_id, ?, ?, ?, ? from checked "
                    f"where event = ? and {same}",
                    [*fault, number, event, *case],
                )

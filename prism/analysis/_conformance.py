"""Replaying a log against a chart: every step that the chart does not allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.statechart import Statechart, Transition
from prism.statechart.states import SEPARATOR, state_text
from prism.statechart.transitions import TIMEOUT
from prism.telemetry.events import AGENT_JOINED, DECISION, TRANSITION


class Fault(NamedTuple):
    """A step that a chart does not allow.

    Args:
        kind: One of the kinds that `prism.analysis.check_log` names.
        found: What the log says.
        allowed: What the chart would allow.
    """

    kind: str
    found: str
    allowed: str


def _surely_left(timed: Iterable[Transition[Any]]) -> set[str]:
    """Return the states that an agent certainly leaves when its time-out is due."""
    # a guard can block the time-out, and one that leads back to its state ends no visit
    unguarded = {state_text(item.source) for item in timed if item.guard is None}
    loops = {state_text(item.source) for item in timed if item.source == item.target}

    return unguarded - loops


class Rules:
    """What a chart allows, with states as texts, as in logs.

    Args:
        chart: The chart.
    """

    def __init__(self, chart: Statechart[Any]) -> None:
        self.chart: str = chart.name
        tree = chart.definition.tree
        self._regions = chart if tree is not None and tree.tree.has_regions else None
        self._states = [state_text(state) for state in chart.definition.states]
        self._transitions = [
            (state_text(item.source), item.trigger, state_text(item.target))
            for item in chart.transitions
        ]

        timed = [item for item in chart.transitions if item.trigger == TIMEOUT]
        self._limits = {state_text(item.source): chart.timeouts.get(item.source) for item in timed}
        self._surely_left = _surely_left(timed)

    def state_faults(self, state: str | None) -> Iterator[Fault]:
        """Check the name of a state."""
        regions = self._regions
        if state not in self._states if regions is None else not regions.can_be_in(state):
            yield Fault("unknown_state", str(state), f"the states {', '.join(self._states)}")

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

        allowed = self._ways_out(source)
        if all(trigger != known for _, known, _ in self._transitions):
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

        targets = self._targets(state, trigger)
        strange = [str(option) for option in options or () if option not in targets]
        if strange and not unknown:
            found = f"{', '.join(strange)} offered on {trigger}"
            allowed = ", ".join(targets) if targets else f"no {trigger}"
            yield Fault("unknown_option", found, f"{state} allows {allowed}")

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
        found, allowed = f"{ticks} ticks in {state}", f"a time-out after {limit + 1}"
        if ticks > limit + 1 and state in self._surely_left:
            yield Fault("overstayed", found, allowed)

        if trigger == TIMEOUT and ticks <= limit:
            yield Fault("early_timeout", found, allowed)

    def _allows(self, source: str, trigger: str, target: str) -> bool:
        if self._regions is None:
            return (source, trigger, target) in self._transitions
        return self._regions.may_lead(source, trigger, target)

    def _targets(self, state: str, trigger: str) -> list[str]:
        if self._regions is not None:
            found = self._regions.valid_targets(self._regions.state_of(state), trigger)
            return list(map(state_text, found))

        return list(
            dict.fromkeys(
                target
                for source, known, target in self._transitions
                if (source, known) == (state, trigger)
            )
        )

    def _ways_out(self, state: str) -> str:
        # for a configuration, those of each leaf
        leaves = [state] if self._regions is None else state.split(SEPARATOR)
        ways = [
            f"{trigger} to {target}"
            for source, trigger, target in self._transitions
            if source in leaves
        ]
        return f"{state} allows {', '.join(ways) or 'no transition'}"


DEFAULT_MOST = 1000

_TRANSITION = ("from_state", "to_state", "trigger", "ticks_in_state")
_LIMIT = "timeout_threshold"
_DECISION = ("state", "trigger", "options", "chosen")
_COLUMNS = ("chart", "agent_id", _LIMIT, *_TRANSITION, *_DECISION)
_AGENT = ("run", "agent_id")
_FAULT = {"kind": pl.String(), "found": pl.String(), "allowed": pl.String()}
_VIOLATION = {"run": pl.UInt32(), "line": pl.UInt32(), "agent_id": pl.String(), **_FAULT}


@dataclass(frozen=True, slots=True)
class Conformance:
    """The result of checking a log against a chart.

    Args:
        violations: The violations, or the first of them, in the order of the log: ``line``,
            ``agent_id``, ``kind``, ``found`` and ``allowed`` (what the chart would have allowed).
            If there are several runs, ``run`` is the first column.
        found: Number of violations of each kind.
        checked: Number of events that were checked: transitions, decisions, and agents joining.
        other_charts: Number of transitions that were not checked because they belong to another
            chart, by the chart's name.
        joined: Number of agents joining among them, whose first state was checked.
        unrelated: Labels of the runs in which nothing belongs to the chart: all their transitions
            belong to other charts, and no agent joins with this one.
    """

    violations: pl.DataFrame
    found: Mapping[str, int]
    checked: int
    other_charts: Mapping[str, int]
    joined: int = 0
    unrelated: tuple[str, ...] = ()


def check_log(
    logs: RunLogs,
    chart: Statechart[Any],
    *,
    timeout_threshold: int | None = None,
    most: int | None = DEFAULT_MOST,
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
        logs: The logs, from `read_log`.
        chart: The chart. Transitions that name another chart are left out and counted.
        timeout_threshold: Ticks after which agents time out of states for which neither the chart
            nor the log has a limit; the log of a simulation has one for every agent. Without any,
            time-outs of these states are not checked.
        most: Most violations in ``violations``; None for all. All are counted.
    """
    replay = _Replay(Rules(chart), timeout_threshold)
    first = [pl.DataFrame(schema=_VIOLATION)]
    found: Counter[str] = Counter()
    for violations in replay.through(logs):
        found.update(dict(violations["kind"].value_counts().iter_rows()))
        left = violations.height if most is None else most - sum(map(len, first))
        first.append(violations.head(left))

    unrelated = tuple(
        run.label for number, run in enumerate(logs.runs) if number in replay.unrelated_runs
    )
    others = dict(replay.other_charts)

    table = logs.labelled(pl.concat(first))
    return Conformance(table, dict(found), replay.checked, others, replay.joined, unrelated)


class _Replay:
    """Follows the agents of a log through its blocks.

    Attributes:
        checked: Number of events that were checked.
        joined: Number of agents joining among them.
        other_charts: Number of transitions by other charts.
    """

    def __init__(self, rules: Rules, timeout_threshold: int | None) -> None:
        self.checked = self.joined = 0
        self.other_charts: Counter[str] = Counter()
        self._runs_of_others: set[int] = set()
        self._own_runs: set[int] = set()
        self._rules = rules
        self._last: dict[tuple[int, str], tuple[str, int]] = {}
        self._threshold = timeout_threshold
        # agents that joined with another chart
        self._strangers = pl.DataFrame(schema={"run": pl.UInt32, "agent_id": pl.String})
        self._limits = pl.DataFrame(
            schema={"run": pl.UInt32, "agent_id": pl.String, _LIMIT: pl.Int64}
        )

    @property
    def unrelated_runs(self) -> set[int]:
        """Numbers of the runs in which all transitions belong to other charts."""
        return self._runs_of_others - self._own_runs

    def through(self, logs: RunLogs) -> Iterator[pl.DataFrame]:
        """Check logs block by block, and return the violations in the order of the log."""
        for frame in logs.blocks(AGENT_JOINED, DECISION, TRANSITION, columns=_COLUMNS):
            yield self._check(frame)

    def _check(self, frame: pl.DataFrame) -> pl.DataFrame:
        steps = self._own_steps(frame)
        self.checked += steps.height

        event = pl.col("event")
        joins, transitions = steps.filter(event == AGENT_JOINED), steps.filter(event == TRANSITION)
        self.joined += joins.height
        limited = self._limited(joins, transitions)
        decisions = steps.filter(event == DECISION)
        violations = [
            _faulty(joins, ("state",), self._rules.state_faults),
            _faulty(limited, (*_TRANSITION, _LIMIT), self._rules.transition_faults),
            _faulty(decisions, _DECISION, self._rules.decision_faults),
            self._broken_paths(steps.filter(event != DECISION)),
        ]

        return pl.concat(violations).sort("run", "line", maintain_order=True)

    def _own_steps(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Count the transitions of other charts, and leave them and their agents out."""
        event, is_foreign = pl.col("event"), pl.col("chart") != self._rules.chart
        is_other = (event == TRANSITION) & is_foreign
        others = frame.filter(is_other)
        self.other_charts.update(dict(others["chart"].value_counts().iter_rows()))
        self._runs_of_others.update(others["run"].unique())

        # events without a chart belong to this one, except joins and decisions among those of
        # others
        is_own = (event == TRANSITION) & ~is_foreign.fill_null(value=False)
        names_it = pl.col("chart") == self._rules.chart
        self._own_runs.update(frame.filter(is_own | names_it)["run"].unique())

        # decisions name no chart: they belong to the one with which their agent joined
        joined = frame.filter(event == AGENT_JOINED, is_foreign).select(_AGENT)
        if joined.height:
            self._strangers = pl.concat([self._strangers, joined]).unique()

        own = frame.filter(~is_other.fill_null(value=False), pl.col("agent_id").is_not_null())
        unnamed = own.filter((event != TRANSITION) | pl.col("chart").is_null())
        foreign = unnamed.join(self._strangers, on=_AGENT, how="semi")

        return own.join(foreign, on=["run", "line"], how="anti", maintain_order="left")

    def _limited(self, joins: pl.DataFrame, transitions: pl.DataFrame) -> pl.DataFrame:
        """Add to each transition the limit that its agent joined with."""
        if joins.height:
            limits = pl.concat([self._limits, joins.select(self._limits.columns)])
            self._limits = limits.unique(_AGENT, keep="last")

        limited = transitions.drop(_LIMIT).join(
            self._limits, on=_AGENT, how="left", maintain_order="left"
        )
        return limited.with_columns(pl.coalesce(_LIMIT, pl.lit(self._threshold, pl.Int64)))

    def _broken_paths(self, steps: pl.DataFrame) -> pl.DataFrame:
        """Return the transitions that do not start where the agent's last one ended."""
        steps = steps.with_columns(end=pl.coalesce("to_state", "state"))
        linked = steps.with_columns(
            last=pl.col("end").shift(1).over(_AGENT), last_line=pl.col("line").shift(1).over(_AGENT)
        )
        is_linked = pl.col("last_line").is_not_null()
        both = pl.concat([linked.filter(is_linked), self._carried_on(linked.filter(~is_linked))])

        ends = steps.unique(_AGENT, keep="last").select(*_AGENT, "end", "line")
        self._last.update(((run, name), (end, line)) for run, name, end, line in ends.iter_rows())

        return both.filter(pl.col("from_state") != pl.col("last")).select(
            "run",
            "line",
            "agent_id",
            kind=pl.lit("broken_chain"),
            found=pl.format("a transition from {}", "from_state"),
            allowed=pl.format("a transition from {}, entered in line {}", "last", "last_line"),
        )

    def _carried_on(self, first: pl.DataFrame) -> pl.DataFrame:
        """Link each agent's first step in a block to its last one in the blocks before."""
        known = [self._last.get(key, (None, None)) for key in first.select(_AGENT).iter_rows()]
        last = pl.DataFrame(known, schema={"last": pl.String, "last_line": pl.UInt32}, orient="row")
        return first.with_columns(last.get_columns())


def _faulty(
    steps: pl.DataFrame, keys: Sequence[str], faults_of: Callable[..., Iterator[Fault]]
) -> pl.DataFrame:
    """Return the steps that have faults."""
    # A log repeats a few cases many times, so each case is checked once.
    cases = steps.select(keys).unique()
    faults = [
        (number, *fault)
        for number, case in enumerate(cases.iter_rows())
        for fault in faults_of(*case)
    ]
    if not faults:
        return pl.DataFrame(schema=_VIOLATION)

    known = pl.DataFrame(faults, schema={"case": pl.UInt32, **_FAULT}, orient="row")
    numbered = cases.with_row_index("case").join(known, on="case", maintain_order="right")

    return steps.join(numbered, on=keys, nulls_equal=True, maintain_order="left").select(
        list(_VIOLATION)
    )

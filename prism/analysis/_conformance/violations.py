"""Replaying a log against a chart: every step that the chart does not allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from prism.analysis._conformance.rules import Fault, Rules
from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.queries import query_of
from prism.statechart import Statechart
from prism.telemetry.events import AGENT_JOINED, DECISION, TRANSITION

DEFAULT_MOST = 1000

_MOVE = ("from_state", "to_state", "trigger", "ticks_in_state")
_LIMIT = "timeout_threshold"
_DECISION = ("state", "trigger", "options", "chosen")
_COLUMNS = ("chart", "agent_id", _LIMIT, *_MOVE, *_DECISION)
_AGENT = ("run", "agent_id")
_FAULT = {"kind": pl.String(), "found": pl.String(), "allowed": pl.String()}
_VIOLATION = {"run": pl.UInt32(), "line": pl.UInt32(), "agent_id": pl.String(), **_FAULT}


@dataclass(frozen=True, slots=True)
class Conformance:
    """How a log agrees with a chart.

    Args:
        violations: The first of them, in the order of the log: ``line``, ``agent_id``, ``kind``,
            ``found`` and ``allowed`` (what the chart would have allowed), with ``run`` first if
            there are several.
        all_violations: All of them, as a query that replays the logs once more; they may be too
            many to hold in memory, but not for ``sink_csv`` and the like.
        found: How many there are in all, by kind.
        checked: Steps that were checked: moves, decisions, and agents joining.
        other_charts: Moves that were not checked because they are by another chart, by its name.
    """

    violations: pl.DataFrame
    all_violations: pl.LazyFrame
    found: Mapping[str, int]
    checked: int
    other_charts: Mapping[str, int]


def check_log(
    logs: RunLogs,
    chart: Statechart[Any],
    *,
    timeout_threshold: int | None = None,
    most: int = DEFAULT_MOST,
) -> Conformance:
    """Replay logs against a chart, and report every step that it does not allow.

    The kinds of violations: ``unknown_state`` and ``unknown_trigger``, which the chart does not
    have; ``unknown_move``, whose trigger does not lead from its source to its target;
    ``broken_chain``, a move that does not start where the agent's last one ended; ``overstayed``,
    an agent that dwelt on though its time-out was due and no guard could hold it back, and
    ``early_timeout``, one whose time-out was not due (it is when the ticks are strictly more than
    the limit; ``spec/spec.md``, FR-6.2); ``unknown_option``, a decision that offered what its
    trigger does not lead to; ``not_an_option``, one that chose something else than it offered.
    Guards are not replayed: what they look at is not in the log.

    Args:
        logs: What `read_log` gave.
        chart: The chart. Moves that name another chart are left out and counted.
        timeout_threshold: Ticks after which agents time out of states that the chart sets no limit
            for, where the log does not tell: it does where an agent joined a simulation. Where
            neither does, time-outs of those states are not checked.
        most: Violations to give in ``violations``; all are counted.
    """
    replay = _Replay(Rules(chart), timeout_threshold)
    kept = [pl.DataFrame(schema=_VIOLATION)]
    found: Counter[str] = Counter()
    for violations in replay.through(logs):
        found.update(dict(violations["kind"].value_counts().iter_rows()))
        kept.append(violations.head(most - sum(table.height for table in kept)))

    first = logs.labelled(pl.concat(kept))
    every = query_of(
        lambda _: map(logs.labelled, _Replay(Rules(chart), timeout_threshold).through(logs)),
        schema=first.schema,
    )

    return Conformance(first, every, dict(found), replay.checked, dict(replay.other_charts))


class _Replay:
    """Follows the agents of a log through its blocks.

    Attributes:
        checked: Steps that were checked.
        other_charts: Moves by other charts.
    """

    def __init__(self, rules: Rules, timeout_threshold: int | None) -> None:
        self.checked = 0
        self.other_charts: Counter[str] = Counter()
        self._rules = rules
        self._last: dict[tuple[int, str], tuple[str, int]] = {}
        self._threshold = timeout_threshold
        self._limits = pl.DataFrame(
            schema={"run": pl.UInt32, "agent_id": pl.String, _LIMIT: pl.Int64}
        )

    def through(self, logs: RunLogs) -> Iterator[pl.DataFrame]:
        """Check logs block by block; the violations are in the order of the log."""
        for frame in logs.blocks(AGENT_JOINED, DECISION, TRANSITION, columns=_COLUMNS):
            yield self._check(frame)

    def _check(self, frame: pl.DataFrame) -> pl.DataFrame:
        event = pl.col("event")
        is_other = (event == TRANSITION) & (pl.col("chart") != self._rules.chart)
        self.other_charts.update(dict(frame.filter(is_other)["chart"].value_counts().iter_rows()))
        steps = frame.filter(~is_other.fill_null(value=False), pl.col("agent_id").is_not_null())
        self.checked += steps.height
        joins, moves = steps.filter(event == AGENT_JOINED), steps.filter(event == TRANSITION)
        decisions = steps.filter(event == DECISION)
        parts = [
            _faulty(joins, ("state",), self._rules.state_faults),
            _faulty(self._limited(joins, moves), (*_MOVE, _LIMIT), self._rules.move_faults),
            _faulty(decisions, _DECISION, self._rules.decision_faults),
            self._broken_chains(steps.filter(event != DECISION)),
        ]

        return pl.concat(parts).sort("run", "line", maintain_order=True)

    def _limited(self, joins: pl.DataFrame, moves: pl.DataFrame) -> pl.DataFrame:
        """Give each move the limit that its agent joined with."""
        if joins.height:
            told = pl.concat([self._limits, joins.select(self._limits.columns)])
            self._limits = told.unique(_AGENT, keep="last")

        limited = moves.drop(_LIMIT).join(
            self._limits, on=_AGENT, how="left", maintain_order="left"
        )
        return limited.with_columns(pl.coalesce(_LIMIT, pl.lit(self._threshold, pl.Int64)))

    def _broken_chains(self, steps: pl.DataFrame) -> pl.DataFrame:
        """Find moves that do not start where the last one of the agent ended."""
        steps = steps.with_columns(end=pl.coalesce("to_state", "state"))
        steps = steps.with_columns(
            last=pl.col("end").shift(1).over(_AGENT), last_line=pl.col("line").shift(1).over(_AGENT)
        )
        broken = pl.concat(
            [steps.filter(pl.col("last_line").is_not_null()), self._carried_on(steps)]
        )
        self._last.update(
            ((run, name), (end, line))
            for run, name, end, line in steps.unique(_AGENT, keep="last")
            .select(*_AGENT, "end", "line")
            .iter_rows()
        )

        return broken.filter(pl.col("from_state") != pl.col("last")).select(
            *("run", "line", "agent_id"),
            kind=pl.lit("broken_chain"),
            found=pl.format("a move from {}", "from_state"),
            allowed=pl.format("a move from {}, entered in line {}", "last", "last_line"),
        )

    def _carried_on(self, steps: pl.DataFrame) -> pl.DataFrame:
        """Give each agent's first step in a block its last one from the blocks before."""
        first = steps.filter(pl.col("last_line").is_null())
        known = [self._last.get(key, (None, None)) for key in first.select(_AGENT).iter_rows()]
        last = pl.DataFrame(known, schema={"last": pl.String, "last_line": pl.UInt32}, orient="row")
        return first.with_columns(last.get_columns())


def _faulty(
    steps: pl.DataFrame, keys: Sequence[str], faults_of: Callable[..., Iterator[Fault]]
) -> pl.DataFrame:
    """Return the steps that have faults; what is the same in many steps is looked at once."""
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

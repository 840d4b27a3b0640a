"""Estimate, from the decisions of runs, a policy that can replace the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from prism.errors import FieldValueError, InputError
from prism.runs._policy_file import Policy
from prism.science._batch_tables import table_of
from prism.statechart import Definition, Statechart, social_feed_chart, social_media_chart
from prism.statechart.states import state_text
from prism.telemetry.events import AGENT_JOINED, DECISION, RUN_STARTED

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

    from prism.analysis import Log

LEAST = 10
"""Fewest decisions in a situation that identify its probabilities."""

_DECISIONS = f"""
select state, "trigger" as event, options, chosen, run, line, case
    when source = 'fallback' then 'fallback'
    when not list_contains(options, chosen) then 'not among the options'
    when len(options) < 2 then 'one option' end as left_out
from events where event = '{DECISION}'
"""

_SHARES = f"""
with used as (from ({_DECISIONS}) where left_out is null),
offered as (select * exclude options, unnest(options) as option,
                   generate_subscripts(options, 1) as place from used)
select state, event, option, sum(count(*) filter (chosen = option)) over situation as n,
       count(*) filter (chosen = option) as count
from offered group by state, event, option
window situation as (partition by state, event)
order by state, event, min((run, line, place))
"""


@dataclass(frozen=True)
class Calibration:
    """What the decisions of runs say of a policy.

    Args:
        rows: A row for each option of each situation: ``state``, ``event``, ``option``, ``n``
            decisions there, ``count`` of this choice, and ``probability`` (None if there are too
            few decisions).
        unclear: A row for each thing that the decisions do not identify: ``state``, ``event``,
            ``option`` (None for the whole situation), ``n`` decisions, and ``reason``.
        left_out: The number of decisions that were not used, by reason.
    """

    rows: tuple[Mapping[str, Any], ...]
    unclear: tuple[Mapping[str, Any], ...]
    left_out: Mapping[str, int]

    @property
    def probabilities(self) -> DuckDBPyRelation:
        """The ``rows`` as a table."""
        return table_of(self.rows)

    @property
    def unidentified(self) -> DuckDBPyRelation:
        """The ``unclear`` rows as a table."""
        return table_of(self.unclear)

    @property
    def policy(self) -> Policy:
        """The policy: the shares wherever they are identified."""
        found: dict[str, dict[str, dict[str, float]]] = {}
        for row in self.rows:
            if row["probability"] is not None:
                options = found.setdefault(row["state"], {}).setdefault(row["event"], {})
                options[row["option"]] = row["probability"]

        return Policy(found)


def calibrate(
    logs: Log, *, least: int = LEAST, charts: Sequence[Statechart[Any]] = ()
) -> Calibration:
    """Estimate a policy from the decisions of runs.

    Its probabilities are the shares of each choice for each state and event, which are the
    maximum-likelihood estimates of a multinomial.

    Whatever the decisions cannot identify is listed in ``unidentified``: states in which no agent
    decided, options that were never offered, options that were never chosen (whose estimate is 0),
    and situations with fewer than ``least`` decisions.

    Args:
        logs: The runs, from `prism.analysis.read_log`. Decisions that fell back are left out.
        least: Fewest decisions in a situation that identify its probabilities.
        charts: Charts of the agents, which define what could have been decided. The feed's is
            known.

    Raises:
        FieldValueError: If ``least`` is below 1.
        InputError: If the runs hold no decisions.
    """
    if least < 1:
        raise FieldValueError(f"least must be 1 or more, got {least}")

    counted = f"select left_out, count(*) from ({_DECISIONS}) where left_out is not null"
    left_out = dict(logs.sql(f"{counted} group by all order by 2 desc, 1").fetchall())
    table = logs.sql(_SHARES)
    rows = [
        {**row, "probability": row["count"] / row["n"] if row["n"] >= least else None}
        for row in (dict(zip(table.columns, each, strict=True)) for each in table.fetchall())
    ]
    if not rows:
        names = ", ".join(str(run.path) for run in logs.runs)
        why = f"are all left out ({', '.join(sorted(left_out))})" if left_out else "are missing"
        raise InputError(f"there is nothing to calibrate from: the decisions of {names} {why}")

    columns = ("state", "event", "option", "n", "reason")
    unclear = [*_unclear(rows, least), *_never_met(logs, rows, charts)]
    return Calibration(
        tuple(rows), tuple(dict(zip(columns, each, strict=True)) for each in unclear), left_out
    )


def _unclear(rows: Sequence[Mapping[str, Any]], least: int) -> Iterator[tuple[Any, ...]]:
    few = dict.fromkeys((row["state"], row["event"], row["n"]) for row in rows if row["n"] < least)
    for state, event, n in few:
        yield state, event, None, n, f"only {n} decisions of the {least} needed"
    for row in rows:
        if row["count"] == 0 and row["n"] >= least:
            reason = "was offered but never chosen: the estimate is 0"
            yield row["state"], row["event"], row["option"], row["n"], reason


def _never_met(
    logs: Log, rows: Sequence[Mapping[str, Any]], charts: Sequence[Statechart[Any]]
) -> Iterator[tuple[Any, ...]]:
    """Yield what the charts allow but the decisions never contain."""
    offered: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        offered.setdefault((row["state"], row["event"]), set()).add(row["option"])
    query = f"select distinct chart from events where event in ('{RUN_STARTED}', '{AGENT_JOINED}')"
    known = {name for (name,) in logs.sql(query).fetchall()}
    followed = charts or [each for each in _familiar() if each.name in known]
    for place, targets in chain(*(_ambiguous(each.definition) for each in followed)):
        if place not in offered:
            yield *place, None, 0, "nobody decided there"
            continue
        for target in targets:
            if target not in offered[place]:
                yield *place, target, 0, "was never offered"


def _familiar() -> Iterator[Statechart[Any]]:
    """Yield the charts of the feed, which logs name without their definitions."""
    for make in (social_media_chart, social_feed_chart):
        yield from (make(), make(acts=True))


def _ambiguous(definition: Definition[Any]) -> list[tuple[tuple[str, str], list[str]]]:
    """Return the targets of each event that leaves a choice in a decision state."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in definition.transitions:
        if each.source in definition.decision_states:
            key = state_text(each.source), each.trigger
            found.setdefault(key, []).append(state_text(each.target))

    return [(key, targets) for key, targets in found.items() if len(set(targets)) > 1]

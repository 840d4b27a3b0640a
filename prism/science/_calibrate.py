"""Estimate, from the decisions of runs, a policy that can replace the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from prism.errors import FieldValueError, InputError
from prism.runs._policy_file import Policy
from prism.statechart import Definition, Statechart, social_feed_chart, social_media_chart
from prism.statechart.states import state_text
from prism.telemetry.events import AGENT_JOINED, DECISION, RUN_STARTED

if TYPE_CHECKING:
    from prism.analysis import Log

LEAST = 10
"""Fewest decisions in a situation that identify its probabilities."""

_UNIDENTIFIED = {
    **dict.fromkeys(("state", "event", "option"), pl.String()),
    "n": pl.Int64(),
    "reason": pl.String(),
}


@dataclass(frozen=True)
class Calibration:
    """What the decisions of runs say of a policy.

    Args:
        probabilities: A row for each option of each situation: ``state``, ``event``, ``option``,
            ``n`` decisions there, ``count`` of this choice, and ``probability`` (null if there are
            too few decisions).
        unidentified: A row for each thing that the decisions do not identify: ``state``, ``event``,
            ``option`` (null for the whole situation), ``n`` decisions, and ``reason``.
        left_out: The number of decisions that were not used, by reason.
    """

    probabilities: pl.DataFrame
    unidentified: pl.DataFrame
    left_out: Mapping[str, int]

    @property
    def policy(self) -> Policy:
        """The policy: the shares wherever they are identified."""
        found: dict[str, dict[str, dict[str, float]]] = {}
        known = self.probabilities.drop_nulls("probability")
        for state, event, option, share in known.drop("n", "count").iter_rows():
            found.setdefault(state, {}).setdefault(event, {})[option] = share

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
        MissingExtraError: If the extra ``science`` is not installed.
    """
    if least < 1:
        raise FieldValueError(f"least must be 1 or more, got {least}")

    decided = pl.DataFrame(
        logs.sql(
            'select state, "trigger" as event, source, options, chosen from events '
            f"where event = '{DECISION}' order by run, line"
        )
    )
    decided = decided.with_columns(left_out=_why_left_out())
    left_out = dict(decided["left_out"].drop_nulls().value_counts(sort=True).iter_rows())
    used = decided.filter(pl.col("left_out").is_null())
    if not used.height:
        names = ", ".join(str(run.path) for run in logs.runs)
        why = f"are all left out ({', '.join(sorted(left_out))})" if left_out else "are missing"
        raise InputError(f"there is nothing to calibrate from: the decisions of {names} {why}")

    shares = _shares(used, least)
    unidentified = [*_unclear(shares, least), *_never_met(logs, shares, charts)]
    return Calibration(
        shares, pl.DataFrame(unidentified, schema=_UNIDENTIFIED, orient="row"), left_out
    )


def _shares(used: pl.DataFrame, least: int) -> pl.DataFrame:
    """Return how often each option was chosen in each situation."""
    place = ["state", "event"]
    offered = used.select(*place, "chosen", option="options").explode("option")
    counts = offered.group_by([*place, "option"], maintain_order=True).agg(
        count=(pl.col("chosen") == pl.col("option")).sum().cast(pl.Int64)
    )
    n = pl.col("count").sum().over(place)
    share = pl.when(n >= least).then(pl.col("count") / n)
    table = counts.with_columns(n=n, probability=share)
    return table.select(*place, "option", "n", "count", "probability").sort(
        place, maintain_order=True
    )


def _unclear(shares: pl.DataFrame, least: int) -> Iterator[tuple[Any, ...]]:
    few = shares.filter(pl.col("n") < least).select("state", "event", "n").unique()
    for state, event, n in few.sort("state", "event").iter_rows():
        yield state, event, None, n, f"only {n} decisions of the {least} needed"
    never = shares.filter(count=0).drop_nulls("probability")
    for state, event, option, n in never.select("state", "event", "option", "n").iter_rows():
        yield state, event, option, n, "was offered but never chosen: the estimate is 0"


def _why_left_out() -> pl.Expr:
    return (
        pl.when(pl.col("source") == "fallback")
        .then(pl.lit("fallback"))
        .when(~pl.col("options").list.contains(pl.col("chosen")))
        .then(pl.lit("not among the options"))
        .when(pl.col("options").list.len() < 2)
        .then(pl.lit("one option"))
    )


def _never_met(
    logs: Log, shares: pl.DataFrame, charts: Sequence[Statechart[Any]]
) -> Iterator[tuple[Any, ...]]:
    """Yield what the charts allow but the decisions never contain."""
    offered = dict(
        shares.group_by(["state", "event"]).agg("option").rows_by_key(["state", "event"])
    )
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

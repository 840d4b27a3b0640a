"""How long agents stay in each state, from complete visits and visits that were cut short."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._tables.levels import Level
from prism.analysis._tables.transitions import without_lone_chart
from prism.analysis._tables.visits import OF_STATE, visits_in

_ROUNDING = 1e-12
_PERCENTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}
_COLUMNS = (
    *("visits", "complete", "cut", "open", "zero", "mean", *_PERCENTILES, "max"),
    *("timeout_share", "at_risk"),
)


def dwell_times(logs: RunLogs, *, by_round: bool = False, depth: int | None = None) -> pl.DataFrame:
    """Describe how many ticks agents stay in each state.

    The length of a visit is ``ticks_in_state`` of the transition that ends it: the number of ticks
    in which the agent was in the state at its step. A visit is complete if its agent left by itself
    or by a time-out. It is cut if the end of a round closed it (by ``round_ends``, or by an act
    that the end of a round makes agents finish) or its agent was removed, and open if it had not
    ended when the log did. Cut and open visits would have lasted longer by an unknown time. They
    are censored, and count for as long as they were observed (Kaplan and Meier 1958, Journal of the
    American Statistical Association 53(282)). An open visit counts all ticks since it began,
    including those in which its agent slept. If every visit is complete, all figures are those of
    the plain lengths.

    Where events happen at rates, a visit lasts from one event to the next, in rounds.

    Args:
        logs: The logs, from `read_log`.
        by_round: Whether to add rows for each round, of the visits that ended in it.
        depth: The level whose visits are measured, in charts with nested states: 1 for the
            outermost states. A visit to a composite lasts while its agent is anywhere inside, and
            an agent in several regions visits a state in each. By default, the states are those of
            the log.

    Returns:
        One row for each state, by name, after those of each round with ``by_round``: ``round``
        (only with ``by_round``; null in the rows of all rounds); ``state``; ``visits``, and of
        these ``complete``, ``cut`` and ``open``; ``zero`` (complete visits of no tick); ``mean``,
        the restricted mean up to the longest visit (the area under the survival curve; Irwin 1949),
        ``median``, ``p90`` and ``p99`` in ticks (a percentile is the shortest time by which that
        share of the visits has ended; null if the visits are cut before); ``max``, the longest
        observed visit; ``timeout_share`` (complete visits that a time-out ended, 0 to 1);
        and ``at_risk`` (ticks at whose beginning an agent was in the state; if no agent moves
        another, they sum over all states to the steps taken). For runs whose events happen at
        rates, all times are in rounds. If there are several runs, ``run`` is the first column. If
        a run has several charts, each is described separately, and named in ``chart`` before
        ``state``.
    """
    level = None if depth is None else Level.of(logs, depth)
    visits = visits_in(logs, level)
    is_whole = pl.col("round").is_null()
    lengths = visits.lengths if by_round else visits.lengths.filter(is_whole)

    parts = [part for part in map(_described, visits.apart(lengths)) if part.height]
    # whole ticks and rounds in fractions
    table = pl.concat(parts or [_described(lengths)], how="vertical_relaxed")
    table = table.sort(OF_STATE, nulls_last=True)

    return logs.labelled(without_lone_chart(table if by_round else table.drop("round")))


def _described(lengths: pl.DataFrame) -> pl.DataFrame:
    """Describe the visits to each state, from their lengths in order."""
    complete, ticks = pl.col("complete"), pl.col("ticks")
    visits = complete + pl.col("cut") + pl.col("open")
    table = lengths.group_by(OF_STATE).agg(
        visits.sum().alias("visits"),
        pl.col("complete", "cut", "open").sum(),
        complete.filter(ticks == 0).sum().alias("zero"),
        ticks.max().alias("max"),
        (pl.col("timeouts").sum() / complete.sum()).fill_nan(None).alias("timeout_share"),
        (visits * ticks).sum().alias("at_risk"),
    )
    of_curve = _survival(lengths).group_by(OF_STATE).agg(*_curve_description())
    # the log of an application's own loop may name no chart
    described = table.join(of_curve, on=OF_STATE, how="left", nulls_equal=True)

    return described.select(*OF_STATE, *_COLUMNS)


def _survival(lengths: pl.DataFrame) -> pl.DataFrame:
    """Return the share of the visits that last longer than each length, which only exits lower."""
    ended = pl.col("complete") + pl.col("cut") + pl.col("open")
    at_risk = ended.reverse().cum_sum().reverse()
    survival = (1 - pl.col("complete") / at_risk).cum_prod().over(OF_STATE)
    return lengths.select(*OF_STATE, "ticks", survival=survival)


def _curve_description() -> list[pl.Expr]:
    """Describe a survival curve, which drops at some lengths and is 1 before the first."""
    ticks, survival = pl.col("ticks"), pl.col("survival")
    # the curve is constant from one length to the next
    steps = ticks.diff().shift(-1)
    mean = ticks.first() + (survival * steps).sum()

    return [
        mean.alias("mean"),
        *(
            ticks.filter(survival <= 1 - part + _ROUNDING).first().alias(name)
            for name, part in _PERCENTILES.items()
        ),
    ]

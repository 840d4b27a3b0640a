"""Which moves were made, how long agents dwelt where, and where they ran out of time."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import merge_by_sum
from prism.statechart._definition import TIMEOUT
from prism.telemetry.events import TRANSITION


def transition_counts(logs: RunLogs) -> pl.DataFrame:
    """Count every kind of move.

    Args:
        logs: What `read_log` gave.

    Returns:
        ``from_state``, ``to_state``, ``trigger``, ``count`` and ``probability``: the share of all
        moves out of the state, 0 to 1, which is the maximum-likelihood estimate of the probability
        in a Markov chain over the states (Anderson and Goodman 1957, Annals of Mathematical
        Statistics 28(1)). With ``run`` first if there are several.
    """
    ends = ["from_state", "to_state", "trigger"]
    counts = _count_moves(logs, ends)
    leaving = pl.col("count").sum().over("run", "from_state")
    order = ["run", "from_state", pl.col("count").neg(), "to_state", "trigger"]
    return logs.labelled(counts.with_columns(probability=pl.col("count") / leaving).sort(order))


def dwell_times(logs: RunLogs) -> pl.DataFrame:
    """Describe how many ticks agents stay in each state.

    A visit is measured when it ends, by ``ticks_in_state`` of the move that ends it. Visits that
    the log does not see end are not in the table, and those cut short by the end of a round count
    as long as they lasted.

    The fit is a geometric distribution on 1, 2, 3, ... ticks, P(k) = p (1 - p)^(k - 1): what
    dwelling would look like if an agent left with the same probability p in every tick. The
    estimate of p by maximum likelihood is 1 / mean (Johnson, Kemp and Kotz 2005, Univariate
    Discrete Distributions, chapter 5). It is made from the visits of one tick or more: visits of no
    tick, which begin and end in the same tick, are outside the distribution and stand in ``zero``.

    Args:
        logs: What `read_log` gave.

    Returns:
        One row a state, by name: ``state``, ``visits``, ``zero`` (of these, visits of no tick),
        ``mean``, ``median``, ``p90``, ``p99`` and ``max`` in ticks over all visits (a percentile is
        the least dwell that so many visits do not exceed), ``timeout_share`` (visits ended by a
        time-out, 0 to 1), and of the fit ``p``, ``distance`` (Kolmogorov's: the greatest difference
        of the two cumulative distributions, 0 to 1) and ``log_likelihood`` (natural logarithm). The
        fit is null where no visit took a tick. With ``run`` first if there are several.
    """
    counts = _count_moves(logs, ["from_state", "trigger", "ticks_in_state"]).drop_nulls(
        "ticks_in_state"
    )
    is_timeout = pl.col("trigger") == TIMEOUT
    visits = (
        counts.group_by("run", state="from_state", ticks="ticks_in_state")
        .agg(pl.col("count").sum(), timeouts=pl.col("count").filter(is_timeout).sum())
        .sort("run", "state", "ticks")
    )
    described = visits.group_by("run", "state", maintain_order=True).agg(*_dwell())

    return logs.labelled(_with_fit(described, visits))


def timeouts(logs: RunLogs) -> pl.DataFrame:
    """Count the time-outs of each state in each round.

    Args:
        logs: What `read_log` gave.

    Returns:
        ``round`` (null where the log has none), ``state`` (the one that was left), ``timeouts``,
        ``left`` (all moves out of the state in that round) and ``share`` (of these, 0 to 1); only
        where there were time-outs. With ``run`` first if there are several.
    """
    counts = _count_moves(logs, ["round", "from_state", "trigger"])
    is_timeout = pl.col("trigger") == TIMEOUT
    table = (
        counts.group_by("run", "round", state="from_state")
        .agg(timeouts=pl.col("count").filter(is_timeout).sum(), left=pl.col("count").sum())
        .filter(pl.col("timeouts") > 0)
    )

    return logs.labelled(
        table.with_columns(share=pl.col("timeouts") / pl.col("left")).sort("run", "round", "state")
    )


def _count_moves(logs: RunLogs, keys: list[str]) -> pl.DataFrame:
    merger = merge_by_sum(["run", *keys])
    for frame in logs.blocks(TRANSITION, columns=[*keys, "from_state", "to_state"]):
        moves = frame.filter(pl.col("from_state").is_not_null(), pl.col("to_state").is_not_null())
        merger.add(moves.group_by("run", *keys).agg(count=pl.len().cast(pl.Int64)))

    return merger.table()


def _dwell() -> list[pl.Expr]:
    """Describe visits that are given as ``ticks``, rising, and the ``count`` of each."""
    visits, ticks = pl.col("count").sum(), pl.col("ticks")
    passed = pl.col("count").cum_sum()
    percentiles = {"median": 0.5, "p90": 0.9, "p99": 0.99}

    return [
        visits.alias("visits"),
        pl.col("count").filter(ticks == 0).sum().alias("zero"),
        ((ticks * pl.col("count")).sum() / visits).alias("mean"),
        *(
            ticks.filter(passed >= share * visits).first().alias(name)
            for name, share in percentiles.items()
        ),
        ticks.last().alias("max"),
        (pl.col("timeouts").sum() / visits).alias("timeout_share"),
    ]


def _with_fit(described: pl.DataFrame, visits: pl.DataFrame) -> pl.DataFrame:
    """Add the geometric fit; ``distance`` is looked for at every whole number of ticks that occurs, and just below."""
    measured = visits.filter(pl.col("ticks") > 0).with_columns(
        total=pl.col("count").sum().over("run", "state")
    )
    ticks, count = pl.col("ticks"), pl.col("count")
    by_state = ["run", "state"]
    p = (pl.col("total").first() / (ticks * count).sum()).over(by_state)
    measured = measured.with_columns(p=p, seen=count.cum_sum().over(by_state) / pl.col("total"))
    expected = 1 - (1 - pl.col("p")).pow(ticks)
    expected_below = 1 - (1 - pl.col("p")).pow(ticks - 1)
    seen_below = pl.col("seen") - count / pl.col("total")
    stayed = pl.when(ticks > 1).then((ticks - 1) * (1 - pl.col("p")).log()).otherwise(0.0)
    fit = measured.group_by(by_state).agg(
        pl.col("p").first(),
        distance=pl.max_horizontal(
            (pl.col("seen") - expected).abs(), (seen_below - expected_below).abs()
        ).max(),
        log_likelihood=(count * (stayed + pl.col("p").log())).sum(),
    )

    return described.join(fit, on=by_state, how="left", maintain_order="left")

"""Transitions: how often they were made, after how many ticks, and which were time-outs."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import merge_by_sum
from prism.statechart._definition import TIMEOUT
from prism.telemetry.events import TRANSITION

_OF_STATE = ["run", "chart", "state"]


def transition_counts(logs: RunLogs) -> pl.DataFrame:
    """Count every kind of transition.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``from_state``, ``to_state``, ``trigger``, ``count`` and ``probability``: the proportion of
        all transitions out of the state, 0 to 1, which is the maximum-likelihood estimate of the
        probability in a Markov chain over the states (Anderson and Goodman 1957, Annals of
        Mathematical Statistics 28(1)). With ``run`` first if there are several. If several charts
        drive agents of a run, each is counted by itself, and named in ``chart`` before
        ``from_state``.
    """
    counts = count_transitions(logs, ["chart", "from_state", "to_state", "trigger"])
    leaving = pl.col("count").sum().over("run", "chart", "from_state")
    order = ["run", "chart", "from_state", pl.col("count").neg(), "to_state", "trigger"]
    table = counts.with_columns(probability=pl.col("count") / leaving).sort(order)

    return logs.labelled(without_lone_chart(table))


def dwell_times(logs: RunLogs) -> pl.DataFrame:
    """Describe how many ticks agents stay in each state.

    A visit is measured when it ends, by ``ticks_in_state`` of the transition that ends it. Visits
    that do not end within the log are not in the table, and visits that the end of a round cuts
    short count as long as they lasted.

    The fit is a geometric distribution on 1, 2, 3, ... ticks, P(k) = p (1 - p)^(k - 1): the dwell
    times of an agent that leaves with the same probability p in every tick. The estimate of p by
    maximum likelihood is 1 / mean (Johnson, Kemp and Kotz 2005, Univariate Discrete Distributions,
    chapter 5). It is made from the visits of one tick or more: visits of no tick, which begin and
    end in the same tick, are outside the distribution and counted in ``zero``.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each state, by name: ``state``, ``visits``, ``zero`` (visits of no tick),
        ``mean``, ``median``, ``p90``, ``p99`` and ``max`` in ticks over all visits (a percentile is
        the shortest dwell time that so many visits do not exceed), ``timeout_share`` (visits ended
        by a time-out, 0 to 1), and of the fit ``p``, ``distance`` (Kolmogorov's: the greatest
        difference of the two cumulative distributions, 0 to 1) and ``log_likelihood`` (natural
        logarithm). The fit is null if no visit took a tick. With ``run`` first if there are
        several. If several charts drive agents of a run, each is described by itself, and named in
        ``chart`` before ``state``.
    """
    counts = count_transitions(logs, ["chart", "from_state", "trigger", "ticks_in_state"])
    is_timeout = pl.col("trigger") == TIMEOUT
    visits = (
        counts.drop_nulls("ticks_in_state")
        .group_by("run", "chart", state="from_state", ticks="ticks_in_state")
        .agg(pl.col("count").sum(), timeouts=pl.col("count").filter(is_timeout).sum())
        .sort(*_OF_STATE, "ticks")
    )
    described = visits.group_by(_OF_STATE, maintain_order=True).agg(*_description())
    fits = _geometric_fits(visits)
    # a log of an application's own loop may name no chart
    table = described.join(fits, on=_OF_STATE, how="left", nulls_equal=True, maintain_order="left")

    return logs.labelled(without_lone_chart(table))


def timeouts(logs: RunLogs) -> pl.DataFrame:
    """Count the time-outs of each state in each round.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``round`` (null if the log has none), ``state`` (the one that was left), ``timeouts``,
        ``left`` (all transitions out of the state in that round) and ``share`` (of these, 0 to 1);
        only rows with time-outs. With ``run`` first if there are several. If several charts drive
        agents of a run, each is counted by itself, and named in ``chart`` before ``state``.
    """
    counts = count_transitions(logs, ["round", "chart", "from_state", "trigger"])
    is_timeout = pl.col("trigger") == TIMEOUT
    table = (
        counts.group_by("run", "round", "chart", state="from_state")
        .agg(timeouts=pl.col("count").filter(is_timeout).sum(), left=pl.col("count").sum())
        .filter(pl.col("timeouts") > 0)
        .with_columns(share=pl.col("timeouts") / pl.col("left"))
    )

    return logs.labelled(without_lone_chart(table.sort("run", "round", "chart", "state")))


def without_lone_chart(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table without its column ``chart``, unless one of its runs has several charts."""
    is_lone = table.select("run", "chart").n_unique() == table["run"].n_unique()
    return table.drop("chart") if is_lone else table


def count_transitions(logs: RunLogs, keys: list[str]) -> pl.DataFrame:
    """Count the transitions of each run by some of their keys, as ``count``."""
    merger = merge_by_sum(["run", *keys])
    for frame in logs.blocks(TRANSITION, columns=[*keys, "from_state", "to_state"]):
        whole = frame.drop_nulls(["from_state", "to_state"])
        merger.add(whole.group_by("run", *keys).agg(count=pl.len().cast(pl.Int64)))

    return merger.table()


def _description() -> list[pl.Expr]:
    """Describe visits that are given as ``ticks``, rising, and the ``count`` of each."""
    ticks, count = pl.col("ticks"), pl.col("count")
    visits, passed = count.sum(), count.cum_sum()
    percentiles = {"median": 0.5, "p90": 0.9, "p99": 0.99}

    return [
        visits.alias("visits"),
        count.filter(ticks == 0).sum().alias("zero"),
        ((ticks * count).sum() / visits).alias("mean"),
        *(
            ticks.filter(passed >= part * visits).first().alias(name)
            for name, part in percentiles.items()
        ),
        ticks.last().alias("max"),
        (pl.col("timeouts").sum() / visits).alias("timeout_share"),
    ]


def _geometric_fits(visits: pl.DataFrame) -> pl.DataFrame:
    ticks, count, total = pl.col("ticks"), pl.col("count"), pl.col("total")
    timed = visits.filter(ticks > 0).with_columns(total=count.sum().over(_OF_STATE))

    p = (total.first() / (ticks * count).sum()).over(_OF_STATE)
    seen = count.cum_sum().over(_OF_STATE) / total
    measured = timed.with_columns(p=p, seen=seen)

    # Both distributions are steps: they differ most at a length that occurs, or just below it.
    stay = 1 - pl.col("p")
    above = (pl.col("seen") - (1 - stay.pow(ticks))).abs()
    below = ((pl.col("seen") - count / total) - (1 - stay.pow(ticks - 1))).abs()
    # log(1 - p) is infinite where p is 1, though no visit stayed on there.
    stayed = pl.when(ticks > 1).then((ticks - 1) * stay.log()).otherwise(0.0)

    return measured.group_by(_OF_STATE).agg(
        pl.col("p").first(),
        distance=pl.max_horizontal(above, below).max(),
        log_likelihood=(count * (stayed + pl.col("p").log())).sum(),
    )

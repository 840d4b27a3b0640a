"""How long agents stay in each state, from complete visits and visits that were cut short."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._tables.levels import Level
from prism.analysis._tables.states import states_by_number
from prism.analysis._tables.transitions import without_lone_chart
from prism.analysis._tables.visits import OF_STATE, Visits, visits_in

_TICKS = {
    "run": pl.UInt32(),
    "round": pl.Int64(),
    "chart": pl.String(),
    "state": pl.String(),
    "agent_ticks": pl.Int64(),
}
_ROUNDING = 1e-12
_PERCENTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}


def dwell_times(logs: RunLogs, *, by_round: bool = False, depth: int | None = None) -> pl.DataFrame:
    """Describe how many ticks agents stay in each state.

    The length of a visit is ``ticks_in_state`` of the transition that ends it: the number of ticks
    in which the agent was in the state at its step. A visit is complete if its agent left by itself
    or by a time-out. It is cut if the end of a round closed it (by ``round_ends``, or by an act
    that the end of a round makes agents finish) or its agent was removed, and open if it had not
    ended when the log did. Cut and open visits would have lasted longer by an unknown time. They
    are censored, and count for as long as they were observed (Kaplan and Meier 1958, Journal of the
    American Statistical Association 53(282)). An open visit counts all ticks since it began,
    including those in which its agent slept. `dwell_survival` has the estimate tick by tick. If
    every visit is complete, all figures are those of the plain lengths.

    The fit is a geometric distribution on 1, 2, 3, ... ticks, P(k) = p (1 - p)^(k - 1): the dwell
    times of an agent that leaves with the same probability p in every tick. The estimate of p by
    maximum likelihood is the number of exits per tick at risk (Kalbfleisch and Prentice 2002, The
    Statistical Analysis of Failure Time Data, 2.4). Complete visits of no tick, which begin and end
    in the same tick, are outside the distribution and counted in ``zero``.

    Where events happen at rates, a visit lasts from one event to the next, in rounds. The fit is
    then an exponential distribution: the estimate of its rate is the number of exits per round at
    risk.

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
        ``at_risk`` (ticks at whose beginning an agent was in the state; if no agent moves another,
        they sum over all states to the steps taken) and ``agent_ticks`` (ticks at whose end an
        agent was in the state, as in `state_counts`); and of the fit ``p``, its standard error
        ``p_se``, ``distance`` (Kolmogorov's, from the survival curve: the greatest difference
        between the two cumulative distributions, 0 to 1) and ``log_likelihood`` (natural
        logarithm). The fit is null if no visit took a tick. For runs whose events happen at rates,
        all times are in rounds, and ``agent_ticks``, ``p`` and ``p_se`` are replaced by ``rate``
        and its standard error ``rate_se``. If there are several runs, ``run`` is
        the first column. If a run has several charts, each is described separately, and named in
        ``chart`` before ``state``.
    """
    level = None if depth is None else Level.of(logs, depth)
    return _described(logs, visits_in(logs, level), level, by_round=by_round)


def dwell_tables(logs: RunLogs) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return `dwell_times` and `dwell_survival`, following the agents only once."""
    found = visits_in(logs)
    return _described(logs, found), _survival(logs, found)


def _described(
    logs: RunLogs, found: Visits, level: Level | None = None, *, by_round: bool = False
) -> pl.DataFrame:
    lengths = found.lengths if by_round else found.lengths.filter(pl.col("round").is_null())
    in_rounds = _agent_ticks_by_round(logs) if by_round else found.agent_ticks.clear()
    ticks = pl.concat([in_rounds, found.agent_ticks])
    if level is not None:
        ticks = level.states(ticks, "agent_ticks")

    by_tick, by_rate = found.apart(lengths)
    whole = _together(
        _table_of(by_tick, _geometric_fits, ticks).select(*OF_STATE, *_COLUMNS),
        _table_of(by_rate, _exponential_fits).select(*OF_STATE, *_BY_RATE),
    )
    whole = whole.sort(OF_STATE, nulls_last=True)

    return logs.labelled(without_lone_chart(whole if by_round else whole.drop("round")))


def _table_of(
    lengths: pl.DataFrame, fits: Callable[[pl.DataFrame], pl.DataFrame], *others: pl.DataFrame
) -> pl.DataFrame:
    """Describe the visits, with the fits, and with other tables about the same states."""
    curve = survival_of(lengths)
    table = lengths.group_by(OF_STATE).agg(*_description())
    of_curve = curve.group_by(OF_STATE, maintain_order=True).agg(*_curve_description())
    for part in (of_curve, *others, fits(curve)):
        # the log of an application's own loop may name no chart
        table = table.join(part, on=OF_STATE, how="left", nulls_equal=True)

    return table


def _together(by_tick: pl.DataFrame, by_rate: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of both kinds of runs; the columns of one kind only if it has rows."""
    if by_rate.is_empty():
        return by_tick
    if by_tick.is_empty():
        return by_rate

    return pl.concat([by_tick, by_rate], how="diagonal_relaxed")


def dwell_survival(
    logs: RunLogs, *, by_round: bool = False, depth: int | None = None
) -> pl.DataFrame:
    """Estimate, tick by tick, the share of visits to a state that last longer.

    Visits are complete, cut or open as in `dwell_times`. The hazard is the number of exits per
    visit at risk, and the survival is the product of 1 minus the hazards (Kaplan and Meier 1958),
    with the standard error of Greenwood (1926). A visit that is cut after k ticks was at risk in
    each of them.

    Args:
        logs: The logs, from `read_log`.
        by_round: Whether to add rows for each round, before those of all rounds, of the visits that
            ended in it.
        depth: The level whose visits are measured, as in `dwell_times`.

    Returns:
        A row for each state and each length at which a visit ended, was cut or was open: ``state``,
        ``ticks``, ``at_risk`` (visits of at least this length), ``exits`` (complete visits of this
        length), ``timeouts`` (of these), ``censored`` (visits that were cut or open at this
        length), ``hazard`` and ``hazard_se``, ``survival`` (the share of visits that last longer)
        and ``survival_se``. Where events happen at rates, ``time``, in rounds, replaces ``ticks``.
        If there are several runs, ``run`` is the first column. ``round`` is
        added with ``by_round`` (null for all rounds), and ``chart`` comes before ``state`` if a run
        has several charts.
    """
    level = None if depth is None else Level.of(logs, depth)
    return _survival(logs, visits_in(logs, level), by_round=by_round)


def _survival(logs: RunLogs, found: Visits, *, by_round: bool = False) -> pl.DataFrame:
    lengths = found.lengths if by_round else found.lengths.filter(pl.col("round").is_null())
    by_tick, by_rate = map(survival_of, found.apart(lengths))
    table = _together(by_tick, by_rate.rename({"ticks": "time"}))
    table = table.sort(OF_STATE, nulls_last=True, maintain_order=True)
    return logs.labelled(without_lone_chart(table if by_round else table.drop("round")))


_COLUMNS = (
    *("visits", "complete", "cut", "open", "zero", "mean", *_PERCENTILES, "max"),
    *("timeout_share", "at_risk", "agent_ticks", "p", "p_se", "distance", "log_likelihood"),
)
_BY_RATE = tuple(
    {"p": "rate", "p_se": "rate_se"}.get(name, name) for name in _COLUMNS if name != "agent_ticks"
)


def _agent_ticks_by_round(logs: RunLogs) -> pl.DataFrame:
    states = states_by_number(logs)
    if "tick" not in states.columns:  # the log has no ticks
        return pl.DataFrame(schema=_TICKS)

    return states.group_by(OF_STATE).agg(agent_ticks=pl.col("agents").sum())


def survival_of(lengths: pl.DataFrame) -> pl.DataFrame:
    """Return the table of `dwell_survival`, by number of run, from the lengths of visits."""
    ended = pl.col("complete") + pl.col("cut") + pl.col("open")
    at_risk = ended.reverse().cum_sum().reverse().over(OF_STATE)
    exits, number = pl.col("exits"), pl.col("at_risk")
    hazard = exits / number
    table = lengths.select(
        *OF_STATE,
        "ticks",
        at_risk=at_risk,
        exits="complete",
        timeouts="timeouts",
        censored=pl.col("cut") + pl.col("open"),
    )
    staying = number - exits
    # if no visit lasts longer than the last length, the survival and its error are 0 there
    variance = pl.when(staying > 0).then(exits / (number * staying)).otherwise(0.0)
    survival = (1 - hazard).cum_prod().over(OF_STATE)

    return table.with_columns(
        hazard=hazard,
        hazard_se=(hazard * (1 - hazard) / number).sqrt(),
        survival=survival,
        survival_se=survival * variance.cum_sum().over(OF_STATE).sqrt(),
    )


def _description() -> list[pl.Expr]:
    complete, ticks = pl.col("complete"), pl.col("ticks")
    visits = complete + pl.col("cut") + pl.col("open")
    return [
        visits.sum().alias("visits"),
        pl.col("complete", "cut", "open").sum(),
        complete.filter(ticks == 0).sum().alias("zero"),
        ticks.max().alias("max"),
        (pl.col("timeouts").sum() / complete.sum()).fill_nan(None).alias("timeout_share"),
        (visits * ticks).sum().alias("at_risk"),
    ]


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


def _geometric_fits(curve: pl.DataFrame) -> pl.DataFrame:
    measured, stay = _rates_in(curve), 1 - pl.col("p")
    # Both distributions are step functions, so they differ most at an observed length or just
    # below.
    distance = _distance(stay.pow(pl.col("ticks")), stay.pow(pl.col("ticks") - 1))
    # log(1 - p) is infinite if p is 1, but then no visit lasted longer.
    p, total, risk = pl.col("p").first(), pl.col("total").first(), pl.col("risk").first()
    stays = pl.when(risk > total).then((risk - total) * (1 - p).log()).otherwise(0.0)
    exits_of = pl.when(total > 0).then(total * p.log()).otherwise(0.0)

    return measured.group_by(OF_STATE).agg(
        p=p,
        p_se=(p * (1 - p) / risk).sqrt(),
        distance=distance,
        log_likelihood=stays + exits_of,
    )


def _exponential_fits(curve: pl.DataFrame) -> pl.DataFrame:
    staying = (-pl.col("p") * pl.col("ticks")).exp()
    rate, total, risk = pl.col("p").first(), pl.col("total").first(), pl.col("risk").first()
    exits_of = pl.when(total > 0).then(total * rate.log()).otherwise(0.0)
    return (
        _rates_in(curve)
        .group_by(OF_STATE)
        .agg(
            rate=rate,
            rate_se=total.sqrt() / risk,
            distance=_distance(staying, staying),
            log_likelihood=exits_of - rate * risk,
        )
    )


def _distance(here: pl.Expr, before: pl.Expr) -> pl.Expr:
    """Return the greatest difference from the share that the fit expects to stay longer.

    Args:
        here: That share at each observed length.
        before: That share just below it.
    """
    seen = pl.col("seen")
    above = (seen - (1 - here)).abs()
    below = (pl.col("seen_before") - (1 - before)).abs()
    return pl.max_horizontal(above, below).max()


def _rates_in(curve: pl.DataFrame) -> pl.DataFrame:
    """Return the curve of visits that took time, with exits per time at risk in ``p``."""
    ticks, exits, at_risk = pl.col("ticks"), pl.col("exits"), pl.col("at_risk")
    timed = curve.filter(ticks > 0).sort(*OF_STATE, "ticks")
    # visits at risk in each tick, including ticks in which none ended
    before = ticks.shift(1, fill_value=0).over(OF_STATE)
    risk = (at_risk * (ticks - before)).sum().over(OF_STATE)
    total = exits.sum().over(OF_STATE)
    survival = (1 - pl.col("hazard")).cum_prod().over(OF_STATE)
    seen = 1 - survival
    seen_before = seen.shift(1, fill_value=0.0).over(OF_STATE)
    measured = timed.with_columns(
        p=total / risk, risk=risk, total=total, seen=seen, seen_before=seen_before
    )

    return measured.filter(pl.col("risk") > 0)

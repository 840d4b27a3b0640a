"""How long agents stay in each state, from complete visits and visits that were cut short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from prism.analysis._reading.logs import RunLogs, parse_time
from prism.analysis._reading.merging import COUNT, merge_by_first, merge_by_last, merge_by_sum
from prism.analysis._tables.happened import and_in_all
from prism.analysis._tables.levels import Level
from prism.analysis._tables.states import GONE, AgentPaths, closes_round, dated, states_by_number
from prism.analysis._tables.transitions import without_lone_chart
from prism.statechart._definition import TIMEOUT
from prism.statechart.social import ROUND_ENDS
from prism.telemetry.events import TRANSITION

_OF_STATE = ["run", "round", "chart", "state"]
_STATE = ["run", "chart", "state"]
_AGENT = ["run", "chart", "agent_id"]
_TICKS = {
    "run": pl.UInt32(),
    "round": pl.Int64(),
    "chart": pl.String(),
    "state": pl.String(),
    "agent_ticks": pl.Int64(),
}
_MOVED = [
    *("run", "chart", "round", "tick", "from_state", "to_state", "trigger"),
    *("ticks_in_state", "closing"),
]
_AT = {
    "run": pl.UInt32(),
    "chart": pl.String(),
    "agent_id": pl.String(),
    "since": pl.Float64(),
}
_FOLLOWED = [
    *("from_state", "to_state", "state", "trigger", "ticks_in_state"),
    *("round", "tick", "closing", "now"),
]
_UNSEEN = (0, None, None, 0, None)
_NAMED = {"run": pl.UInt32(), "chart": pl.String()}
_MOMENT = {"round": pl.Int64(), "tick": pl.Int64()}
_ENDED = {
    **_NAMED,
    **_MOMENT,
    **dict.fromkeys(("from_state", "to_state", "trigger"), pl.String()),
    "ticks_in_state": pl.Float64(),
    "closing": pl.Int8(),
    "count": pl.Int64(),
}
_OPEN = {
    **_NAMED,
    "agent_id": pl.String(),
    **_MOMENT,
    "closing": pl.Int8(),
    "since": pl.Float64(),
    "state": pl.String(),
}
_UNTIMED = pl.col("ticks_in_state").cast(pl.Float64)
_IS_THERE = pl.col("state") != GONE
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
    return _described(logs, _read(logs, level), level, by_round=by_round)


def dwell_tables(logs: RunLogs) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return `dwell_times` and `dwell_survival`, following the agents only once."""
    found = _read(logs)
    return _described(logs, found), _survival(logs, found)


def _described(
    logs: RunLogs, found: _Visits, level: Level | None = None, *, by_round: bool = False
) -> pl.DataFrame:
    lengths = found.lengths if by_round else found.lengths.filter(pl.col("round").is_null())
    in_rounds = _agent_ticks_by_round(logs) if by_round else found.agent_ticks.clear()
    ticks = pl.concat([in_rounds, found.agent_ticks])
    if level is not None:
        ticks = level.states(ticks, "agent_ticks")

    by_tick, by_rate = found.apart(lengths)
    whole = _together(
        _table_of(by_tick, _geometric_fits, ticks).select(*_OF_STATE, *_COLUMNS),
        _table_of(by_rate, _exponential_fits).select(*_OF_STATE, *_BY_RATE),
    )
    whole = whole.sort(_OF_STATE, nulls_last=True)

    return logs.labelled(without_lone_chart(whole if by_round else whole.drop("round")))


def _table_of(
    lengths: pl.DataFrame, fits: Callable[[pl.DataFrame], pl.DataFrame], *others: pl.DataFrame
) -> pl.DataFrame:
    """Describe the visits, with the fits, and with other tables about the same states."""
    curve = survival_of(lengths)
    table = lengths.group_by(_OF_STATE).agg(*_description())
    of_curve = curve.group_by(_OF_STATE, maintain_order=True).agg(*_curve_description())
    for part in (of_curve, *others, fits(curve)):
        # the log of an application's own loop may name no chart
        table = table.join(part, on=_OF_STATE, how="left", nulls_equal=True)

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
    return _survival(logs, _read(logs, level), by_round=by_round)


def _survival(logs: RunLogs, found: _Visits, *, by_round: bool = False) -> pl.DataFrame:
    lengths = found.lengths if by_round else found.lengths.filter(pl.col("round").is_null())
    by_tick, by_rate = map(survival_of, found.apart(lengths))
    table = _together(by_tick, by_rate.rename({"ticks": "time"}))
    table = table.sort(_OF_STATE, nulls_last=True, maintain_order=True)
    return logs.labelled(without_lone_chart(table if by_round else table.drop("round")))


_COLUMNS = (
    *("visits", "complete", "cut", "open", "zero", "mean", *_PERCENTILES, "max"),
    *("timeout_share", "at_risk", "agent_ticks", "p", "p_se", "distance", "log_likelihood"),
)
_BY_RATE = tuple(
    {"p": "rate", "p_se": "rate_se"}.get(name, name) for name in _COLUMNS if name != "agent_ticks"
)


@dataclass(frozen=True, slots=True)
class _Visits:
    """The visits of states.

    Args:
        lengths: Numbers of visits that were ``complete`` (of these, ``timeouts``), ``cut`` and
            ``open``, by run, round in which they ended (null for all rounds), chart, state and
            ``ticks`` (in rounds where events happen at rates).
        agent_ticks: The ticks at whose end an agent was in a state, by run, chart and state; the
            round is null.
        by_rate: The runs whose events happen at rates.
    """

    lengths: pl.DataFrame
    agent_ticks: pl.DataFrame
    by_rate: tuple[int, ...]

    def apart(self, lengths: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the lengths in whole ticks, and those in rounds."""
        is_by_rate = pl.col("run").is_in(self.by_rate)
        # a log may say numbers that no run can have
        whole_ticks = pl.col("ticks").cast(pl.Int64, strict=False)
        whole = lengths.filter(~is_by_rate).with_columns(whole_ticks)
        return whole, lengths.filter(is_by_rate)


class _Times:
    """The times of events that happen at rates, in rounds since the beginning of their run.

    Attributes:
        seconds: The seconds in a round, of every run whose events happen at rates.
    """

    def __init__(self) -> None:
        self.seconds: dict[int, float] = {}
        self._begun: dict[int, int] = {}
        self._last = pl.DataFrame(schema=_AT)

    def measured(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Put the time since an agent's last event in place of its ticks, where there are rates.

        Args:
            frame: A block of events, as `dated` returns them.

        Returns:
            The block, with ``now``, the time of each event; null in other runs.
        """
        begun = frame.drop_nulls("seconds_per_round").with_columns(parse_time("at"))
        for run, seconds, at in begun.select(
            "run", "seconds_per_round", pl.col("at").cast(pl.Int64)
        ).iter_rows():
            self.seconds[run], self._begun[run] = seconds, at
        if not self.seconds:
            return frame.with_columns(_UNTIMED, now=pl.lit(None, pl.Float64))

        run = pl.col("run")
        since = run.replace_strict(self._begun, default=None, return_dtype=pl.Int64)
        unit = run.replace_strict(self.seconds, default=None, return_dtype=pl.Float64)
        elapsed = parse_time("at").cast(pl.Int64) - since
        timed = frame.with_columns(now=elapsed / 1e6 / unit)
        before = pl.coalesce(pl.col("now").shift(1).over(_AGENT), "since")
        known = timed.join(
            self._last, on=_AGENT, how="left", nulls_equal=True, maintain_order="left"
        )
        made = known.with_columns(
            pl.when(run.is_in(list(self.seconds)))
            .then(pl.col("now") - before)
            .otherwise(_UNTIMED)
            .alias("ticks_in_state")
        )
        ended = timed.drop_nulls("now").select(*_AGENT, since="now")
        self._last = pl.concat([self._last, ended]).unique(_AGENT, keep="last", maintain_order=True)

        return made.drop("since")

    def last(self, charts: Mapping[int, str]) -> pl.DataFrame:
        """Return the time of the last event of each agent, by the charts of `AgentPaths`."""
        first = pl.col("run").replace_strict(charts, default=None, return_dtype=pl.String)
        chart = pl.col("chart")
        return self._last.with_columns(chart=pl.when(chart.ne_missing(first)).then(chart))


def _read(logs: RunLogs, level: Level | None = None) -> _Visits:
    paths, moments, times = AgentPaths(), merge_by_first(["run", "round", "tick"]), _Times()
    visits = None if level is None else _LevelVisits(level)
    moved, begun = merge_by_sum(_MOVED), merge_by_sum(_STATE)
    last = merge_by_last(_AGENT)

    def noted() -> Iterator[pl.DataFrame]:
        for frame in map(times.measured, dated(logs, moments)):
            made = frame.filter(pl.col("event") == TRANSITION).select(_MOVED)
            whole = made.drop_nulls(["from_state", "to_state"])
            moved.add(whole.group_by(_MOVED).agg(count=COUNT))
            yield frame
            if visits is not None:
                visits.follow(frame, paths.charts)

    for steps in paths.follow(noted()):
        first = steps.filter(pl.col("before").is_null())
        state = pl.coalesce("begin", "end")
        begun.add(first.group_by("run", "chart", state=state).agg(begun=COUNT))
        last.add(steps.select(*_AGENT, "round", "tick", "closing", state="end"))

    per_round = _ticks_per_round(logs, moments.table())
    named = {"run": list(paths.charts), "first": list(paths.charts.values())}
    charts = pl.DataFrame(named, schema={"run": pl.UInt32, "first": pl.String})

    def with_run(table: pl.DataFrame) -> pl.DataFrame:
        known = table.join(per_round, on="run", how="left").join(charts, on="run", how="left")
        return known.with_columns(chart=pl.coalesce("chart", "first")).drop("first")

    def with_closing(table: pl.DataFrame) -> pl.DataFrame:
        is_closing = closes_round(pl.col("per_round"))
        return with_run(table).with_columns(is_closing=is_closing.fill_null(value=False))

    ended = with_closing(moved.table())
    arrived = last.table().join(times.last(paths.charts), on=_AGENT, how="left", nulls_equal=True)
    in_states, at_end = (
        (ended, with_run(arrived))
        if visits is None
        else (with_closing(visits.ended()), with_run(visits.open()))
    )
    by_rate = tuple(times.seconds)
    lengths = pl.concat([_ended(in_states), _open(at_end, by_rate)], how="diagonal")
    of_length = (
        and_in_all(lengths.drop_nulls("ticks"))
        .group_by(*_OF_STATE, "ticks")
        .agg(pl.col("complete", "timeouts", "cut", "open").fill_null(0).sum())
    )

    return _Visits(
        of_length.sort(*_OF_STATE, "ticks", nulls_last=True),
        _agent_ticks(ended, with_run(last.table()), with_run(begun.table())),
        by_rate,
    )


class _LevelVisits:
    """Follows agents through the states of a level, across the visits inside each.

    Args:
        level: The level.
    """

    def __init__(self, level: Level) -> None:
        self._level = level
        self._ended: Counter[tuple[Any, ...]] = Counter()
        # by agent and by its state in each region: the ticks so far, and when it arrived
        self._stays: dict[tuple[Any, ...], dict[tuple[str, ...], tuple[Any, ...]]] = {}

    def follow(self, frame: pl.DataFrame, charts: Mapping[int, str]) -> None:
        """Follow agents through a block of events, as `dated` returns them."""
        for run, chart, agent, *event in frame.select(*_AGENT, *_FOLLOWED).iter_rows():
            named = charts.get(run) if chart is None else chart
            if agent is not None:
                self._step(run, named, agent, *event)

    def _step(
        self,
        run: int,
        chart: str | None,
        agent: str,
        begin: str | None,
        end: str | None,
        joined: str | None,
        trigger: str | None,
        ticks: float | None,
        *moment: Any,
    ) -> None:
        entered = joined if end is None else end
        if entered is None or (begin is None) != (end is None):
            return

        after = () if entered == GONE else self._level.paths(run, chart, entered)
        before = () if begin is None else self._level.paths(run, chart, begin)
        known = self._stays.get((run, chart, agent), {})
        stays = dict.fromkeys(after, (0, *moment))
        for path in before:
            so_far, *came = known.get(path, _UNSEEN)
            total = None if ticks is None or so_far is None else so_far + ticks
            if path in stays:
                stays[path] = (total, *came)
            else:
                round_, tick, closing, _now = moment
                key = (run, chart, round_, tick, path[-1], entered, trigger, total, closing)
                self._ended[key] += 1

        self._stays[run, chart, agent] = stays

    def ended(self) -> pl.DataFrame:
        """Return the transitions that ended visits, with the lengths of these in ticks."""
        rows = [(*key, count) for key, count in self._ended.items()]
        return pl.DataFrame(rows, schema=_ENDED, orient="row")

    def open(self) -> pl.DataFrame:
        """Return the visits that are open at the end, with the moments at which they began."""
        rows = [
            (*agent, *came, path[-1])
            for agent, stays in self._stays.items()
            for path, (_, *came) in stays.items()
        ]
        return pl.DataFrame(rows, schema=_OPEN, orient="row")


def _ticks_per_round(logs: RunLogs, moments: pl.DataFrame) -> pl.DataFrame:
    """Return the ticks per round of each run, and the ticks from its first to its last moment."""
    said = [run.ticks_per_round for run in logs.runs]
    runs = pl.DataFrame(
        {"run": range(len(said)), "said": said}, schema={"run": pl.UInt32, "said": pl.Int64}
    )
    dated_ones = moments.drop_nulls().sort("run", "round", "tick")
    longest = dated_ones.group_by("run").agg(
        pl.col("round", "tick").last(), longest=pl.col("tick").max()
    )
    known = runs.join(longest, on="run", how="left").with_columns(
        per_round=pl.coalesce("said", "longest")
    )

    return known.select("run", "per_round", end=_clock(), last_round="round")


def _clock() -> pl.Expr:
    """Return the ticks since the beginning of the first round."""
    before = (pl.col("round") - 1) * pl.col("per_round")
    return pl.when(pl.col("round") > 0).then(before + pl.col("tick")).otherwise(0)


def _ended(moved: pl.DataFrame) -> pl.DataFrame:
    """Count the visits that ended with a transition."""
    # a log without rounds has no last ticks, but may name the trigger
    of_round = pl.col("is_closing") | pl.col("trigger").eq_missing(ROUND_ENDS)
    is_cut = of_round | (pl.col("to_state") == GONE)
    count = pl.col("count")
    is_timeout = pl.col("trigger").eq_missing(TIMEOUT)
    visits = moved.group_by("run", "round", "chart", state="from_state", ticks="ticks_in_state")
    return visits.agg(
        complete=count.filter(~is_cut).sum(),
        timeouts=count.filter(~is_cut & is_timeout).sum(),
        cut=count.filter(is_cut).sum(),
    )


def _open(last: pl.DataFrame, by_rate: Sequence[int]) -> pl.DataFrame:
    """Count the visits that are open at the end."""
    rounds = pl.col("end") / pl.col("per_round") - pl.col("since")
    is_by_rate = pl.col("run").is_in(by_rate)
    ticks = pl.when(is_by_rate).then(rounds).otherwise(pl.col("end") - _clock())
    counted = (
        last.filter(_IS_THERE)
        .with_columns(ticks=ticks, round="last_round")
        .group_by(*_OF_STATE, "ticks")
    )
    return counted.agg(open=COUNT)


def _agent_ticks(ended: pl.DataFrame, last: pl.DataFrame, begun: pl.DataFrame) -> pl.DataFrame:
    """Count the ticks at whose end agents are in each state, from their arrivals and departures.

    An agent is in a state at the end of every tick from the one in which it arrives to the one
    before it leaves. Transitions that close a round happen after the end of their tick. The sum of
    all departure ticks minus the sum of all arrival ticks is therefore the number of ticks in the
    state.
    """
    closing = pl.col("is_closing").cast(pl.Int64)
    moment = _clock().clip(lower_bound=1) + closing
    moved = ended.with_columns(ticks=pl.col("count") * moment)
    parts = [
        moved.select("run", "chart", "ticks", state="from_state"),
        moved.select("run", "chart", -pl.col("ticks"), state="to_state"),
        last.select(*_STATE, ticks=pl.col("end") + 1),
        begun.select(*_STATE, ticks=-pl.col("begun")),
    ]
    ticks = pl.col("ticks")
    every = pl.concat([part.select(*_STATE, "ticks") for part in parts]).filter(_IS_THERE)
    # the ticks are unknown if the log does not say when agents moved
    known = every.group_by(_STATE).agg(
        agent_ticks=pl.when(ticks.null_count() == 0).then(ticks.sum())
    )

    return known.select("run", pl.lit(None, pl.Int64).alias("round"), *_STATE[1:], "agent_ticks")


def _agent_ticks_by_round(logs: RunLogs) -> pl.DataFrame:
    states = states_by_number(logs)
    if "tick" not in states.columns:  # the log has no ticks
        return pl.DataFrame(schema=_TICKS)

    return states.group_by(_OF_STATE).agg(agent_ticks=pl.col("agents").sum())


def survival_of(lengths: pl.DataFrame) -> pl.DataFrame:
    """Return the table of `dwell_survival`, by number of run, from the lengths of visits."""
    ended = pl.col("complete") + pl.col("cut") + pl.col("open")
    at_risk = ended.reverse().cum_sum().reverse().over(_OF_STATE)
    exits, number = pl.col("exits"), pl.col("at_risk")
    hazard = exits / number
    table = lengths.select(
        *_OF_STATE,
        "ticks",
        at_risk=at_risk,
        exits="complete",
        timeouts="timeouts",
        censored=pl.col("cut") + pl.col("open"),
    )
    staying = number - exits
    # if no visit lasts longer than the last length, the survival and its error are 0 there
    variance = pl.when(staying > 0).then(exits / (number * staying)).otherwise(0.0)
    survival = (1 - hazard).cum_prod().over(_OF_STATE)

    return table.with_columns(
        hazard=hazard,
        hazard_se=(hazard * (1 - hazard) / number).sqrt(),
        survival=survival,
        survival_se=survival * variance.cum_sum().over(_OF_STATE).sqrt(),
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

    return measured.group_by(_OF_STATE).agg(
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
        .group_by(_OF_STATE)
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
    timed = curve.filter(ticks > 0).sort(*_OF_STATE, "ticks")
    # visits at risk in each tick, including ticks in which none ended
    before = ticks.shift(1, fill_value=0).over(_OF_STATE)
    risk = (at_risk * (ticks - before)).sum().over(_OF_STATE)
    total = exits.sum().over(_OF_STATE)
    survival = (1 - pl.col("hazard")).cum_prod().over(_OF_STATE)
    seen = 1 - survival
    seen_before = seen.shift(1, fill_value=0.0).over(_OF_STATE)
    measured = timed.with_columns(
        p=total / risk, risk=risk, total=total, seen=seen, seen_before=seen_before
    )

    return measured.filter(pl.col("risk") > 0)

"""The visits of agents to states: how long each lasted, in ticks or in rounds, and how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from prism.analysis._reading.logs import RunLogs, parse_time
from prism.analysis._reading.merging import COUNT, merge_by_first, merge_by_last, merge_by_sum
from prism.analysis._tables.happened import and_in_all
from prism.analysis._tables.levels import Level
from prism.analysis._tables.states import GONE, AgentPaths, closes_round, dated
from prism.statechart.social import ROUND_ENDS
from prism.statechart.transitions import TIMEOUT
from prism.telemetry.events import TRANSITION

OF_STATE = ["run", "round", "chart", "state"]
"""What a table about the visits to states is grouped by."""

_STATE = ["run", "chart", "state"]
_AGENT = ["run", "chart", "agent_id"]
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


@dataclass(frozen=True, slots=True)
class Visits:
    """The visits of states.

    Args:
        lengths: Numbers of visits that were ``complete`` (of these, ``timeouts``), ``cut`` and
            ``open``, by run, round in which they ended (null for all rounds), chart, state and
            ``ticks`` (in rounds where events happen at rates).
        by_rate: The runs whose events happen at rates.
    """

    lengths: pl.DataFrame
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


def visits_in(logs: RunLogs, level: Level | None = None) -> Visits:
    """Return the visits in logs, at the level of their states or at another one."""
    paths, moments, times = AgentPaths(), merge_by_first(["run", "round", "tick"]), _Times()
    visits = None if level is None else _VisitsOfLevel(level)
    moved, last = merge_by_sum(_MOVED), merge_by_last(_AGENT)

    def noted() -> Iterator[pl.DataFrame]:
        for frame in map(times.measured, dated(logs, moments)):
            made = frame.filter(pl.col("event") == TRANSITION).select(_MOVED)
            whole = made.drop_nulls(["from_state", "to_state"])
            moved.add(whole.group_by(_MOVED).agg(count=COUNT))
            yield frame
            if visits is not None:
                visits.follow(frame, paths.charts)

    for steps in paths.follow(noted()):
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
        .group_by(*OF_STATE, "ticks")
        .agg(pl.col("complete", "timeouts", "cut", "open").fill_null(0).sum())
    )

    return Visits(of_length.sort(*OF_STATE, "ticks", nulls_last=True), by_rate)


class _VisitsOfLevel:
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
        .group_by(*OF_STATE, "ticks")
    )
    return counted.agg(open=COUNT)

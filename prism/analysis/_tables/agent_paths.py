"""The path of every agent through its states, from a log that may lack some of its transitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from prism.telemetry.events import AGENT_JOINED, RUN_STARTED, TRANSITION

MOMENT = ("round", "tick", "closing", "time")
"""The order of steps: null counts as round 0, tick 0, and the earliest time."""

PATH_COLUMNS = ("chart", "agent_id", "state", "from_state", "to_state")
"""Keys of the events that paths are made of."""

GONE = ""
"""The state of those who have left; no chart has one without a name."""

_AGENT = ("run", "chart", "agent_id")
_STEP: dict[str, pl.DataType] = {
    "run": pl.UInt32(),
    "chart": pl.String(),
    "agent_id": pl.String(),
    "line": pl.UInt32(),
    "begin": pl.String(),
    "end": pl.String(),
    "round": pl.Int64(),
    "tick": pl.Int64(),
    "time": pl.Datetime("us", "UTC"),
    "closing": pl.Int8(),
}
_EARLIEST = {"round": 0, "tick": 0, "time": -(2**63), "closing": 0}

_KNOWN_PER_ROW = 4
"""Agents to link to for each row that is waited for, where there are many agents."""


class AgentPaths:
    """Follows every agent through a log, in the order of its lines.

    Agents are followed by run and by chart, since several charts may drive agents of the same ids.
    Agents that join, and transitions, without the name of a chart are of the chart that is named
    first, by ``run.started`` in a simulation. In a world agents join with their chart.

    Args:
        rows_at_once: Steps that are linked together; more if there are so many agents that it pays.

    Attributes:
        charts: The chart of each run that is named first, if one is. It is null in the steps.
    """

    def __init__(self, rows_at_once: int = 100_000) -> None:
        self._rows_at_once = rows_at_once
        self.charts: dict[int, str] = {}
        self._last = pl.DataFrame(schema=_STEP)

    def follow(self, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Follow agents through the blocks of a log.

        Args:
            frames: Events, with ``run``, ``line``, ``event``, `PATH_COLUMNS` and `MOMENT`.

        Yields:
            Steps of agents, which are joins and transitions, some blocks at a time: ``run``,
            ``chart``, ``agent_id``, ``line``; ``begin`` (the source of a transition according to
            the log; null for a join); ``end``; ``before``, the end of the agent's previous step,
            null for its first; `MOMENT`, that of the previous step if the step's own is earlier;
            and ``is_early``, whether it is.
        """
        nothing = pl.DataFrame(schema=_STEP)
        waiting = [nothing]
        for frame in frames:
            waiting.append(self._steps(frame))
            rows = sum(part.height for part in waiting)
            if rows > max(self._rows_at_once, self._last.height // _KNOWN_PER_ROW):
                yield self._linked(pl.concat(waiting))
                waiting = [nothing]

        yield self._linked(pl.concat(waiting))

    def _steps(self, frame: pl.DataFrame) -> pl.DataFrame:
        self._note_first_charts(frame)

        event, chart = pl.col("event"), pl.col("chart")
        first = pl.col("run").replace_strict(self.charts, default=None, return_dtype=pl.String)
        joins = event == AGENT_JOINED

        steps = frame.filter(joins | (event == TRANSITION)).with_columns(
            chart=pl.when(chart.ne_missing(first)).then("chart"),
            begin=pl.when(~joins).then("from_state"),
            end=pl.when(joins).then("state").otherwise("to_state"),
        )
        whole = steps.drop_nulls(["agent_id", "end"]).filter(joins | pl.col("begin").is_not_null())

        return whole.select(list(_STEP))

    def _note_first_charts(self, frame: pl.DataFrame) -> None:
        names_chart = pl.col("event").is_in([RUN_STARTED, TRANSITION])
        named = frame.filter(names_chart, pl.col("chart").is_not_null())
        first = named.unique("run", keep="first", maintain_order=True)

        for run, name in first.select("run", "chart").iter_rows():
            self.charts.setdefault(run, name)

    def _linked(self, steps: pl.DataFrame) -> pl.DataFrame:
        """Link steps to the previous steps of their agents."""
        known = self._last.join(steps, on=_AGENT, how="semi", nulls_equal=True)
        others = self._last.join(steps, on=_AGENT, how="anti", nulls_equal=True)

        both = pl.concat([known.with_columns(is_new=False), steps.with_columns(is_new=True)])
        same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in _AGENT)
        linked = both.sort(_AGENT, maintain_order=True).with_columns(same=same)
        linked = linked.with_columns(
            before=pl.when("same").then(pl.col("end").shift(1)),
            is_early=pl.col("same") & _is_earlier(),
        )
        if linked["is_early"].any():
            linked = _put_in_order(linked)

        is_last = ~pl.col("same").shift(-1, fill_value=False)
        last = pl.concat([others, linked.filter(is_last).select(list(_STEP))])
        # Runs follow each other: agents of earlier runs take no more steps.
        self._last = last.filter(pl.col("run") == pl.col("run").max())

        return linked.filter("is_new").drop("is_new", "same")


def _order() -> Iterator[pl.Expr]:
    for name in MOMENT:
        yield pl.col(name).to_physical().fill_null(_EARLIEST[name])


def _is_earlier() -> pl.Expr:
    """Return True where the moment of a row is before that of the row above."""
    is_earlier = pl.lit(value=False)
    for here in reversed(list(_order())):
        is_earlier = (here < here.shift(1)) | ((here == here.shift(1)) & is_earlier)

    return is_earlier


def _put_in_order(linked: pl.DataFrame) -> pl.DataFrame:
    """Move every step that is too early to the moment of the agent's previous step."""
    # One number for each moment: a running maximum works on numbers only.
    ranks = linked.select(MOMENT).unique().with_columns(rank=pl.struct(*_order()).rank("dense"))
    ranked = linked.join(ranks, on=MOMENT, nulls_equal=True, maintain_order="left").drop(MOMENT)

    reached = pl.col("rank").cum_max().over(_AGENT)
    moved = ranked.with_columns(rank=reached, is_early=pl.col("rank") < reached)

    return moved.join(ranks.unique("rank"), on="rank", maintain_order="left").select(linked.columns)

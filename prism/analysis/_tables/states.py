"""How many agents are in each state, from the moves of a log alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from prism.analysis._reading.logs import STAMP, RunLogs, parse_time
from prism.analysis._reading.merging import TableMerger, merge_by_first, merge_by_sum
from prism.analysis._reading.notes import Note, NoteKind
from prism.analysis._reading.runs import Run
from prism.analysis._tables.agent_paths import PATH_COLUMNS, AgentPaths
from prism.statechart.social import ACTION_DONE, COMPOSE_DONE, ROUND_ENDS
from prism.telemetry.events import AGENT_JOINED, RUN_STARTED, TRANSITION

MOST_TIMES = 1000
"""Rows that a log without rounds and ticks is given at the most."""

_STEPS = {
    "1s": 1,
    "10s": 10,
    "1m": 60,
    "10m": 600,
    "1h": 3_600,
    "6h": 21_600,
    "1d": 86_400,
    "1w": 604_800,
}
_MOMENT = ("round", "tick", "time")
_COLUMNS = (*STAMP, *PATH_COLUMNS, "trigger", "ticks_in_state")

_NO_CLOSING, _PERHAPS_CLOSING, _CLOSING = 0, 1, 2

_CHANGED = ("run", "chart", *_MOMENT, "from_state", "to_state")

_BROKEN = (
    "start where the agent's last one ended",
    "lines are missing, or the state was set elsewhere",
)
_EARLY = ("follow the agent's last one in round, tick or time", "they count together with that")


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one pass over the logs gives.

    Args:
        moves: Moves by run, chart, moment, ends, and whether they close a round, with their
            ``count``.
        beginnings: How many agents of each run and chart begin in each state, as ``count``.
        moments: All rounds and ticks that stand in the logs.
        charts: The chart, by run, that is called null in the tables.
    """

    moves: pl.DataFrame
    beginnings: pl.DataFrame
    moments: pl.DataFrame
    charts: dict[int, str]

    def of(self, run: int) -> _Pass:
        """Return the part of one run."""
        moves, beginnings, moments = (
            table.filter(pl.col("run") == run)
            for table in (self.moves, self.beginnings, self.moments)
        )
        return _Pass(moves, beginnings, moments, self.charts)


def state_counts(logs: RunLogs) -> pl.DataFrame:
    """Count the agents in each state at the end of every tick.

    Counted are all agents that joined or moved: each starts in the state it joined in, else in the
    one its first move leaves, from the beginning, and is followed from move to move; ticks in which
    nobody moved are there as well. So the numbers are exact where the log has every move. A move
    that does not start where the agent's last one ended, because lines are missing or the state was
    set without a move, counts all the same as one from there: at every moment each agent is in one
    state, and what the log does not say is made up for with the agent's next move. `RunLogs.notes`
    then tells how many such moves there are, and also how many are stamped earlier than the agent's
    last one; these count together with that.

    A round of a simulation is closed within its last tick: what agents have decided on is carried
    out, and ``round_ends`` sends all to IDLE. As in the log's own ``round.ended``, a tick is
    counted before that. Left to the next tick are therefore the moves by ``round_ends`` and, in the
    last tick of a round of a run that says how many it has, those by ``compose_done`` and
    ``action_done`` of agents that came into their state in the same tick; nothing else moves an
    agent twice in a tick.

    Args:
        logs: What `read_log` gave.

    Returns:
        ``round``, ``tick``, ``state``, ``agents`` and ``share`` (of all agents, 0 to 1), with
        ``run`` first if there are several. If agents of a run are moved by several charts, each
        chart is counted by itself, over the agents that it moves, and named in ``chart`` before
        ``state``. A log without ticks is counted by round; one without rounds, too, by ``time``
        (UTC) in at most ``MOST_TIMES`` steps, each counted at its end. Moves that lack a round
        among others that have one count as round 0, and those that lack a time as made at the
        beginning, if their agent did not move later before.
    """
    found = _read(logs)
    tables = [_count(number, run, found.of(number)) for number, run in enumerate(logs.runs)]
    table = pl.concat([table for table in tables if table.height] or [_EMPTY], how="diagonal")
    charts = ["chart"] if table.select("run", "chart").n_unique() > table["run"].n_unique() else []
    moments = [name for name in _MOMENT if name in table.columns]

    return logs.labelled(table.select("run", *moments, *charts, "state", "agents", "share"))


_EMPTY = pl.DataFrame(
    schema={
        **{"run": pl.UInt32, "round": pl.Int64, "tick": pl.Int64, "chart": pl.String},
        **{"state": pl.String, "agents": pl.Int64, "share": pl.Float64},
    }
)


def _read(logs: RunLogs) -> _Pass:
    paths, moments = AgentPaths(), merge_by_first(["run", "round", "tick"])
    moves, beginnings = (
        merge_by_sum([*_CHANGED, "closing"]),
        merge_by_sum(["run", "chart", "state"]),
    )
    broken, early = _places(), _places()
    for steps in paths.follow(_dated(logs, moments)):
        is_first, begin = pl.col("before").is_null(), pl.col("begin")
        first = steps.filter(is_first).group_by("run", "chart", state=pl.coalesce("begin", "end"))
        beginnings.add(first.agg(count=pl.len().cast(pl.Int64)))
        made = steps.with_columns(
            from_state=pl.coalesce("before", "begin"), to_state="end"
        ).drop_nulls("from_state")
        moves.add(made.group_by(*_CHANGED, "closing").agg(count=pl.len().cast(pl.Int64)))
        broken.add(_placed(steps.filter(begin.is_not_null() & (begin != pl.col("before")))))
        early.add(_placed(steps.filter(begin.is_not_null() & pl.col("is_early"))))

    _remark(logs, "broken_chain", broken.table(), *_BROKEN)
    _remark(logs, "out_of_order", early.table(), *_EARLY)

    return _Pass(moves.table(), beginnings.table(), moments.table(), paths.charts)


def _dated(logs: RunLogs, moments: TableMerger) -> Iterator[pl.DataFrame]:
    """Return what agents are followed by, with its moments; gather all rounds and ticks of the logs on the way."""
    is_undated = pl.col("round").is_null() & pl.col("tick").is_null()
    is_second = pl.col("trigger").is_in([COMPOSE_DONE, ACTION_DONE]) & (
        pl.col("ticks_in_state") == 0
    )
    closing = (
        pl.when(pl.col("trigger") == ROUND_ENDS)
        .then(_CLOSING)
        .when(is_second)
        .then(_PERHAPS_CLOSING)
    )
    for frame in logs.blocks(columns=_COLUMNS):
        moments.add(frame.select("run", "round", "tick").unique(maintain_order=True))
        yield (
            frame.filter(pl.col("event").is_in([RUN_STARTED, AGENT_JOINED, TRANSITION]))
            .with_columns(
                timestamp=pl.when(is_undated).then("timestamp"),
                closing=pl.when(is_undated)
                .then(_NO_CLOSING)
                .otherwise(closing)
                .fill_null(_NO_CLOSING)
                .cast(pl.Int8),
            )
            .with_columns(time=parse_time("timestamp").dt.truncate("1s"))
        )


def _places() -> TableMerger:
    return TableMerger(
        lambda tables: tables.group_by("run").agg(pl.col("count").sum(), pl.col("line").min())
    )


def _placed(steps: pl.DataFrame) -> pl.DataFrame:
    """Count steps, and find the first of them in each run."""
    return steps.group_by("run").agg(count=pl.len().cast(pl.Int64), line=pl.col("line").min())


def _remark(logs: RunLogs, kind: NoteKind, found: pl.DataFrame, fails_to: str, why: str) -> None:
    paths = pl.Series("path", [str(logs.runs[run].path) for run in found["run"]], dtype=pl.String)
    by_path = (
        found.with_columns(paths).group_by("path").agg(pl.col("count").sum(), pl.col("line").min())
    )
    for path, count, line in by_path.iter_rows():
        moves = "1 move does" if count == 1 else f"{count:,} moves do"
        logs.remark(
            Note(kind, path, None, f"{moves} not {fails_to} (the first in line {line:,}): {why}")
        )


def _count(number: int, run: Run, found: _Pass) -> pl.DataFrame:
    """Follow the moves of one run."""
    if not found.beginnings.height:
        return _EMPTY

    by, moves, moments = _by_moment(run, found)
    grid = moments.unique().sort(by).with_row_index("place")
    placed = moves.join(grid, on=by, nulls_equal=True)
    if by != ["time"]:
        is_late = _closes_round(None if "tick" not in by else run.ticks_per_round)
        placed = placed.with_columns(place=pl.col("place") + is_late.cast(pl.UInt32))

    changes = _changes(placed, found.beginnings)
    states = changes.select("chart", "state").unique()
    every, key = grid.join(states, how="cross"), ["place", "chart", "state"]
    table = every.join(changes, on=key, how="left", nulls_equal=True).sort(key)
    agents = pl.col("change").fill_null(0).cum_sum().over("chart", "state")
    known = found.beginnings.group_by("chart").agg(known=pl.col("count").sum())
    table = table.with_columns(agents=agents).join(
        known, on="chart", nulls_equal=True, maintain_order="left"
    )
    name = pl.coalesce("chart", pl.lit(found.charts.get(number), pl.String))

    return table.with_columns(
        run=pl.lit(number, pl.UInt32), chart=name, share=pl.col("agents") / pl.col("known")
    )


def _closes_round(last_tick: int | None) -> pl.Expr:
    is_closing = pl.col("closing") == _CLOSING
    if last_tick is None:
        return is_closing
    return is_closing | ((pl.col("closing") == _PERHAPS_CLOSING) & (pl.col("tick") == last_tick))


def _changes(placed: pl.DataFrame, beginnings: pl.DataFrame) -> pl.DataFrame:
    """Return what every place adds to the agents in a state."""
    parts = (
        placed.select("place", "chart", state="to_state", change="count"),
        placed.select("place", "chart", state="from_state", change=-pl.col("count")),
        beginnings.select(pl.lit(0, pl.UInt32).alias("place"), "chart", "state", change="count"),
    )
    return pl.concat(parts).group_by("place", "chart", "state").agg(pl.col("change").sum())


def _by_moment(run: Run, found: _Pass) -> tuple[list[str], pl.DataFrame, pl.DataFrame]:
    """Find by what a run is counted; give its moves, complete in that, and every moment to count at."""
    has_rounds, has_ticks = (found.moves[name].is_not_null().any() for name in ("round", "tick"))
    if found.moves.height and not has_rounds and not has_ticks:
        moves = _in_steps(found.moves)
        return ["time"], moves, moves.select("time")

    by = ["round", "tick"] if has_ticks or not found.moves.height else ["round"]
    moves = found.moves.with_columns(pl.col(by).fill_null(0))
    seen = found.moments.select(by).drop_nulls()

    return by, moves, pl.concat([moves.select(by), _all_moments(run, seen, by)])


def _all_moments(run: Run, seen: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return every tick up to the last that is seen; where a run does not say what it has, all between those seen."""
    if by == ["round"] or not seen.height:
        return seen

    if run.rounds is None or run.ticks_per_round is None:
        ends = seen.group_by("round").agg(first=pl.col("tick").min(), last=pl.col("tick").max() + 1)
        return ends.select("round", tick=pl.int_ranges("first", "last")).explode("tick")

    rounds = pl.select(round=pl.int_range(1, run.rounds + 1))
    ticks = pl.select(tick=pl.int_range(1, run.ticks_per_round + 1))
    last_round, last_tick = seen.sort(by).row(-1)
    is_over = (pl.col("round") == last_round) & (pl.col("tick") > last_tick)

    return rounds.filter(pl.col("round") <= last_round).join(ticks, how="cross").filter(~is_over)


def _in_steps(moves: pl.DataFrame) -> pl.DataFrame:
    """Put the times of moves into steps, of the shortest length that does not give too many."""
    moves = moves.with_columns(pl.col("time").fill_null(pl.col("time").min()))
    for step in _STEPS:
        stepped = moves.with_columns(pl.col("time").dt.truncate(step))
        if stepped["time"].n_unique() <= MOST_TIMES:
            break

    return stepped

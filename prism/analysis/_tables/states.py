"""The number of agents in each state, reconstructed from the transitions alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from prism.analysis._reading.logs import STAMP, RunLogs, parse_time
from prism.analysis._reading.merging import COUNT, TableMerger, merge_by_first, merge_by_sum
from prism.analysis._reading.runs import Note, NoteKind, Run
from prism.analysis._tables.everybody import with_everybody
from prism.analysis._tables.levels import Level
from prism.statechart.social import ACTION_DONE, COMPOSE_DONE, ROUND_ENDS
from prism.telemetry.events import AGENT_JOINED, AGENT_LEFT, RUN_STARTED, TRANSITION

MOMENT = ("round", "tick", "closing", "time")
"""The order of steps: null counts as round 0, tick 0, and the earliest time."""

PATH_COLUMNS = ("chart", "agent_id", "state", "from_state", "to_state")
"""Keys of the events from which paths are made."""

GONE = ""
"""The state of agents that are not there; no chart has a state without a name."""

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
"""Agents per row that is collected before linking, if there are many agents."""


class AgentPaths:
    """Follows every agent through a log, in the order of its lines.

    Agents are followed by run and by chart, since agents of several charts may have the same ids.
    Joins and transitions that name no chart belong to the chart that is named first, in a
    simulation by ``run.started``. In a world, and in an application, agents join with their chart.

    Args:
        rows_at_once: Number of steps to link together; more if there are very many agents.

    Attributes:
        charts: The chart that each run names first, if any. It is null in the steps.
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
        names_chart = pl.col("event").is_in([RUN_STARTED, AGENT_JOINED, TRANSITION])
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
    """Return True if the moment of a row is before that of the row above."""
    is_earlier = pl.lit(value=False)
    for here in reversed(list(_order())):
        is_earlier = (here < here.shift(1)) | ((here == here.shift(1)) & is_earlier)

    return is_earlier


def _put_in_order(linked: pl.DataFrame) -> pl.DataFrame:
    """Move every step that is too early to the moment of the agent's previous step."""
    # One number for each moment, since a running maximum works only on numbers.
    ranks = linked.select(MOMENT).unique().with_columns(rank=pl.struct(*_order()).rank("dense"))
    ranked = linked.join(ranks, on=MOMENT, nulls_equal=True, maintain_order="left").drop(MOMENT)

    reached = pl.col("rank").cum_max().over(_AGENT)
    moved = ranked.with_columns(rank=reached, is_early=pl.col("rank") < reached)

    return moved.join(ranks.unique("rank"), on="rank", maintain_order="left").select(linked.columns)


MOST_TIMES = 1000
"""The largest number of moments at which a log without rounds and ticks is counted."""

_LEAST_FILLED = 100_000
_MOST_FILLED_PER_MOMENT = 100
"""The most rows for rounds and ticks without events, per round or tick with events."""

_TIME_STEPS = ("1s", "10s", "1m", "10m", "1h", "6h", "1d", "1w")
_MOMENT = ("round", "tick", "time")
_COLUMNS = (*STAMP, *PATH_COLUMNS, "trigger", "ticks_in_state", "seconds_per_round")

# Whether a transition closes a round, and so counts with the next tick.
_NO_CLOSING, _PERHAPS_CLOSING, _CLOSING = 0, 1, 2

_CHANGED = ("run", "chart", *_MOMENT, "from_state", "to_state")

_EMPTY = pl.DataFrame(
    schema={
        "run": pl.UInt32,
        "round": pl.Int64,
        "tick": pl.Int64,
        "chart": pl.String,
        "state": pl.String,
        "agents": pl.Int64,
        "share": pl.Float64,
    }
)

_BROKEN = (
    "start where the agent's last one ended",
    "lines are missing, or the state was set outside the chart",
)
_EARLY = ("follow the agent's last one in round, tick or time", "they count together with that")


@dataclass(frozen=True, slots=True)
class _Pass:
    """The result of one pass over the logs.

    Args:
        transitions: Transitions by run, chart, moment, source, target, and whether they close a
            round, with their ``count``.
        beginnings: The number of agents of each run and chart that begin in each state, as
            ``count``.
        moments: All rounds and ticks of the logs.
        charts: The chart, by run, that is null in the tables.
    """

    transitions: pl.DataFrame
    beginnings: pl.DataFrame
    moments: pl.DataFrame
    charts: dict[int, str]

    def of(self, run: int) -> _Pass:
        """Return the part of one run."""
        is_own = pl.col("run") == run
        return _Pass(
            self.transitions.filter(is_own),
            self.beginnings.filter(is_own),
            self.moments.filter(is_own),
            self.charts,
        )


def state_counts(logs: RunLogs, *, depth: int | None = None) -> pl.DataFrame:
    """Count the agents in each state at the end of every tick.

    All agents that join or make a transition are counted. From the beginning, each is in the state
    in which it joins, or else in the source of its first transition, and is followed from
    transition to transition. Ticks without transitions have rows as well. The numbers are exact if
    the log has every transition.

    A transition may not start where the agent's last one ended, because lines are missing or the
    state was set without a transition. It then counts as if it started there: every agent is in one
    state at any moment, and the agent's next transition corrects its state. `RunLogs.notes` says
    how many such transitions there are, and how many have an earlier time than the agent's last
    one, with which they are counted. An agent that has left is in no state from then on, and one
    that joins later in none before.

    A simulation closes a round within its last tick: it carries out what agents have decided, and
    ``round_ends`` sends all of them to IDLE. As in the log's own ``round.ended``, a tick is
    counted before that. The transitions by ``round_ends`` therefore count in the next tick. So
    do, in the last tick of a round (if the run says how many there are), those by
    ``compose_done`` and ``action_done`` of agents that entered their state in the same tick;
    otherwise no agent makes two transitions in a tick.

    If the log covers only a sample of the agents, or none, everybody is counted nevertheless, at
    the end of each round, as its ``round.ended`` does: all charts together.

    Args:
        logs: The logs, from `read_log`.
        depth: The level to count, in charts with nested states: 1 for the outermost states. An
            agent in several regions is counted in each. By default, the states are those of the
            log.

    Returns:
        ``round``, ``tick``, ``state``, ``agents`` and ``share`` (of all agents that are there,
        0 to 1; null if there are none). If there are several runs, ``run`` is the first
        column. If a run has several charts, each is counted separately, over its own agents, and
        named in ``chart`` before ``state``. A log without ticks is counted by round. A log without
        rounds and ticks is counted by ``time`` (UTC) in at most ``MOST_TIMES`` steps, each counted
        at its end. Transitions without a round, in a run where others have one, count in round 0.
        Transitions without a time count from the beginning, unless the agent's last one is later.
    """
    table = states_by_number(logs)
    if any(run.logged_agents is not None for run in logs.runs):
        table = with_everybody(logs, table)
    charts = ["chart"] if table.select("run", "chart").n_unique() > table["run"].n_unique() else []
    moments = [name for name in _MOMENT if name in table.columns]
    if depth is not None:
        told = table.select("run", *moments, "chart", "state", "agents", "share")
        table = Level.of(logs, depth).states(told, "agents", "share")

    return logs.labelled(table.select("run", *moments, *charts, "state", "agents", "share"))


def states_by_number(logs: RunLogs) -> pl.DataFrame:
    """Return the table with numbers of runs, and always with charts; see `state_counts`."""
    found = _read(logs)
    tables = [_count(number, run, found.of(number)) for number, run in enumerate(logs.runs)]

    return pl.concat([table for table in tables if table.height] or [_EMPTY], how="diagonal")


def _read(logs: RunLogs) -> _Pass:
    paths, moments = AgentPaths(), merge_by_first(["run", "round", "tick"])
    transitions = merge_by_sum([*_CHANGED, "closing"])
    beginnings = merge_by_sum(["run", "chart", "state"])
    broken, early = _merge_places(), _merge_places()
    count = COUNT.alias("count")
    before, begin = pl.col("before"), pl.col("begin")

    for steps in paths.follow(dated(logs, moments)):
        first = steps.filter(before.is_null())
        beginnings.add(first.group_by("run", "chart", state=pl.coalesce("begin", "end")).agg(count))

        source = pl.coalesce("before", "begin")
        made = steps.with_columns(from_state=source, to_state="end").drop_nulls("from_state")
        transitions.add(made.group_by(*_CHANGED, "closing").agg(count))

        broken.add(_places(steps.filter(begin.is_not_null() & (begin != before))))
        early.add(_places(steps.filter(begin.is_not_null() & pl.col("is_early"))))

    _remark(logs, "broken_chain", broken.table(), *_BROKEN)
    _remark(logs, "out_of_order", early.table(), *_EARLY)

    return _Pass(transitions.table(), beginnings.table(), moments.table(), paths.charts)


def dated(logs: RunLogs, moments: TableMerger) -> Iterator[pl.DataFrame]:
    """Return the events from which paths are made, with their moments, and collect all moments.

    Their time to the microsecond is text, in ``at``.

    Args:
        logs: The logs.
        moments: Collects the rounds and ticks of all events.
    """
    is_undated = pl.col("round").is_null() & pl.col("tick").is_null()
    for frame in logs.blocks(columns=_COLUMNS):
        moments.add(frame.select("run", "round", "tick").unique(maintain_order=True))
        followed = frame.filter(
            pl.col("event").is_in([RUN_STARTED, AGENT_JOINED, AGENT_LEFT, TRANSITION])
        )
        dated = followed.with_columns(
            timestamp=pl.when(is_undated).then("timestamp"), at="timestamp", closing=how_closing()
        )
        yield _coming_and_going(dated.with_columns(time=parse_time("timestamp").dt.truncate("1s")))


def _coming_and_going(frame: pl.DataFrame) -> pl.DataFrame:
    """Return events with transitions from and to nowhere for agents that come late, and that leave.

    What happens before the first tick of a round counts in that tick.
    """
    leaves = pl.col("event") == AGENT_LEFT
    comes = (pl.col("event") == AGENT_JOINED) & (pl.col("round") > 0)
    is_any = leaves | comes
    if not frame.select(is_any.any()).item():
        return frame

    return frame.with_columns(
        event=pl.when(is_any).then(pl.lit(TRANSITION)).otherwise("event"),
        from_state=pl.when(leaves)
        .then("state")
        .when(comes)
        .then(pl.lit(GONE))
        .otherwise("from_state"),
        to_state=pl.when(leaves).then(pl.lit(GONE)).when(comes).then("state").otherwise("to_state"),
        tick=pl.when(is_any & (pl.col("tick") == 0)).then(1).otherwise("tick"),
    )


def _places(steps: pl.DataFrame) -> pl.DataFrame:
    """Count steps, and find the first of them in each run."""
    return steps.group_by("run").agg(count=COUNT, line=pl.col("line").min())


def _merge_places() -> TableMerger:
    return TableMerger(
        lambda tables: tables.group_by("run").agg(pl.col("count").sum(), pl.col("line").min())
    )


def _remark(logs: RunLogs, kind: NoteKind, places: pl.DataFrame, fails_to: str, why: str) -> None:
    paths = pl.Series("path", [str(logs.runs[run].path) for run in places["run"]], dtype=pl.String)
    by_path = places.with_columns(paths).group_by("path")
    for path, count, line in by_path.agg(pl.col("count").sum(), pl.col("line").min()).iter_rows():
        what = "1 transition does" if count == 1 else f"{count:,} transitions do"
        text = f"{what} not {fails_to} (the first in line {line:,}): {why}"
        logs.remark(Note(kind, path, None, text))


def _count(number: int, run: Run, found: _Pass) -> pl.DataFrame:
    """Count the agents of one run."""
    if not found.beginnings.height:
        return _EMPTY

    by, transitions, moments = _by_moment(run, found)
    grid = moments.unique().sort(by).with_row_index("place")
    placed = transitions.join(grid, on=by, nulls_equal=True)
    if by != ["time"]:
        is_late = closes_round(None if "tick" not in by else run.ticks_per_round)
        placed = placed.with_columns(place=pl.col("place") + is_late.cast(pl.UInt32))

    # Every state has a row at every moment, so the running sum of changes is the number of agents.
    changes = _changes(placed, found.beginnings)
    states = changes.select("chart", "state").unique()
    every, key = grid.join(states, how="cross"), ["place", "chart", "state"]
    table = every.join(changes, on=key, how="left", nulls_equal=True).sort(key)
    agents = pl.col("change").fill_null(0).cum_sum().over("chart", "state")

    table = table.with_columns(agents=agents)
    known = pl.col("agents").sum().over("place", "chart")
    name = pl.coalesce("chart", pl.lit(found.charts.get(number), pl.String))

    share = pl.when(known > 0).then(pl.col("agents") / known)

    return table.with_columns(run=pl.lit(number, pl.UInt32), chart=name, share=share)


def how_closing() -> pl.Expr:
    """Return the column ``closing`` for `closes_round`: whether a transition closes its round."""
    is_undated = pl.col("round").is_null() & pl.col("tick").is_null()
    ends_action = pl.col("trigger").is_in([COMPOSE_DONE, ACTION_DONE])
    is_second = ends_action & (pl.col("ticks_in_state") == 0)

    # A log without rounds closes none.
    closing = (
        pl.when(is_undated)
        .then(_NO_CLOSING)
        .when(pl.col("trigger") == ROUND_ENDS)
        .then(_CLOSING)
        .when(is_second)
        .then(_PERHAPS_CLOSING)
        .otherwise(_NO_CLOSING)
    )

    return closing.cast(pl.Int8).alias("closing")


def closes_round(last_tick: int | pl.Expr | None) -> pl.Expr:
    """Return True for transitions by which a simulation closes a round.

    Args:
        last_tick: The last tick of the round, if known.
    """
    is_closing = pl.col("closing") == _CLOSING
    if last_tick is None:
        return is_closing
    return is_closing | ((pl.col("closing") == _PERHAPS_CLOSING) & (pl.col("tick") == last_tick))


def _changes(placed: pl.DataFrame, beginnings: pl.DataFrame) -> pl.DataFrame:
    """Return the number of agents that every moment adds to a state."""
    entered = placed.filter(pl.col("to_state") != GONE).select(
        "place", "chart", state="to_state", change="count"
    )
    left = placed.filter(pl.col("from_state") != GONE).select(
        "place", "chart", state="from_state", change=-pl.col("count")
    )
    begun = beginnings.filter(pl.col("state") != GONE).select(
        pl.lit(0, pl.UInt32).alias("place"), "chart", "state", change="count"
    )

    changes = pl.concat([entered, left, begun])
    return changes.group_by("place", "chart", "state").agg(pl.col("change").sum())


def _by_moment(run: Run, found: _Pass) -> tuple[list[str], pl.DataFrame, pl.DataFrame]:
    """Return the unit in which a run is counted, its transitions in that unit, and all moments."""
    transitions = found.transitions
    has_rounds = transitions["round"].is_not_null().any()
    has_ticks = transitions["tick"].is_not_null().any()

    if transitions.height and not has_rounds and not has_ticks:
        stepped = _in_time_steps(transitions)
        return ["time"], stepped, stepped.select("time")

    by = ["round", "tick"] if has_ticks or not transitions.height else ["round"]
    filled = transitions.with_columns(pl.col(by).fill_null(0))
    seen = found.moments.select(by).drop_nulls()

    return by, filled, pl.concat([filled.select(by), _all_moments(run, seen, by)])


def _all_moments(run: Run, seen: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return every tick up to the last one seen."""
    if by == ["round"] or not seen.height:
        return seen

    # A log may claim any numbers, so the rows that they add are bounded by its events.
    most = max(_LEAST_FILLED, _MOST_FILLED_PER_MOMENT * seen.n_unique())
    last_round, last_tick = seen.sort(by).row(-1)
    if run.rounds is not None and run.ticks_per_round is not None:
        last_of_run = min(run.rounds, last_round)
        if last_of_run * run.ticks_per_round <= most:
            rounds = pl.select(round=pl.int_range(1, last_of_run + 1))
            ticks = pl.select(tick=pl.int_range(1, run.ticks_per_round + 1))
            is_over = (pl.col("round") == last_round) & (pl.col("tick") > last_tick)
            return rounds.join(ticks, how="cross").filter(~is_over)

        # It claims more rounds than it had, so its rounds are those with events.
        seen = seen.filter(pl.col("round") > 0)

    # A run without a known number of ticks gets all ticks between those that occur.
    ends = seen.group_by("round").agg(first=pl.col("tick").min(), last=pl.col("tick").max())
    if sum(last - first + 1 for first, last in ends.select("first", "last").iter_rows()) <= most:
        between = pl.int_ranges("first", pl.col("last") + 1)
        return ends.select("round", tick=between).explode("tick")

    return seen


def _in_time_steps(transitions: pl.DataFrame) -> pl.DataFrame:
    """Round times to steps of the shortest length that gives few enough of them."""
    dated = transitions.with_columns(pl.col("time").fill_null(pl.col("time").min()))
    for step in _TIME_STEPS:
        stepped = dated.with_columns(pl.col("time").dt.truncate(step))
        if stepped["time"].n_unique() <= MOST_TIMES:
            break

    return stepped

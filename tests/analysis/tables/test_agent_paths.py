"""Following agents from move to move."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from prism.analysis._tables.states import AgentPaths

JOINED, MOVED, STARTED = "agent.joined", "statechart.transition", "run.started"
SCHEMA: dict[str, Any] = {
    **{
        "run": pl.UInt32,
        "line": pl.UInt32,
        "event": pl.String,
        "chart": pl.String,
        "agent_id": pl.String,
    },
    **{"state": pl.String, "from_state": pl.String, "to_state": pl.String},
    **{"round": pl.Int64, "tick": pl.Int64, "time": pl.Datetime("us", "UTC"), "closing": pl.Int8},
}
Row = dict[str, Any]


def join(agent: str, state: str, **keys: Any) -> Row:
    return {
        "run": 0,
        "event": JOINED,
        "agent_id": agent,
        "state": state,
        "round": 0,
        "tick": 0,
        "closing": 0,
        **keys,
    }


def move(agent: str, begin: str | None, end: str | None, **keys: Any) -> Row:
    ends = {"agent_id": agent, "from_state": begin, "to_state": end}
    return {
        "run": 0,
        "event": MOVED,
        "chart": "c",
        "round": 1,
        "tick": 1,
        "closing": 0,
        **ends,
        **keys,
    }


def follow(
    rows: Sequence[Row], cuts: Sequence[int] = (), paths: AgentPaths | None = None
) -> pl.DataFrame:
    """Follow events in blocks, each linked at once; return steps in the order of lines."""
    paths = paths or AgentPaths(rows_at_once=0)
    numbered = pl.DataFrame(
        [{"line": line, **row} for line, row in enumerate(rows, start=1)], schema=SCHEMA
    )
    edges = sorted({0, *cuts, len(rows)})
    blocks = [numbered.slice(begin, end - begin) for begin, end in pairwise(edges)]
    return pl.concat(list(paths.follow(blocks))).sort("line")


def moment_of(row: Row) -> tuple[Any, ...]:
    """Return what rows are ordered by."""
    return (
        row["round"] or 0,
        row["tick"] or 0,
        row["closing"],
        row.get("time") or datetime.min.replace(tzinfo=UTC),
    )


AGENTS, STATES = st.sampled_from("xyz"), st.sampled_from("abc")
JOINS = st.builds(join, AGENTS, STATES, run=st.integers(0, 1))
MOVES = st.builds(
    *(move, AGENTS, STATES, STATES),
    run=st.integers(0, 1),
    chart=st.sampled_from(["c", "d", None]),
    round=st.one_of(st.none(), st.integers(0, 3)),
    tick=st.one_of(st.none(), st.integers(0, 3)),
    time=st.one_of(
        st.none(),
        st.sampled_from([datetime(1969, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)]),
    ),
    closing=st.integers(0, 2),
)


@given(rows=st.lists(st.one_of(JOINS, MOVES), max_size=30), cuts=st.sets(st.integers(0, 30)))
def test_steps_follow_from_one_another(rows: list[Row], cuts: set[int]) -> None:
    """A step has the end of its agent's last step and no earlier moment, however blocks are cut."""
    rows.sort(key=lambda row: row["run"])
    steps = follow(rows, [cut for cut in cuts if cut < len(rows)])
    first = {row["run"]: row["chart"] for row in reversed(rows) if row.get("chart")}
    last: dict[tuple[int, str | None, str], tuple[str, tuple[Any, ...]]] = {}
    for row, step in zip(rows, steps.iter_rows(named=True), strict=True):
        key = (row["run"], row.get("chart") or first.get(row["run"]), row["agent_id"])
        own = moment_of(row)
        before, moment = last.get(key, (None, own))
        assert (step["before"], step["is_early"]) == (before, own < moment)
        assert moment_of(step) == max(own, moment)
        last[key] = (step["end"], max(own, moment))

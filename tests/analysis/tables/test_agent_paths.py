"""Following agents from move to move."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
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


def test_steps_are_linked_in_batches() -> None:
    """Blocks are linked once they have enough steps, and the last ones at the end."""
    rows = [move(f"agent {number}", "a", "b") for number in range(10)]
    paths = AgentPaths(rows_at_once=4)
    numbered = pl.DataFrame([{"line": line, **row} for line, row in enumerate(rows)], schema=SCHEMA)
    parts = list(paths.follow(numbered.slice(place, 1) for place in range(10)))
    assert [part.height for part in parts] == [5, 5, 0]


def test_incomplete_steps_are_left_out() -> None:
    """Transitions without agent or end are no steps, nor are agents that join in no state."""
    rows = [
        move("x", None, "b"),
        move("x", "b", None),
        {**join("x", "a"), "state": None},
        {**join("x", "a"), "agent_id": None},
        move("x", "a", "b"),
    ]
    assert follow(rows)["line"].to_list() == [5]


@pytest.mark.parametrize(
    ("told", "before"), [("c", [None, None, None, "a"]), ("d", [None, None, "a", None])]
)
def test_agents_join_the_chart_of_the_run(told: str, before: list[str | None]) -> None:
    """If two charts drive agents, those that join belong to the chart of run.started."""
    rows = [
        {"run": 0, "event": STARTED, "chart": told},
        move("y", "home", "work", chart="d"),
        join("x", "a"),
        move("x", "home", "work", chart="d"),
        move("x", "a", "b", chart="c"),
    ]
    paths = AgentPaths(rows_at_once=0)
    assert follow(rows, paths=paths)["before"].to_list() == before
    assert paths.charts == {0: told}


def test_agents_of_an_earlier_run_are_forgotten() -> None:
    """Agents of a run have no steps from the run before, though they have the same ids."""
    steps = follow(
        [move("x", "a", "b"), move("x", "c", "a", run=1), move("x", "a", "b", run=1)], [1, 2]
    )
    assert steps["before"].to_list() == [None, None, "a"]

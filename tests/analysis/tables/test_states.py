"""Agents in each state, from moves alone."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from prism.analysis import Log, Note, read_log
from tests.kit.tables import state_counts

WriteLog = Callable[..., Path]


def counted(table: pl.DataFrame, *moment: str) -> dict[tuple[Any, ...], dict[str, int]]:
    """Return the agents in each state by moment, states without agents left out."""
    found: dict[tuple[Any, ...], dict[str, int]] = {}
    for *when, state, agents in table.select(*moment, "state", "agents").iter_rows():
        found.setdefault(tuple(when), {}).update({state: agents} if agents else {})
    return found


WALK = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(1, 4), st.sampled_from("abc")),
    max_size=25,
)


@given(walk=WALK, has_joined=st.booleans())
def test_counts_are_those_of_following_every_agent(
    walk: list[tuple[int, int, int, str]], has_joined: bool, tmp_path_factory: Any
) -> None:
    """Counts equal those of following each agent one by one, joined or not."""
    states = dict.fromkeys(range(3), "a")
    lines, moved = [], []
    for agent, number, tick, target in sorted(walk, key=lambda step: step[1:3]):
        if target == states[agent]:
            continue
        moved.append((agent, number, tick, states[agent], target))
        states[agent] = target
    if has_joined:
        lines += [
            {"event": "agent.joined", "agent_id": str(agent), "state": "a"} for agent in range(3)
        ]
    for agent, number, tick, source, target in moved:
        ends = {"agent_id": str(agent), "from_state": source, "to_state": target, "trigger": "go"}
        lines.append({"event": "statechart.transition", "round": number, "tick": tick, **ends})
    path = tmp_path_factory.mktemp("walk") / "events.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    known = range(3) if has_joined else {agent for agent, *_ in moved}
    for (number, tick), agents in counted(state_counts(read_log(path)), "round", "tick").items():
        made = {agent: target for agent, *when, _, target in moved if tuple(when) <= (number, tick)}
        at = dict.fromkeys(known, "a") | made
        assert agents == dict(Counter(at.values()))


def notes_of(logs: Log) -> dict[str, str]:
    """Return the messages of a log's notes, by kind."""
    return {note.kind: note.message for note in logs.notes}


LOOSE = st.tuples(
    *(st.sampled_from("xyz"), st.sampled_from("abc"), st.sampled_from("abc")),
    *(st.one_of(st.none(), st.integers(0, 3)), st.one_of(st.none(), st.integers(0, 3))),
    st.sampled_from(["go", "round_ends", "compose_done"]),
    *(
        st.integers(0, 1),
        st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", "?"]),
        st.booleans(),
    ),
)


@given(
    moves=st.lists(LOOSE, min_size=1, max_size=12), is_dated=st.booleans(), ticks=st.integers(1, 3)
)
def test_every_agent_is_counted_in_any_log(
    moves: list[Any], is_dated: bool, ticks: int, make: SimpleNamespace, tmp_path_factory: Any
) -> None:
    """Transitions from anywhere at any time, joins in between and repeated rounds lose no agent."""
    lines = [make.started(rounds=4, ticks_per_round=ticks)] if is_dated else []
    for agent, begin, end, number, tick, trigger, dwelt, stamp, joins in moves:
        when = {"round": number, "tick": tick} if is_dated else {"round": None, "tick": None}
        facts = {**when, "timestamp": stamp}
        # in a later round, an agent would be nowhere before
        joined = {**facts, "round": 0} if is_dated else facts
        lines += [make.joined(agent, end, **joined)] if joins else []
        lines.append(make.move(agent, begin, end, trigger, ticks_in_state=dwelt, **facts))
    path = tmp_path_factory.mktemp("loose") / "loose.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    table = state_counts(read_log(path))
    assert (table["agents"] >= 0).all()
    moment = [name for name in ("round", "tick", "time") if name in table.columns]
    totals = table.group_by(*moment).agg(pl.col("agents").sum())["agents"]
    assert set(totals) == {len({agent for agent, *_ in moves})}


def test_state_set_without_a_transition_is_noted(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Agents put back without a transition count where they last went, and a note says so."""
    lines = [
        make.move(agent, "calm", "angry", round=number, tick=1)
        for number in (1, 2, 3)
        for agent in ("x", "y")
    ]
    logs = read_log(write_log(lines))
    table = state_counts(logs)
    assert counted(table, "round", "tick") == {(number, 1): {"angry": 2} for number in (1, 2, 3)}
    assert set(table["share"]) == {0.0, 1.0}
    assert logs.notes == (
        Note(
            *("broken_chain", str(logs.runs[0].path), None),
            "4 transitions do not start where the agent's last one ended (the first in line 3): "
            "lines are missing, or the state was set outside the chart",
        ),
    )


def test_rounds_that_start_again_are_noted(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A transition with an earlier stamp counts with the agent's last one, and is noted."""
    lines = [
        make.move("x", "a", "b", round=1),
        make.move("x", "b", "a", round=2),
        make.move("x", "a", "c", round=1),
    ]
    logs = read_log(write_log([*lines, make.move("x", "c", "a", round=2)]))
    assert counted(state_counts(logs), "round", "tick") == {(1, 1): {"b": 1}, (2, 1): {"a": 1}}
    assert notes_of(logs) == {
        "out_of_order": "1 transition does not follow the agent's last one in round, tick or time "
        "(the first in line 3): they count together with that"
    }


def test_closing_transitions_count_with_the_next_tick(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Transitions that close a round count with the next tick, only in the last tick."""
    lines = [
        make.started(rounds=2, ticks_per_round=2),
        make.joined("x"),
        make.move("x", "idle", "composing", tick=1),
        make.move("x", "composing", "engaging_like", "compose_done", tick=1, ticks_in_state=0),
        make.move("x", "engaging_like", "composing", tick=2),
        make.move("x", "composing", "resting", "compose_done", tick=2, ticks_in_state=0),
        make.move("x", "resting", "idle", "round_ends", tick=2, ticks_in_state=0),
        make.event("round.started", round=2, tick=0),
        make.event("round.ended", round=2, tick=1),
    ]
    table = counted(state_counts(read_log(write_log(lines))), "round", "tick")
    assert table == {(1, 1): {"engaging_like": 1}, (1, 2): {"composing": 1}, (2, 1): {"idle": 1}}


def test_unfinished_run_is_counted_up_to_its_last_tick(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Ticks without transitions have rows up to the last tick of the log, and none after it."""
    lines = [
        make.started(rounds=9, ticks_per_round=3),
        make.joined("x"),
        make.move("x", "idle", "a", round=2, tick=2),
    ]
    table = counted(state_counts(read_log(write_log(lines))), "round", "tick")
    assert list(table) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    assert [*table.values()] == [{"idle": 1}] * 4 + [{"a": 1}]


def test_log_with_rounds_alone_is_counted_by_round(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Without ticks each round has a row; a transition without a round counts before the first."""
    lines = [
        make.move("x", "a", "b", round=None, tick=None),
        make.move("x", "b", "c", round=1, tick=None),
        make.move("y", "a", "c", round=2, tick=None),
    ]
    table = state_counts(read_log(write_log(lines)))
    assert table.columns == ["round", "state", "agents", "share"]
    assert counted(table, "round") == {
        (0,): {"a": 1, "b": 1},
        (1,): {"a": 1, "c": 1},
        (2,): {"c": 2},
    }


def test_log_without_rounds_is_counted_by_time(write_log: WriteLog, make: SimpleNamespace) -> None:
    """With times alone, of any precision and zone, each second has a row."""
    stamps = ["2026-01-01T00:00:00.25Z", "2026-01-01T01:00:00.75+01:00", "2026-01-01T00:00:02Z"]
    ends = [("x", "a", "b"), ("y", "a", "b"), ("x", "b", "a")]
    moves = [make.move(*move, timestamp=stamp) for move, stamp in zip(ends, stamps, strict=True)]
    bare = [
        {key: value for key, value in move.items() if key not in ("round", "tick")}
        for move in moves
    ]
    table = state_counts(read_log(write_log(bare)))
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    assert counted(table, "time") == {
        (begin,): {"b": 2},
        (begin + timedelta(seconds=2),): {"a": 1, "b": 1},
    }

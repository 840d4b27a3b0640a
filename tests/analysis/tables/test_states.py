"""Agents in each state, from moves alone."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.analysis import Log, read_log
from tests.kit import make
from tests.kit.logs import LogOf

BEGIN = datetime(2026, 1, 1)
TIMES = ["2026-01-01T00:00:00.25Z", "2026-01-01T01:00:00.75+01:00", "2026-01-01T00:00:02Z"]
BARE = [
    make.move(*ends, timestamp=time, round=None, tick=None)
    for ends, time in zip(("xab", "yab", "xba"), TIMES, strict=True)
]


def counted(log: Log) -> dict[tuple[Any, ...], dict[str, int]]:
    """Return the agents in each state by moment, states without agents left out."""
    found: dict[tuple[Any, ...], dict[str, int]] = {}
    for *moment, state, agents, share in log.table("states").fetchall():
        found.setdefault(tuple(moment), {}).update({state: agents} if agents else {})
        assert 0 <= share <= 1
    return found


@pytest.mark.parametrize(
    ("lines", "counts", "note"),
    [
        # set without a transition
        (
            [make.move(agent, "a", "b", round=n) for n in (1, 2, 3) for agent in "xy"],
            {(1, 1): {"b": 2}, (2, 1): {"b": 2}, (3, 1): {"b": 2}},
            "4 transitions do not start where the agent's last one ended (the first in line 3): "
            "lines are missing, or the state was set outside the chart",
        ),
        # rounds that start again
        (
            [
                make.move("x", *ends, round=n)
                for ends, n in zip(("ab", "ba", "ac", "ca"), (1, 2, 1, 2), strict=True)
            ],
            {(1, 1): {"b": 1}, (2, 1): {"a": 1}},
            "1 transition does not follow the agent's last one in round, tick or time "
            "(the first in line 3): they count together with that",
        ),
        # what closes a round, in its last tick alone
        (
            [
                make.started(rounds=2, ticks_per_round=2),
                make.joined("x"),
                make.move("x", "idle", "composing", tick=1),
                make.move("x", "composing", "liking", "compose_done", tick=1, ticks_in_state=0),
                make.move("x", "liking", "composing", tick=2),
                make.move("x", "composing", "resting", "compose_done", tick=2, ticks_in_state=0),
                make.move("x", "resting", "idle", "round_ends", tick=2, ticks_in_state=0),
                make.event("round.ended", round=2, tick=1),
                make.event("run.ended"),
            ],
            {(1, 1): {"liking": 1}, (1, 2): {"composing": 1}, (2, 1): {"idle": 1}},
            None,
        ),
        # up to the last tick of the log
        (
            [
                make.started(rounds=9, ticks_per_round=3),
                make.joined("x"),
                make.move("x", "idle", "a", round=2, tick=2),
                make.event("run.ended", round=None, tick=None),
            ],
            {
                **{moment: {"idle": 1} for moment in ((1, 1), (1, 2), (1, 3), (2, 1))},
                (2, 2): {"a": 1},
            },
            None,
        ),
        # by round, one that is unknown before the first
        (
            [
                make.move("x", "a", "b", round=None, tick=None),
                make.move("x", "b", "c", round=1, tick=None),
                make.move("y", "a", "c", round=2, tick=None),
            ],
            {(0,): {"a": 1, "b": 1}, (1,): {"a": 1, "c": 1}, (2,): {"c": 2}},
            None,
        ),
        # by seconds of any precision and zone
        (
            BARE,
            {(BEGIN,): {"b": 2}, (BEGIN + timedelta(seconds=2),): {"a": 1, "b": 1}},
            None,
        ),
    ],
)
def test_agents_are_counted_at_each_moment(
    lines: list[make.Event], counts: Any, note: str | None, log_of: LogOf
) -> None:
    """By tick, round or time, as the log has them; where steps do not fit, a note says so."""
    log = log_of(lines)
    found = counted(log)
    assert (found, list(found)) == (counts, list(counts))
    assert [each.message for each in log.notes] == ([] if note is None else [note])


LOOSE = st.tuples(
    *(st.sampled_from("xyz"), st.sampled_from("abc"), st.sampled_from("abc")),
    *(st.one_of(st.none(), st.integers(0, 3)), st.one_of(st.none(), st.integers(0, 3))),
    *(st.sampled_from(["go", "round_ends", "compose_done"]), st.integers(0, 1)),
    *(st.sampled_from([*TIMES, "?"]), st.booleans()),
)


@given(
    moves=st.lists(LOOSE, min_size=1, max_size=12), is_dated=st.booleans(), ticks=st.integers(1, 3)
)
def test_every_agent_is_counted_in_any_log(
    moves: list[Any], is_dated: bool, ticks: int, tmp_path_factory: Any
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
    path: Path = tmp_path_factory.mktemp("loose") / "loose.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    agents = len({agent for agent, *_ in moves})
    assert {sum(counts.values()) for counts in counted(read_log(path)).values()} == {agents}

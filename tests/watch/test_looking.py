"""Looking into the log itself: one agent, and rounds that are not counted yet."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from prism.analysis import read_log
from prism.watch._looking import agents_in, doings_of, happened_in
from prism.watch._watched import Watched
from tests.kit.tables import agent_story
from tests.kit.waiting import wait_until


@pytest.mark.slow
def test_one_agent_is_told_from_its_own_lines_alone(
    folder: Path,
    events: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Agents are told as from the whole log, replies and likes of others among it."""
    whole = read_log(folder)
    joined = [event["agent_id"] for event in events if event["event"] == "agent.joined"]
    watched = Watched(folder, "real")
    wait_until(lambda: watched.counted == watched.tail.size > 0)
    for agent in joined[:15]:
        story = doings_of(watched, agent, None).story
        told = story.drop("line").rename({"own_keys": "keys"})
        assert_frame_equal(told, agent_story(whole, agent).select(told.columns))

    read: list[int] = []
    original = os.pread

    def pread(file: int, size: int, place: int) -> bytes:
        read.append(len(data := original(file, size, place)))
        return data

    monkeypatch.setattr("os.pread", pread)
    doings_of(watched, joined[0], None)
    assert sum(read) < watched.tail.size / 5
    watched.close()


def test_the_last_round_of_a_long_log_is_told_before_the_rest_is_read(
    write_log: Callable[..., Path], make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until a log is read to a round, only the last is told, from the end of the log."""
    monkeypatch.setattr("prism.watch._watched.MOST_READ_WHOLE", 0)
    monkeypatch.setattr("prism.watch._watched._SECONDS_TO_BE_SHOWN", 600)
    moves = [
        {**make.move("a", *ends, trigger="go"), "round": number, "tick": 1}
        for number, ends in ((6, "xy"), (7, "yx"))
    ]
    ended = {"event": "round.ended", "timestamp": "t", "round": 7, "states": {"x": 1}}
    watched = Watched(write_log([make.started(), make.joined("a", "x"), *moves, ended]), "x")
    try:
        assert happened_in(watched, 7, "moves")[0]["round"].to_list() == [7]
        assert agents_in(watched, 7, "x", []) == [("a", 1)]
        assert happened_in(watched, 6, "moves")[0].is_empty()
        assert agents_in(watched, 6, "y", []) == []
        assert watched.counted == 0
        watched.shown.set()
        wait_until(lambda: watched.counted > 0)
        assert happened_in(watched, 6, "moves")[0]["round"].to_list() == [6]
        assert agents_in(watched, 6, "y", []) == [("a", 1)]
    finally:
        watched.close()


def test_agents_are_found_as_of_a_tick_and_the_last_of_many_decisions(
    write_log: Callable[..., Path], make: Any
) -> None:
    """A state is that at the end of the tick; of other rounds the last 40 decisions are told."""
    way = ["xy", "yz", "zx"]
    moves = [
        {**make.move("a", *ends, trigger="go"), "round": 1, "tick": tick}
        for tick, ends in enumerate(way, 1)
    ]
    decisions = [make.decision("a", ["x", "y"], "x", round=2, tick=tick) for tick in range(1, 43)]
    watched = Watched(write_log([make.started(), make.joined("a", "x"), *moves, *decisions]), "x")
    try:
        wait_until(lambda: watched.counted == watched.tail.size > 0)
        for tick, (_, state) in enumerate(way, 1):
            assert agents_in(watched, 1, state, [], tick=tick) == [("a", 1)]
        told = doings_of(watched, "a", 1)
        assert [each.event["tick"] for each in told.others] == [*range(3, 43)]
        assert not told.here
    finally:
        watched.close()


def test_who_moved_long_ago_is_found_far_back(
    write_log: Callable[..., Path], make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long log is looked through from its end until all agents are found."""
    monkeypatch.setattr("prism.watch._tail.BLOCK_BYTES", 2048)
    moves = [make.move("b", "x", "y"), *(make.move("a", "x", "x") for _ in range(40))]
    joined = [make.joined(agent, "x") for agent in "ab"]
    watched = Watched(write_log([make.started(), *joined, *moves]), "x")
    try:
        wait_until(lambda: watched.counted == watched.tail.size > 3 * 2048)
        assert agents_in(watched, 1, "y", []) == [("b", 1)]
    finally:
        watched.close()

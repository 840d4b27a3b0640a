"""Looking into the log itself: what is read of it for one agent."""

import os
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from prism.analysis import agent_story, read_log
from prism.watch._looking import doings_of
from prism.watch._watched import Watched
from tests.kit.waiting import wait_until


@pytest.mark.parametrize("agents", [5, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_one_agent_is_told_from_its_own_lines_alone(
    agents: int,
    folder: Path,
    events: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All agents are told as from the whole log, replies and likes of others among it."""
    whole = read_log(folder)
    joined = [event["agent_id"] for event in events if event["event"] == "agent.joined"]
    watched = Watched(folder, "real")
    wait_until(lambda: watched.counted == watched.tail.size > 0)
    for agent in joined[:agents]:
        story = doings_of(watched, agent, None).story
        assert_frame_equal(story.drop("line"), agent_story(whole, agent).drop("line"))

    read: list[int] = []
    original = os.pread

    def pread(file: int, size: int, place: int) -> bytes:
        read.append(len(data := original(file, size, place)))
        return data

    monkeypatch.setattr("os.pread", pread)
    doings_of(watched, joined[0], None)
    assert sum(read) < watched.tail.size / 5
    watched.close()

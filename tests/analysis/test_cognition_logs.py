"""Logs of agents that think, read by every table, the report and the conformance check."""

import asyncio
from pathlib import Path

import polars as pl
import pytest

from prism.analysis import read_log
from prism.runlog import configure
from tests.kit.cognition import FIXED, action, add, letters, limited, thinker, thought, working
from tests.kit.tables import agent_story


async def think() -> None:
    """Run through all that can happen to an agent."""
    replies = [
        thought("on", "executing"),
        add("a", "1"),
        add("b", "2"),
        action("storage_burn", "all"),
        "nothing of use",
        OSError("down"),
    ]
    data = {**working(10, 250), "state": "dreaming"}
    config = limited(FIXED + 2400)
    await thinker(replies, data, config, count=letters, agent_id="ada").run(7)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of an application whose agent thinks."""
    path = tmp_path_factory.mktemp("logs") / "events.jsonl"
    with configure(path):
        asyncio.run(think())
    return path


def test_the_story_of_an_agent(log: Path) -> None:
    """Every event of an agent is a sentence."""
    story = agent_story(read_log(log), "ada")
    told = [what for what in story["what"] if what.startswith(("cycle", "starts"))]
    assert told[:4] == [
        "starts over in thinking: there is no state dreaming",
        "cycle 11, paging (soft_limit): moved out m0, m1, m2, m3",
        "cycle 11 in paging done, then thinking",
        "cycle 12 in thinking done, then executing",
    ]
    assert "cycle 13, working_memory_add of a done" in told
    assert told[-1] == "cycle 17 in thinking failed, then thinking: down"
    assert story.filter(pl.col("event") == "cognition.paged")["moved_out"].to_list() == [
        ["m0", "m1", "m2", "m3"]
    ]

"""The example of the documentation: an agent that plans a story over thirty cycles."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from prism.programs.thinking import Config, Memory
from prism.testing import FakeOllama
from tests.kit.commands import Prism

FOLDER = Path(__file__).parents[3] / "docs" / "cognition"
CYCLES = 30
WHOLE_PLAN = {"setting", "outline", "character_Alba", "character_Teo", "character_Inspector"} | {
    f"chapter_{number}" for number in range(1, 7)
}


@pytest.fixture(scope="module")
def author() -> Any:
    """Return the module that plays the model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        import author

        yield author
        del sys.modules["author"]


@pytest.fixture(scope="module")
def planned(author: Any, tmp_path_factory: pytest.TempPathFactory) -> Prism:
    """Run the example by the command of the page.

    The author is the model, on a server that is gone when the tests look at what came of it.
    """
    prism = Prism(tmp_path_factory.mktemp("planned"))
    (prism.folder / "config.json").write_bytes((FOLDER / "config.json").read_bytes())
    files = ("config.json", "--memory", "memory.json")
    with FakeOllama(write=author.write) as server:
        model = ("--model", f"ollama:llama3.2@{server.url}")
        ran = prism("run", *files, *model, "--rounds", CYCLES, "--out", "story")
    assert ran.status == 0, ran.err
    return prism


def events_of(prism: Prism, name: str) -> list[dict[str, Any]]:
    """Return the events of a name in the run's log."""
    lines = (prism.folder / "story" / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == name]


@pytest.mark.slow
def test_the_story_is_planned(planned: Prism) -> None:
    """After thirty cycles every piece of the plan is there, in working memory or in storage."""
    with Memory.read(planned.folder / "memory.json") as memory:
        assert memory.cycle == CYCLES
        assert {*memory.working, *memory.to_dict()["storage"]} == WHOLE_PLAN
        assert len(memory.thoughts) == 4
    assert len(events_of(planned, "cognition.action")) == 13


def test_no_prompt_passes_the_hard_limit(planned: Prism) -> None:
    """The limit is small enough that the agent pages, and none of its prompts passes it."""
    config = Config.load(planned.folder / "config.json")
    sizes = [
        event["prompt_tokens"]
        for event in events_of(planned, "cognition.cycle")
        if event["prompt_tokens"] is not None
    ]
    assert max(sizes) <= config.hard_limit.max_tokens
    paged = events_of(planned, "cognition.paged")
    assert paged
    assert {event["why"] for event in paged} == {"soft_limit"}
    limit = config.paging_limit.max_tokens
    assert all(event["tokens_after"] <= limit < event["tokens_before"] for event in paged)


def test_an_action_out_of_place_is_a_fault_of_the_log(planned: Prism) -> None:
    """What the model asked for while thinking is in the table of faults, and was not done."""
    refused = events_of(planned, "cognition.refused")
    assert refused
    assert {(event["type"], event["state"]) for event in refused} == {("storage_save", "thinking")}
    assert "storage_save" in planned("log", "faults", "story").out

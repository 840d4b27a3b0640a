"""The example of the documentation: an agent that plans a story over thirty cycles."""

import json
import sys
from pathlib import Path

import pytest

from prism.programs.thinking import Config, Memory
from prism.testing import FakeOllama
from tests.kit.commands import Prism

FOLDER = Path(__file__).parents[3] / "docs" / "cognition"
CYCLES = 30
WHOLE_PLAN = {"setting", "outline", "character_Alba", "character_Teo", "character_Inspector"} | {
    f"chapter_{number}" for number in range(1, 7)
}


def test_the_story_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the command of the page: every piece of the plan is there, though the agent pages."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import author

    monkeypatch.delitem(sys.modules, "author")
    prism = Prism(tmp_path)
    (tmp_path / "config.json").write_bytes((FOLDER / "config.json").read_bytes())
    with FakeOllama(write=author.write) as server:
        model = ("--model", f"ollama:llama3.2@{server.url}", "--rounds", CYCLES, "--out", "story")
        ran = prism("run", "config.json", "--memory", "memory.json", *model)
    assert ran.status == 0, ran.err

    with Memory.read(tmp_path / "memory.json") as memory:
        assert memory.cycle == CYCLES
        assert {*memory.working, *memory.storage} == WHOLE_PLAN
        assert len(memory.thoughts) == 4
    lines = (tmp_path / "story" / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    config = Config.load(tmp_path / "config.json")
    sizes = [event.get("prompt_tokens") or 0 for event in events]
    assert 0 < max(sizes) <= config.hard_limit.max_tokens
    paged = [event for event in events if event["event"] == "cognition.paged"]
    limit = config.paging_limit.max_tokens
    assert paged
    assert all(event["tokens_after"] <= limit < event["tokens_before"] for event in paged)
    # an action out of place is in the table of faults
    assert "storage_save" in prism("log", "faults", "story").out

"""An agent that keeps ten facts, loses them, and answers a question about the third by searching.

Its model sees nothing but its prompts, through a server with a window, and is as sloppy as small
models are.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from prism.llm import Model
from prism.programs.thinking import (
    CognitiveAgent,
    Config,
    Cycle,
    Limit,
    Memory,
    ThinkingLog,
    action,
)
from prism.testing import FakeOllama

FOLDER = Path(__file__).parents[3] / "docs" / "cognition"


@pytest.fixture
def librarian(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module that plays the model."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import librarian

    yield librarian
    del sys.modules["librarian"]


class Keeper(CognitiveAgent):
    """An agent that answers aloud."""

    said: Sequence[str] = ()

    @action
    def answer(self, text: str) -> None:
        """Answer the question."""
        self.said = (*self.said, text)


CONFIG = Config(
    goal="Keep what you are told, and answer questions.",
    hard_limit=Limit(max_tokens=1400),
    paging_limit=Limit(max_tokens=1000),
    thinking_log=ThinkingLog(max_entries=3),
)


async def live(librarian: Any, memory: Memory) -> tuple[Keeper, list[Cycle], FakeOllama]:
    """Tell an agent ten facts, and then ask it about the third."""
    cycles: list[Cycle] = []
    with FakeOllama(window=512, write=lambda prompt, _schema: librarian.write(prompt)) as server:
        # the window that the server is asked for follows from the hard limit
        small = Model("llama3.2", hosts=(server.url,))
        agent = Keeper(CONFIG, memory, small)
        for _name, fact in librarian.FACTS:
            agent.tell(fact, instead=True)
            cycles += await agent.run(2)
        agent.tell(librarian.QUESTION, instead=True)
        while not agent.said and len(cycles) < 40:
            cycles.append(await agent.cycle())

    return agent, cycles, server


async def test_a_fact_that_was_lost_is_found_by_searching(librarian: Any) -> None:
    """Ten facts are stored, none is in working memory, and the third is found and told."""
    memory = Memory.in_memory()
    agent, cycles, server = await live(librarian, memory)

    assert len(memory.storage) == 10
    assert not any("Ines" in str(value) for value in memory.working.values())
    assert agent.said == (librarian.FACTS[2][1],)
    done = [(each.action.type, each.action.outcome) for each in cycles[20:] if each.action]
    assert done == [
        ("storage_load", "missing"),
        ("storage_search", "done"),
        ("answer", "done"),
    ]
    # the prompt after the wrong name said so, and named what there is
    assert any(
        "there is no 'bakery_owner' in storage; storage has bakery" in asked.prompt
        for asked in server.questions
    )
    assert server.cuts == 0

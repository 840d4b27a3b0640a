"""A loop of one's own stays one's own."""

import asyncio
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from prism.testing import FakeOllama

Load = Callable[..., ModuleType]


@pytest.fixture
def guide(load: Load) -> ModuleType:
    """Import the guide's code."""
    return load("asyncio")


class Waiting:
    """A reasoner that answers when it is released."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked = asyncio.Event()
        self.let = asyncio.Event()

    async def decide(
        self, agent: Any, current_state: Any, trigger: str, options: list[Any], context: Any = None
    ) -> Any:
        self.asked.set()
        await self.let.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_agents_are_asked_concurrently(guide: ModuleType) -> None:
    """Many agents are decided concurrently in one loop, and no task is left over."""
    walkers = [guide.Walker(str(number), patience=number) for number in range(100)]
    tasks = asyncio.all_tasks()
    async with asyncio.timeout(5):
        await guide.street(walkers, [50])
    assert [walker.state for walker in walkers] == [guide.Mood.GONE] * 50 + [guide.Mood.ANGRY] * 50
    assert asyncio.all_tasks() == tasks


async def test_only_ambiguous_events_are_asked_about(guide: ModuleType) -> None:
    """Without an ambiguous event no reasoner is asked, and the coroutine does not wait."""
    walker = guide.Walker("Ada", patience=3)
    silent = Waiting(guide.Mood.GONE)
    assert await guide.chart.afire(walker, "bumped", 1, reasoner=silent) is guide.Mood.ANGRY
    assert await guide.chart.afire(walker, "apology", reasoner=silent) is guide.Mood.CALM
    assert await guide.chart.afire(walker, "nonsense", reasoner=silent) is None
    assert not silent.asked.is_set()


async def test_a_model_takes_the_coroutines_place(guide: ModuleType) -> None:
    """prism's Reasoner over a real server drives the same agents in the same loop."""
    from prism.llm import OllamaChatClient
    from prism.statechart import Reasoner

    with FakeOllama(choose=lambda asked: "gone") as server:
        client = OllamaChatClient(server.host, "llama3.2")
        try:
            walker = guide.Walker("Ada", patience=3)
            await guide.chart.afire(walker, "bumped", 5, reasoner=Reasoner(client))
        finally:
            await client.close()
    assert walker.state is guide.Mood.GONE

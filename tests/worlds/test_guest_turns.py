"""Turns of objects that await what is not the run's."""

import asyncio
from typing import Any

import pytest

from prism.worlds import Run, World


class Waiter:
    """An object that awaits a plan of things, each of which takes some turns of the loop."""

    def __init__(self, agent_id: str, turns: int, told: list[str]) -> None:
        self.agent_id = agent_id
        self.turns = turns
        self.told = told

    async def act(self, world: World[Any]) -> None:
        """Wait for a while, run out of time, and wait for somebody else's task."""
        self.told.append(f"{self.agent_id} begins")
        for _ in range(self.turns):
            await asyncio.sleep(0)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()

        await asyncio.ensure_future(asyncio.sleep(0))
        self.told.append(f"{self.agent_id} ends")

    def snapshot(self) -> Any:
        """Keep nothing."""

    def restore(self, data: Any) -> None:
        """Take nothing back."""


class Hall(World[Any]):
    """A world of those who wait."""

    rounds = 2


def test_turns_follow_each_other_however_long_they_wait() -> None:
    """Nobody begins before the one before has ended, whoever waits longer."""
    told: list[str] = []
    Run(Hall(), [Waiter("a", 5, told), Waiter("b", 1, told)]).run()
    assert told == ["a begins", "a ends", "b begins", "b ends"] * 2


class Broken(Waiter):
    """An object whose turn fails while it waits."""

    async def act(self, world: World[Any]) -> None:
        """Fail after a while."""
        try:
            await asyncio.sleep(0)
            raise ValueError("no tea")
        finally:
            self.told.append("closed")


class Endless(Waiter):
    """An object whose turn never ends."""

    async def act(self, world: World[Any]) -> None:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            self.told.append("closed")


def test_a_failure_names_whose_turn_it_was() -> None:
    """An exception is raised as it is, with a note of agent, round and tick."""
    told: list[str] = []
    with pytest.raises(ValueError, match="no tea") as caught:
        Run(Hall(), [Broken("a", 0, told)]).run()
    assert "in the step of <Broken a in present>, round 1, tick 1" in caught.value.__notes__
    assert told == ["closed"]


async def test_a_run_that_is_cancelled_leaves_no_turn_behind() -> None:
    """A turn that waits when its run is cancelled is cancelled, too."""
    told: list[str] = []
    run = asyncio.ensure_future(Run(Hall(), [Endless("a", 0, told)]).arun())
    for _ in range(5):
        await asyncio.sleep(0)

    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert told == ["closed"]

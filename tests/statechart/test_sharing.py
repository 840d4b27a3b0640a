"""Asking once what several want to know at the same time."""

import asyncio
from typing import Any

import pytest

from prism.statechart.sharing import Outcome, SharedCalls


class Asking:
    """Something to ask: counts its calls, and answers each with its number when told to."""

    def __init__(self) -> None:
        self.calls = self.let_go = 0
        self.may_answer = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.calls += 1
        number = self.calls
        try:
            await self.may_answer.wait()
        finally:
            for _ in range(9):  # as closing a connection takes its time
                await asyncio.sleep(0)
            self.let_go += 1
        if self.error is not None:
            raise self.error
        return number


async def start(shared: SharedCalls[int], asking: Asking, *keys: str) -> list[asyncio.Task[int]]:
    """Ask about every key at once, and go on when all of them wait."""
    tasks = [asyncio.create_task(shared.get(key, asking)) for key in keys]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_the_same_question_is_asked_once() -> None:
    """All who ask the same at the same time get the one answer, and others their own."""
    shared, asking = SharedCalls[int](), Asking()
    tasks = await start(shared, asking, "a", "b", "a", "a")
    asking.may_answer.set()
    assert await asyncio.gather(*tasks) == [1, 2, 1, 1]


async def test_a_question_is_shared_until_it_is_answered() -> None:
    """Once a question is answered it is asked anew."""
    shared, asking = SharedCalls[int](), Asking()
    (task,) = await start(shared, asking, "a")
    asking.may_answer.set()
    assert await task == 1
    assert await shared.get("a", asking) == 2


def test_an_outcome_is_claimed_once() -> None:
    """Of all who receive an outcome only the first bears its cost."""
    outcome = Outcome(result=1)
    assert [outcome.claim() for _ in range(3)] == [True, False, False]


async def test_a_failure_reaches_all_who_wait() -> None:
    """An exception is raised for everyone who waits, and is not kept for those who come later."""
    shared, asking = SharedCalls[int](), Asking()
    asking.error = ConnectionError("nobody there")
    tasks = await start(shared, asking, "a", "a")
    asking.may_answer.set()
    assert [str(error) for error in await asyncio.gather(*tasks, return_exceptions=True)] == ["nobody there"] * 2
    asking.error = None
    assert await shared.get("a", asking) == 2


@pytest.mark.parametrize("leaver", [0, 1])
async def test_one_who_leaves_does_not_take_the_answer_along(leaver: int) -> None:
    """Cancelling one of two, whether the first or the second, leaves the other its answer."""
    shared, asking = SharedCalls[int](), Asking()
    tasks = await start(shared, asking, "a", "a")
    tasks[leaver].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[leaver]
    asking.may_answer.set()
    assert await tasks[1 - leaver] == 1
    assert (asking.calls, asking.let_go) == (1, 1)


async def test_the_last_who_leaves_ends_the_call() -> None:
    """When all are cancelled the call is, and has let go of what it holds before they are."""
    shared, asking = SharedCalls[int](), Asking()
    tasks = await start(shared, asking, "a", "a")
    for task in tasks:
        task.cancel()
    results: list[Any] = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    assert (asking.calls, asking.let_go) == (1, 1)


async def test_one_who_comes_while_a_call_ends_asks_anew() -> None:
    """A question that everybody has given up is put again for the next who asks it."""
    shared, asking = SharedCalls[int](), Asking()
    (given_up,) = await start(shared, asking, "a")
    given_up.cancel()
    (late,) = await start(shared, asking, "a")
    asking.may_answer.set()
    assert await late == 2
    assert given_up.cancelled()


async def test_nothing_is_kept() -> None:
    """After answers, failures and cancellations no call is remembered."""
    shared, asking = SharedCalls[int](), Asking()
    tasks = await start(shared, asking, "a", "b", "b")
    tasks[0].cancel()
    asking.may_answer.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    asking.error = ConnectionError("nobody there")
    await asyncio.gather(*(await start(shared, asking, "c", "c")), return_exceptions=True)
    assert shared.__dict__ == SharedCalls[int]().__dict__

"""Putting equal requests once: what several wait for at the same time is one call."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

import pytest

from prism.errors import LLMError
from prism.reasoner._slots import SingleFlight
from prism.reasoner._spending import Outcome
from prism.statechart import Cost


class Asking:
    """Something to ask: counts its calls, and answers each with its number when told to."""

    def __init__(self) -> None:
        self.calls = self.let_go = 0
        self.may_answer = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, cost: Cost) -> int:
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


async def start(
    flights: SingleFlight[int], asking: Callable[[Cost], Coroutine[Any, Any, int]], *keys: str
) -> list[asyncio.Task[Outcome[int]]]:
    """Ask about every key at once, and go on when all of them wait."""
    tasks = [asyncio.create_task(flights.do(key, asking)) for key in keys]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_a_call_that_is_being_cancelled_takes_no_new_waiter() -> None:
    """A question that everybody has given up is put again for the next who asks it."""
    flights, asking = SingleFlight[int](), Asking()
    (given_up,) = await start(flights, asking, "a")
    given_up.cancel()
    (late,) = await start(flights, asking, "a")
    asking.may_answer.set()
    assert (await late).result == 2
    assert given_up.cancelled()


async def gives_up(_cost: Cost) -> int:
    """Wait for something of its own that is cancelled, as a client may whose connection is."""
    inner = asyncio.create_task(asyncio.Event().wait())
    inner.cancel()
    await inner
    return 0


async def cancels_itself(_cost: Cost) -> int:
    """Be cancelled by nobody else."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return 0


@pytest.mark.parametrize("call", [gives_up, cancels_itself])
async def test_a_call_that_cancels_itself_has_failed(
    call: Callable[[Cost], Coroutine[Any, Any, int]],
) -> None:
    """A call that cancels itself is a failure for all who wait, and cancels none of them."""
    flights = SingleFlight[int]()
    tasks = [asyncio.create_task(flights.do("a", call)) for _ in range(2)]
    async with asyncio.timeout(10):
        one, other = [await task for task in tasks]
    assert isinstance(one.error, LLMError)
    assert str(one.error) == "the client cancelled its own call"
    assert other is one


def test_a_call_of_a_closed_loop_is_made_anew() -> None:
    """A loop that was closed during a call keeps no later one from making the same."""
    flights, numbers = SingleFlight[int](), count(1)

    async def hangs(_cost: Cost) -> int:
        next(numbers)
        await asyncio.Event().wait()
        return 0

    async def answers(_cost: Cost) -> int:
        return next(numbers)

    left = asyncio.new_event_loop()
    task = left.create_task(flights.do("a", hangs))
    left.run_until_complete(asyncio.sleep(0))
    left.run_until_complete(asyncio.sleep(0))
    left.close()
    assert [asyncio.run(flights.do("a", answers)).result for _ in range(2)] == [2, 3]
    assert not task.done()


def test_each_event_loop_makes_its_own_call() -> None:
    """Two event loops that ask the same at once make a call each, and both get their answers."""
    flights = SingleFlight[str]()
    is_asking, may_answer = threading.Event(), threading.Event()
    answers: list[Outcome[str]] = []

    async def first(_cost: Cost) -> str:
        is_asking.set()
        await asyncio.to_thread(may_answer.wait, 10)
        return "first"

    async def second(_cost: Cost) -> str:
        return "second"

    thread = threading.Thread(target=lambda: answers.append(asyncio.run(flights.do("a", first))))
    thread.start()
    assert is_asking.wait(10)
    answers.append(asyncio.run(flights.do("a", second)))
    may_answer.set()
    thread.join(10)
    assert [outcome.result for outcome in answers] == ["second", "first"]

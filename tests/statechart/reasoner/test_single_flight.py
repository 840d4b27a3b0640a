"""Asking once what several want to know at the same time."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

import pytest

from prism.errors import LLMError
from prism.statechart.reasoner._single_flight import Outcome, SharedCalls


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


async def start(
    shared: SharedCalls[int], asking: Callable[[], Coroutine[Any, Any, int]], *keys: str
) -> list[asyncio.Task[Outcome[int]]]:
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
    assert [outcome.result for outcome in await asyncio.gather(*tasks)] == [1, 2, 1, 1]


async def test_a_question_is_shared_until_it_is_answered() -> None:
    """Once a question is answered it is asked anew."""
    shared, asking = SharedCalls[int](), Asking()
    (task,) = await start(shared, asking, "a")
    asking.may_answer.set()
    assert await task == Outcome(1)
    assert await shared.get("a", asking) == Outcome(2)


def test_an_outcome_is_claimed_once() -> None:
    """Of all who receive an outcome only the first bears its cost."""
    outcome = Outcome(result=1)
    assert [outcome.claim() for _ in range(3)] == [True, False, False]


async def test_a_failure_reaches_all_who_wait() -> None:
    """An exception is the outcome for everyone who waits, and is not kept for those who come later."""
    shared, asking = SharedCalls[int](), Asking()
    asking.error = ConnectionError("nobody there")
    tasks = await start(shared, asking, "a", "a")
    asking.may_answer.set()
    assert [await task for task in tasks] == [Outcome(error=asking.error)] * 2
    asking.error = None
    assert await shared.get("a", asking) == Outcome(2)


@pytest.mark.parametrize("leaver", [0, 1])
async def test_one_who_leaves_does_not_take_the_answer_along(leaver: int) -> None:
    """Cancelling one of two, whether the first or the second, leaves the other its answer."""
    shared, asking = SharedCalls[int](), Asking()
    tasks = await start(shared, asking, "a", "a")
    tasks[leaver].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[leaver]
    asking.may_answer.set()
    assert await tasks[1 - leaver] == Outcome(1)
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
    assert await late == Outcome(2)
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


async def gives_up() -> int:
    """Wait for something of its own that is cancelled, as a client may whose connection is."""
    inner = asyncio.create_task(asyncio.sleep(3600))
    inner.cancel()
    await inner
    return 0


async def cancels_itself() -> int:
    """Be cancelled by nobody else."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return 0


@pytest.mark.parametrize("call", [gives_up, cancels_itself])
async def test_a_call_that_gives_itself_up_has_failed(
    call: Callable[[], Coroutine[Any, Any, int]],
) -> None:
    """A call that is cancelled though others wait for it is a failure that all of them share, and cancels nobody."""
    shared = SharedCalls[int]()
    tasks = [asyncio.create_task(shared.get("a", call)) for _ in range(2)]
    async with asyncio.timeout(10):
        one, other = [await task for task in tasks]
    assert isinstance(one.error, LLMError)
    assert str(one.error) == "the client gave its call up by itself"
    assert other is one


async def test_a_time_out_around_a_call_stays_one() -> None:
    """Whoever waits with a limit of its own gets its TimeoutError, and the call is over by then."""
    shared, asking = SharedCalls[int](), Asking()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await shared.get("a", asking)
    assert asking.let_go == 1


def test_what_a_loop_has_left_behind_is_asked_anew() -> None:
    """A loop that was closed in the middle of a call keeps nobody in a later one from asking the same."""
    shared, numbers = SharedCalls[int](), count(1)

    async def hangs() -> int:
        next(numbers)
        await asyncio.Event().wait()
        return 0

    async def answers() -> int:
        return next(numbers)

    left = asyncio.new_event_loop()
    task = left.create_task(shared.get("a", hangs))
    left.run_until_complete(asyncio.sleep(0.01))
    left.close()
    assert [asyncio.run(shared.get("a", answers)).result for _ in range(2)] == [2, 3]
    assert not task.done()


def test_two_loops_share_no_call() -> None:
    """While one event loop asks, another that asks the same makes a call of its own, and both get their answers."""
    shared = SharedCalls[str]()
    is_asking, may_answer = threading.Event(), threading.Event()
    answers: list[Outcome[str]] = []

    async def first() -> str:
        is_asking.set()
        while not may_answer.is_set():
            await asyncio.sleep(0.001)
        return "first"

    async def second() -> str:
        return "second"

    thread = threading.Thread(target=lambda: answers.append(asyncio.run(shared.get("a", first))))
    thread.start()
    assert is_asking.wait(10)
    answers.append(asyncio.run(shared.get("a", second)))
    may_answer.set()
    thread.join(10)
    assert [outcome.result for outcome in answers] == ["second", "first"]

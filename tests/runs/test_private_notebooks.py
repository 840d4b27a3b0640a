"""Running a coroutine to its end, in a program or in a notebook, whose cells have an event loop.

No public door leads to what becomes of the caller's context, of faults and of interruptions.
"""

import asyncio
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from threading import Event, current_thread, main_thread
from typing import Any

import pytest

from prism import Run
from prism.runs.running import run_to_end
from tests.kit.waiting import MOST_SECONDS, until

_SAID: ContextVar[str] = ContextVar("said", default="nothing")


async def test_a_run_is_begun_within_an_event_loop() -> None:
    """A cell of a notebook, which runs in an event loop, may begin a run."""
    seen: list[int] = []
    results = Run("rumour", 10, rounds=3).run(lambda ended: seen.append(ended.number))
    assert seen == [1, 2, 3]
    assert len(results.rounds) == 3


async def test_what_the_caller_bound_and_what_fails_come_through() -> None:
    """The thread has the caller's context, and its exceptions are the caller's."""
    _SAID.set("hello")

    async def fail() -> None:
        raise ValueError(_SAID.get())

    with pytest.raises(ValueError, match="hello"):
        run_to_end(fail())


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have an interruption raise KeyboardInterrupt, also where a shell had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the waiting thread cancels what it waits for."""
    ended: list[str] = []
    is_waiting, result = Event(), Future.result

    def noted(future: Future[Any], timeout: float | None = None) -> Any:
        if current_thread() is main_thread():
            is_waiting.set()
        return result(future, timeout)

    monkeypatch.setattr(Future, "result", noted)

    async def forever() -> None:
        try:
            await until(is_waiting.is_set)
            for _ in range(10):
                # one that comes just before the thread begins to wait is seen only when it wakes
                press_ctrl_c()
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.Event().wait(), MOST_SECONDS / 10)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def cell() -> None:
        run_to_end(forever())

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        loop.close()
    assert ended == ["cancelled"]


def press_ctrl_c() -> None:
    """Interrupt the main thread, as a terminal does."""
    signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

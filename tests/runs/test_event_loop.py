"""Runs in an event loop of their own, also where one is running, as in a notebook."""

import asyncio
import signal
from collections.abc import Iterator
from contextvars import ContextVar
from threading import current_thread, main_thread

import pytest

from prism.runs import begin
from prism.runs._running import run_to_end
from prism.worlds import WorldRun
from prism.worlds.examples.rumour import Rumour

_SAID: ContextVar[str] = ContextVar("said", default="nothing")


def test_without_a_loop_nothing_needs_a_thread() -> None:
    """Outside of event loops the coroutine runs in the calling thread."""

    async def where() -> bool:
        return current_thread() is main_thread()

    assert run_to_end(where())


async def test_a_run_is_begun_within_an_event_loop() -> None:
    """A cell of a notebook, which runs in an event loop, may begin a run."""
    seen: list[int] = []
    outcome = begin(
        WorldRun(Rumour, 10, rounds=3), on_round=lambda summary: seen.append(summary.number)
    )
    assert seen == [1, 2, 3]
    assert len(outcome.results.rounds) == 3


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
def test_an_interruption_ends_the_run() -> None:
    """Ctrl-C in the waiting thread cancels what it waits for."""
    ended: list[str] = []

    def interrupt() -> None:
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

    async def forever() -> None:
        asyncio.get_running_loop().call_later(0.05, interrupt)
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 10)
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

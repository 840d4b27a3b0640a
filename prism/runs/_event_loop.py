"""An event loop of its own for a run, also where one is running already."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

_Running = tuple[asyncio.AbstractEventLoop, "asyncio.Task[Any] | None"]


def run_to_end(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end, and return its result.

    A notebook runs its cells in an event loop, and no other may run in the same thread: there the
    coroutine gets a thread of its own, for which this one waits.
    """
    if _is_looping():
        return _run_apart(main)
    return asyncio.run(main)


def _is_looping() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_apart(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    running: Future[_Running] = Future()

    async def noted() -> ResultT:
        running.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        return await main

    with ThreadPoolExecutor(1, "prism-run") as pool:
        done = pool.submit(copy_context().run, asyncio.run, noted())
        try:
            return done.result()
        except KeyboardInterrupt:
            # leaving the block waits for the thread, which has not heard of the interruption
            if not done.done():
                loop, task = running.result()
                if task is not None:
                    loop.call_soon_threadsafe(task.cancel)
            raise

"""Running a coroutine to its end, in a program or in a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

_Running = tuple[asyncio.AbstractEventLoop, "asyncio.Task[Any] | None"]


def run_to_end(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end, and return its result.

    A notebook runs its cells in an event loop, and no other loop may run in the same thread. There,
    the coroutine gets its own thread, for which this one waits.
    """
    if _is_looping():
        return _run_apart(main)

    results: list[ResultT] = []

    async def keep() -> None:
        results.append(await main)

    # asyncio formats the result of its main coroutine, which takes long for many rounds
    asyncio.run(keep())
    return results[0]


def _is_looping() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_apart(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine in a thread, which is not the one that receives an interruption."""
    running: Future[_Running] = Future()

    async def noted() -> ResultT:
        running.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        return await main

    with ThreadPoolExecutor(1, "prism-run") as pool:
        done = pool.submit(copy_context().run, asyncio.run, noted())
        try:
            return done.result()
        except KeyboardInterrupt:
            loop, task = running.result()
            if task is not None and not done.done():
                loop.call_soon_threadsafe(task.cancel)
            wait([done])
            raise

"""Running a coroutine to its end, in a program or in a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


def run_to_end(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end, and return its result.

    A notebook runs its cells in an event loop, and no other loop may run in the same thread. There,
    the coroutine gets its own thread, for which this one waits.
    """
    tasks: list[asyncio.Task[ResultT]] = []

    async def keep() -> None:
        tasks.append(asyncio.ensure_future(main))
        # asyncio formats the result of its main coroutine, which takes long for many rounds
        await tasks[0]

    try:
        is_in_loop = asyncio.get_running_loop().is_running()
    except RuntimeError:
        is_in_loop = False
    # outside the handler, so that a fault of the run has no other error before it
    if not is_in_loop:
        asyncio.run(keep())
        return tasks[0].result()

    with ThreadPoolExecutor(1, "prism-run") as pool:
        done = pool.submit(copy_context().run, asyncio.run, keep())
        try:
            done.result()
        except KeyboardInterrupt:
            # only this thread receives an interruption
            if tasks and not done.done():
                tasks[0].get_loop().call_soon_threadsafe(tasks[0].cancel)
            wait([done])
            raise
    return tasks[0].result()

"""Compiled code in a thread of its own, so that Ctrl-C reaches a step that would never end.

Python hears of Ctrl-C in its main thread, between two of its own instructions. While that thread
waits, compiled code looks in its loops for a number that tells it to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

_SECONDS_BETWEEN = 0.5


class Apart:
    """Calls compiled code in a thread.

    Args:
        interrupt: Tells the code to end.
    """

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._pool = ThreadPoolExecutor(1, "prism-columns")

    def call(self, compiled: Callable[..., int], *given: int) -> int:
        """Call compiled code, and wait for it."""
        running = self._pool.submit(compiled, *given)
        try:
            # a wait without an end is never left in a thread that is not the main one
            while not wait([running], _SECONDS_BETWEEN).done:
                pass
        except BaseException:
            self._end(running)
            raise
        return running.result()

    async def acall(self, compiled: Callable[..., int], *given: int) -> int:
        """Call compiled code, and wait for it in the event loop; the async twin of `call`."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        running = self._pool.submit(compiled, *given)
        running.add_done_callback(lambda _: loop.call_soon_threadsafe(done.set))
        try:
            await done.wait()
        except BaseException:
            self._end(running)
            raise
        return running.result()

    def _end(self, running: Future[int]) -> None:
        self._interrupt()
        # the columns must not change behind the back of whoever looks at them now
        running.exception()

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()

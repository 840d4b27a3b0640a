"""Compiled code in a thread of its own, so that Ctrl-C reaches a step that would never end.

Python hears of Ctrl-C in its main thread, between two of its own instructions. While that thread
waits, compiled code looks in its loops for a number that tells it to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from time import sleep
from typing import Any

_SECONDS_BETWEEN = 0.2
_SECONDS_TO_END = 0.001


class Apart:
    """Calls compiled code in a thread.

    Args:
        interrupt: Tells the code to end.
    """

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        # a queue and a lock, since futures cost more than a tick of a few agents
        self._calls: SimpleQueue[Any] = SimpleQueue()
        self._running = Lock()
        self._running.acquire()
        self._ended: Any = None
        self._thread = Thread(target=self._serve, name="prism-columns", daemon=True)
        self._thread.start()

    def call(self, compiled: Callable[..., int], *given: int) -> int:
        """Call compiled code, and wait for it.

        Raises:
            CancelledError: If the run is cancelled meanwhile.
        """
        self._ended = None
        self._calls.put((compiled, given))
        try:
            self._wait()
        except BaseException:
            self._interrupt()
            # the columns must not change behind the back of whoever looks at them now
            while self._ended is None:
                sleep(_SECONDS_TO_END)
            raise
        if isinstance(self._ended, BaseException):
            raise self._ended
        found: int = self._ended
        return found

    def _wait(self) -> None:
        while not self._running.acquire(timeout=_SECONDS_BETWEEN):
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            compiled, given = call
            try:
                self._ended = compiled(*given)
            except BaseException as error:
                self._ended = error
            self._running.release()

    def close(self) -> None:
        """End the thread."""
        self._calls.put(None)
        self._thread.join()

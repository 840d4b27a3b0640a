"""Turns of objects of other classes that await what is not the run's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from prism.worlds._guest import Guest

Running = Coroutine[Any, Any, Any]
Advance = Callable[[Any, Running, Any], None]


class Elsewhere:
    """The turn of a guest that awaits something of the event loop, such as a process.

    The run waits for it before anybody else goes on, so that what is told and changed does not
    depend on how long it takes.

    Attributes:
        is_open: Whether there is one.
    """

    def __init__(self) -> None:
        self.is_open: bool = False
        self._turn: tuple[Any, Running, Any] | None = None

    def takes(self, owner: Any, running: Running, wanted: Any) -> bool:
        """Take note of what a turn awaits; return whether it is for this class to wait for it."""
        # asyncio.sleep(0) awaits None
        if not isinstance(owner, Guest) or not (wanted is None or asyncio.isfuture(wanted)):
            return False

        self._turn, self.is_open = (owner, running, wanted), True
        return True

    async def settle(self, advance: Advance) -> None:
        """Wait, and let the turn go on, until it ends or waits for the run."""
        while self._turn is not None:
            owner, running, wanted = self._turn
            try:
                await (asyncio.sleep(0) if wanted is None else asyncio.wait([wanted]))
            except asyncio.CancelledError as error:
                # for asyncio.timeout inside of the turn, or for the run: the turn knows
                self._turn, running = None, cast(Running, _Cancelled(running, error))
            else:
                self._turn = None

            advance(owner, running, None)

        self.is_open = False

    def close(self) -> None:
        """Close the turn, if there is one."""
        if self._turn is not None:
            self._turn[1].close()
        self._turn, self.is_open = None, False


class _Cancelled:
    """A turn into which a cancellation is thrown when it goes on."""

    def __init__(self, running: Running, error: BaseException) -> None:
        self._running = running
        self._error: BaseException | None = error

    def send(self, value: Any) -> Any:
        error, self._error = self._error, None
        return self._running.send(value) if error is None else self._running.throw(error)

    def close(self) -> None:
        self._running.close()

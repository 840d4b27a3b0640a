"""Asking once what several want to know at the same time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from prism.errors import LLMError

if TYPE_CHECKING:
    from asyncio import Task

ResultT = TypeVar("ResultT")


@dataclass(slots=True)
class Outcome(Generic[ResultT]):
    """What came of a call that several waited for: a result or the exception that was raised.

    Args:
        result: The result, if there is one.
        error: What was raised, if something was.
    """

    result: ResultT | None = None
    error: Exception | None = None
    _is_claimed: bool = False

    def claim(self) -> bool:
        """Return whether nobody has received it before: what a call has cost stands with the first who does."""
        is_first, self._is_claimed = not self._is_claimed, True
        return is_first


class _Call(Generic[ResultT]):
    """A call under way, and the number of those who wait for it."""

    __slots__ = ("task", "waiting")

    def __init__(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> None:
        # costs a third of importing the engine, and is loaded already where this runs
        import asyncio

        self.waiting = 0
        self.task: Task[Outcome[ResultT]] = asyncio.create_task(self._outcome(make))

    async def _outcome(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> Outcome[ResultT]:
        import asyncio

        try:
            return Outcome(await make())
        except Exception as error:
            return Outcome(error=error)
        except asyncio.CancelledError as error:
            # who still waits has not cancelled it: the client did, from within
            failure = LLMError("the client gave its call up by itself")
            failure.__cause__ = error
            return Outcome(error=failure)


class SharedCalls(Generic[ResultT]):
    """Calls under way, by what they ask; whoever asks the same meanwhile waits for the same outcome.

    A call ends with the last of those who wait for it: cancelling one of two leaves it running,
    cancelling both cancels it, and waits until it has let go of its connection. A call that is
    cancelled in any other way, such as by the client itself, has failed. What another event loop
    asks is not shared, nor what one has left behind.
    """

    def __init__(self) -> None:
        self._under_way: dict[Hashable, _Call[ResultT]] = {}

    async def get(
        self, key: Hashable, make: Callable[[], Coroutine[Any, Any, ResultT]]
    ) -> Outcome[ResultT]:
        """Get what comes of a call.

        Args:
            key: What is asked.
            make: Starts asking, if nobody does yet.
        """
        import asyncio

        call = self._under_way.get(key)
        if (
            call is None
            or call.task.done()
            or call.task.get_loop() is not asyncio.get_running_loop()
        ):
            call = self._under_way[key] = _Call(make)

        call.waiting += 1

        try:
            return await asyncio.shield(call.task)
        finally:
            call.waiting -= 1
            if not call.waiting:
                await self._end(key, call)

    async def _end(self, key: Hashable, call: _Call[ResultT]) -> None:
        if self._under_way.get(key) is call:
            self._under_way.pop(key, None)
        if call.task.done() or call.task.get_loop().is_closed():
            return

        import asyncio

        call.task.cancel()
        await asyncio.wait({call.task})

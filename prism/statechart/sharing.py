"""Asking once what several want to know at the same time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from asyncio import Task

ResultT = TypeVar("ResultT")


class SharedCalls(Generic[ResultT]):
    """Calls under way, by what they ask; whoever asks the same meanwhile waits for the same answer.

    A call ends with the last of those who wait for it: cancelling one of two leaves it running, cancelling
    both cancels it, and waits until it has let go of its connection.
    """

    def __init__(self) -> None:
        self._under_way: dict[Hashable, Task[ResultT]] = {}
        self._waiting: dict[Task[ResultT], int] = {}

    def __contains__(self, key: Hashable) -> bool:
        """Tell whether somebody is asking this now."""
        task = self._under_way.get(key)
        return task is not None and not task.done()

    async def get(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """Get the answer to a question.

        Args:
            key: What is asked.
            make: Starts asking, if nobody does yet.
        """
        import asyncio

        task = self._under_way.get(key)
        if task is None or task.done():
            task = self._under_way[key] = asyncio.create_task(make())
            self._waiting[task] = 0
        self._waiting[task] += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting[task] -= 1
            if not self._waiting[task]:
                del self._waiting[task]
                if self._under_way.get(key) is task:
                    del self._under_way[key]
                if not task.done():
                    task.cancel()
                    await asyncio.wait({task})

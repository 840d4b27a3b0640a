"""Asking once what several want to know at the same time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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
        """Tell whether nobody has received it before: what a call has cost stands with the first who does."""
        is_first, self._is_claimed = not self._is_claimed, True
        return is_first


class SharedCalls(Generic[ResultT]):
    """Calls under way, by what they ask; whoever asks the same meanwhile waits for the same answer.

    A call ends with the last of those who wait for it: cancelling one of two leaves it running, cancelling
    both cancels it, and waits until it has let go of its connection.
    """

    def __init__(self) -> None:
        self._under_way: dict[Hashable, Task[ResultT]] = {}
        self._waiting: dict[Task[ResultT], int] = {}

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

"""Work in threads that an event loop waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from prism.telemetry.loggers import describe

_OutcomeT = TypeVar("_OutcomeT")


def settle(outcome: Future[_OutcomeT], work: Callable[[], _OutcomeT]) -> None:
    """Do some work, and note what came of it, whatever that is."""
    try:
        outcome.set_result(work())
    except StopIteration as error:  # which no coroutine can pass on
        outcome.set_exception(RuntimeError(describe(error)))
    except BaseException as error:
        outcome.set_exception(error)


async def outcome_of(work: Future[_OutcomeT]) -> _OutcomeT:
    """Wait for what a thread does, and return what came of it."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def tell(_work: object) -> None:
        # nobody waits in a loop that is closed
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    # not asyncio.wrap_future, which shows a traceback where Ctrl-C cancels it at a wrong moment
    work.add_done_callback(tell)
    await ended.wait()

    return work.result()

"""Loading a model on several servers before the first question."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from math import inf
from time import monotonic
from typing import Any

from prism.errors import LLMError, TimedOutError
from prism.llm._faults import is_retryable
from prism.llm._host import ModelHost

_SHORTEST_GRACE_SECONDS = 1.0

Load = asyncio.Task[LLMError | None]


async def load_models(
    hosts: Sequence[ModelHost], limit: float | None
) -> dict[str, LLMError | None]:
    """Load the model on every server at the same time; see `prism.llm.OllamaPool.warm_up`."""
    loads = [asyncio.create_task(_load(host)) for host in hosts]
    try:
        await _wait_for_one(loads, inf if limit is None else limit)
        ended = zip(hosts, loads, strict=True)
        return {host.address: load.result() if load.done() else _late(host) for host, load in ended}
    finally:
        await cancel(loads)


async def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until their connections are closed."""
    for task in tasks:
        task.cancel()

    await asyncio.gather(*tasks, return_exceptions=True)


async def _load(host: ModelHost) -> LLMError | None:
    """Load the model, after a quick look for a server at all; return what went wrong."""
    try:
        await host.kind()
    except LLMError as error:
        if is_retryable(error):
            return error

    try:
        await host.load()
    except LLMError as error:
        return error

    return None


async def _wait_for_one(loads: Collection[Load], limit: float) -> None:
    """Wait until all have ended, at most twice as long as the first success and as the limit."""
    began, pending, is_warm = monotonic(), set(loads), False
    ends = began + limit
    while pending and (left := ends - monotonic()) > 0:
        done, pending = await asyncio.wait(
            pending, timeout=None if left == inf else left, return_when=asyncio.FIRST_COMPLETED
        )
        if not is_warm and any(load.result() is None for load in done):
            is_warm, now = True, monotonic()
            ends = min(ends, now + max(_SHORTEST_GRACE_SECONDS, now - began))


def _late(host: ModelHost) -> LLMError:
    error = TimedOutError(f"{host.settings.model} is not loaded at {host.address} yet")
    error.host = host.address
    return error

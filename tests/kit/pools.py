"""Pools whose servers fail, for the tests of `prism.llm`."""

import asyncio
from typing import Any

from tests.kit.servers import HELLO


async def ask(pool: Any, times: int = 1) -> list[str]:
    """Ask many questions at once, and return the hosts that answered."""
    return [reply.host for reply in await asyncio.gather(*(pool.chat(HELLO) for _ in range(times)))]


def impatient(pool: Any, *, pause: float = 0.0, patience: float = 0) -> Any:
    """Set the pauses of a pool's servers, and how long to wait for them."""
    for server in pool.servers:
        server.backoff, server.patience = lambda _failures: pause, patience
    return pool


def unpaused(pool: Any) -> Any:
    """Have a pool ask again at once."""
    for server in pool.servers:
        server.backoff = lambda _failures: 0.0
    return pool


def at_rest(pool: Any) -> bool:
    """Return True if no question is under way or waits."""
    return not pool.waiting and not any(server.open for server in pool.servers)

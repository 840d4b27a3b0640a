"""Pools whose servers fail, for the tests of `prism.llm`."""

import asyncio
from typing import Any

import pytest

from prism.errors import UnreachableError
from prism.reasoner._slots import FAILURES_TO_OPEN, CircuitBreaker, Throttle
from prism.testing import FakeOllama, Fault
from tests.kit.servers import HELLO


async def ask(pool: Any, times: int = 1) -> list[str]:
    """Ask many questions at once, and return the hosts that answered."""
    return [reply.host for reply in await asyncio.gather(*(pool.chat(HELLO) for _ in range(times)))]


async def ask_in_turn(pool: Any, times: int) -> list[str]:
    """Ask many questions one after the other, and return the hosts that answered."""
    return [(await pool.chat(HELLO)).host for _ in range(times)]


def impatient(
    pool: Any, *, pause: float = 0.05, probe_wait: float = 10, patience: float = 0
) -> Any:
    """Shorten the pauses of a pool's circuit breakers, and set how long others wait for a probe."""
    for host in pool.servers:
        host.breaker = CircuitBreaker(first_pause=pause, probe_wait=probe_wait, patience=patience)
    return pool


def unpaused(pool: Any) -> Any:
    """Have a pool ask again at once, and put no server on hold for longer than it asks for."""
    pool.backoff = lambda attempt: 0.0
    for host in pool.servers:
        host.traffic.throttle = Throttle(first_hold=0)
    return pool


def open_at_once(pool: Any, number: int = 0) -> None:
    """Open the circuit breaker of one server of a pool."""
    for _ in range(FAILURES_TO_OPEN):
        pool.servers[number].breaker.failed()


async def open_breaker(server: FakeOllama, pool: Any) -> None:
    """Have the server of a pool with one attempt fail until its circuit breaker opens."""
    server.fail(*[Fault.drop()] * FAILURES_TO_OPEN)
    for _ in range(FAILURES_TO_OPEN):
        with pytest.raises(UnreachableError, match="broke"):
            await pool.chat(HELLO)


def at_rest(pool: Any) -> bool:
    """Return True if no question is under way or waits, and no host is doubted."""
    return not pool.waiting and not any(
        host.traffic.in_flight or host.traffic.doubts for host in pool.servers
    )

"""Fake servers, and pools that ask them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import pytest

from prism.llm import OllamaPool
from prism.testing import FakeOllama


@pytest.fixture
def serve() -> Iterator[Callable[..., FakeOllama]]:
    """Return a maker of running servers, each stopped when the test ends."""
    with ExitStack() as servers:

        def make(**settings: Any) -> FakeOllama:
            return servers.enter_context(FakeOllama(**{"models": ["tiny"], **settings}))

        yield make


@pytest.fixture
def server(serve: Callable[..., FakeOllama]) -> FakeOllama:
    """Return a running server with the models ``tiny``, which chats, and ``nimble``, which also decides."""
    return serve()


@pytest.fixture
async def connect(server: FakeOllama) -> AsyncIterator[Callable[..., OllamaPool]]:
    """Return a maker of pools, of the one server by default, each closed when the test ends."""
    async with AsyncExitStack() as pools:

        def make(*hosts: FakeOllama | str, model: str = "tiny", **settings: Any) -> OllamaPool:
            addresses = [host if isinstance(host, str) else host.host for host in hosts or [server]]
            pool = OllamaPool(addresses, model, **{"timeout": 5, "attempts": 1, **settings})
            pools.push_async_callback(pool.close)
            return pool

        yield make


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Any]:
    """Return a coroutine function that returns when a condition holds, and raises if it never does."""

    async def wait(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0.005)

    return wait

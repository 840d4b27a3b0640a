"""Fake model servers, and clients that ask them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import ollama
import pytest

from prism.llm import OllamaChatClient, OllamaPool
from prism.testing import FakeOllama

Serve = Callable[..., FakeOllama]
Connect = Callable[..., Any]
Until = Callable[[Callable[[], bool]], Awaitable[None]]

CHAT, DECISIONS, SHOW = "/api/chat", "/v1/systemone", "/api/show"
HELLO = [{"role": "user", "content": "hello"}]
QUESTION = {"q0": {"type": "choice", "instructions": "?", "criteria": {"a": None, "b": None}}}


class Clock:
    """A time in seconds that the test sets."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


async def wait_until(holds: Callable[[], bool]) -> None:
    """Return as soon as something holds that another thread does; raise if it never does."""
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.002)


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands still."""
    return Clock()


@pytest.fixture
def until() -> Until:
    """Return a coroutine function that waits until something holds; see `wait_until`."""
    return wait_until


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a maker of running servers, each stopped when the test ends."""
    with ExitStack() as servers:

        def make(**settings: Any) -> FakeOllama:
            return servers.enter_context(FakeOllama(**{"models": ["tiny"], **settings}))

        yield make


@pytest.fixture
def server(serve: Serve) -> FakeOllama:
    """Return a running server with the models ``tiny``, which chats, and ``nimble``."""
    return serve()


@pytest.fixture
async def connect(server: FakeOllama) -> AsyncIterator[Connect]:
    """Return a maker of clients, of the one server by default, each closed when the test ends.

    A client is named by its kind: ``pool``, ``prism`` (a pool of one) or ``ollama``, whose own
    client is not given a model.
    """
    async with AsyncExitStack() as clients:

        def make(
            *hosts: FakeOllama | str, kind: str = "pool", model: str = "tiny", **settings: Any
        ) -> Any:
            addresses = [host if isinstance(host, str) else host.host for host in hosts or [server]]
            settings = {"timeout": 5, "attempts": 1, **settings}
            if kind == "ollama":
                client: Any = ollama.AsyncClient(host=addresses[0])
            elif kind == "prism":
                client = OllamaChatClient(addresses[0], model, **settings)
            else:
                client = OllamaPool(addresses, model, **settings)

            clients.push_async_callback(client.close)
            return client

        yield make

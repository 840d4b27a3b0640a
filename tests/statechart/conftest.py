"""Fixtures of the engine's tests: agents to drive, and logs to read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import ollama
import pytest

from prism.agents._mixin import StatechartMixin
from prism.llm import OllamaChatClient, OllamaPool
from prism.testing import FakeOllama


class Agent(StatechartMixin):
    """An agent as most applications write one."""

    agent_id = "a1"


@pytest.fixture
def agent() -> Agent:
    """Return an agent in IDLE that keeps all fields."""
    return Agent()


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """Run a model server on loopback for one test."""
    with FakeOllama() as running:
        yield running


@pytest.fixture
async def connect(server: FakeOllama) -> AsyncIterator[Callable[..., Any]]:
    """Return a maker of clients for the server, each closed when the test ends.

    A client is named by its kind: ``prism``, ``pool`` or ``ollama``, whose own client is not told a
    model.
    """
    async with AsyncExitStack() as clients:

        def make(kind: str = "prism", model: str = "llama3.2", **settings: Any) -> Any:
            if kind == "ollama":
                client: Any = ollama.AsyncClient(host=server.host)
            elif kind == "pool":
                client = OllamaPool([server.host], model, **{"attempts": 1, **settings})
            else:
                client = OllamaChatClient(server.host, model, **{"attempts": 1, **settings})
            clients.push_async_callback(client.close)
            return client

        yield make


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Return a function that waits until something holds, and fails if it never does."""

    async def until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.002)

    return until


@pytest.fixture
def events(heard: list[Any]) -> list[Any]:
    """Return the list of all structlog events."""
    return heard

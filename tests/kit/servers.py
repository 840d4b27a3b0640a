"""Fake model servers, and clients that ask them."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import ollama
import pytest

from prism.llm import OllamaChatClient, OllamaPool, OpenAIPool
from prism.testing import FakeOllama, FakeOpenAI

Serve = Callable[..., FakeOllama]
Connect = Callable[..., Any]

CHAT, DECISIONS, SHOW = "/api/chat", "/v1/systemone", "/api/show"
HELLO = [{"role": "user", "content": "hello"}]
QUESTION = {"q0": {"type": "choice", "instructions": "?", "criteria": {"a": None, "b": None}}}


BOTH = pytest.mark.parametrize("dialect", ["ollama", "openai"], indirect=True)
"""Has `serve`, `server` and `connect` speak Ollama's dialect in one test, OpenAI's in another."""


def chats_of(server: FakeOllama) -> list[Mapping[str, Any]]:
    """Return the body of every chat that a server was asked for."""
    return [asked.body for asked in server.questions if asked.path == CHAT]


@pytest.fixture
def dialect(request: pytest.FixtureRequest) -> str:
    """Return the dialect that servers and clients speak, Ollama's unless a test is for `BOTH`."""
    return str(getattr(request, "param", "ollama"))


@pytest.fixture
def serve(dialect: str) -> Iterator[Serve]:
    """Return a maker of running servers, each stopped when the test ends."""
    kind: Any = FakeOllama if dialect == "ollama" else FakeOpenAI
    with ExitStack() as servers:

        def make(**settings: Any) -> FakeOllama:
            running: FakeOllama = servers.enter_context(kind(**{"models": ["tiny"], **settings}))
            return running

        yield make


@pytest.fixture
def server(serve: Serve) -> FakeOllama:
    """Return a running server with the models ``tiny``, which chats, and ``nimble``."""
    return serve()


@pytest.fixture
async def connect(server: FakeOllama, dialect: str) -> AsyncIterator[Connect]:
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
                pool = OllamaPool if dialect == "ollama" else OpenAIPool
                client = pool(addresses, model, **settings)

            clients.push_async_callback(client.close)
            return client

        yield make

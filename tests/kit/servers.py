"""Fake model servers, clients that ask them, and pools that wait for nothing."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack
from itertools import count
from typing import Any

import pytest

from prism.llm import Model, OllamaChatClient
from prism.testing import FakeOllama, FakeOpenAI, Fault
from tests.kit.clients import bare
from tests.kit.waiting import MOST_SECONDS, POLL_SECONDS

Serve = Callable[..., FakeOllama]
Connect = Callable[..., Any]

CHAT = "/api/chat"
HELLO = [{"role": "user", "content": "hello"}]


BOTH = pytest.mark.parametrize("dialect", ["ollama", "openai"], indirect=True)
"""Has `serve`, `server` and `connect` speak Ollama's dialect in one test, OpenAI's in another."""


class Gate:
    """A latency that lasts until the test opens the gate.

    Attributes:
        is_open: Whether answers pass at once.
    """

    def __init__(self) -> None:
        self.is_open = False

    def __call__(self) -> float:
        """Wait for the gate, in a thread of the server."""
        while not self.is_open:
            time.sleep(POLL_SECONDS)
        return 0.0


def chats_of(server: FakeOllama) -> list[Mapping[str, Any]]:
    """Return the body of every chat that a server was asked for."""
    return [asked.body for asked in server.questions if asked.path == CHAT]


def hanging_after(answers: int) -> Callable[[], float]:
    """Return the latency of a server that gives so many answers, and then none."""
    numbers = count()  # the first of them loads the model
    return lambda: 0.0 if next(numbers) <= answers else MOST_SECONDS


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


@pytest.fixture
def dialect(request: pytest.FixtureRequest) -> str:
    """Return the dialect that servers and clients speak, Ollama's unless a test is for `BOTH`."""
    return str(getattr(request, "param", "ollama"))


@pytest.fixture
def serve(dialect: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Return a maker of running servers with faults, each stopped when the test ends.

    There is no key in the environment.
    """
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    kind: Any = FakeOllama if dialect == "ollama" else FakeOpenAI
    with ExitStack() as servers:

        def make(*faults: Fault, **settings: Any) -> FakeOllama:
            running: FakeOllama = servers.enter_context(
                kind(**{"models": ["tiny", "llama3.2"], **settings})
            )
            running.fail(*faults)
            return running

        yield make


@pytest.fixture
def server(serve: Serve) -> FakeOllama:
    """Return a running server with the models ``tiny`` and ``llama3.2``."""
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
            settings = {"timeout": MOST_SECONDS, "attempts": 1, **settings}
            if kind == "ollama":
                client: Any = bare(addresses[0])
            elif kind == "prism":
                client = OllamaChatClient(addresses[0], model, **settings)
            else:
                client = Model(model, addresses, server=dialect, **settings).as_client()

            clients.push_async_callback(client.close)
            return client

        yield make

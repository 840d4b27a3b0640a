"""A fake server, and the real client of it."""

from collections.abc import AsyncIterator, Iterator

import ollama
import pytest

from prism.testing import FakeOllama
from tests.kit.clients import bare


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """Return a running server."""
    with FakeOllama() as running:
        yield running


@pytest.fixture
async def client(server: FakeOllama) -> AsyncIterator[ollama.AsyncClient]:
    """Return the real client, connected to the server."""
    async with bare(server.host, timeout=5) as connected:
        yield connected

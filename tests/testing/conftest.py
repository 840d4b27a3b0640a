"""A fake server, and ways to speak to it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

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


@pytest.fixture
def talk(server: FakeOllama) -> Callable[..., Any]:
    """Return a function that sends raw bytes and returns the status and body of each answer."""

    async def read_answer(reader: asyncio.StreamReader) -> tuple[int, Any]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].split("\r\n")[0])
        body = (await reader.readexactly(length)).decode()
        return int(head.split()[1]), json.loads(body) if body.startswith(("{", "[")) else body

    async def send(data: bytes, answers: int = 1) -> list[tuple[int, Any]]:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", int(server.host.rpartition(":")[2])
        )
        try:
            async with asyncio.timeout(5):
                writer.write(data)
                return [await read_answer(reader) for _ in range(answers)]
        finally:
            writer.close()
            await writer.wait_closed()

    return send

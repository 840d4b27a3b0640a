"""Who may reach the page, by the address that a browser asks for."""

import asyncio
from socket import gethostname

import pytest

pytest.importorskip("starlette")

from starlette.responses import PlainTextResponse
from starlette.types import Message, Scope

from prism.watch._guard import Guard


def status_of(listens: str, port: int, host: str) -> int:
    """Return the status of the first request with the token, for a server on a host."""
    guard, sent = Guard(PlainTextResponse("page"), listens, port), list[Message]()
    scope: Scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": f"token={guard.token}".encode(),
        "headers": [(b"host", host.encode())],
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(guard(scope, receive, send))
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    ("listens", "port", "host", "status"),
    [
        ("127.0.0.1", 8000, "localhost:8000", 200),
        ("::1", 8000, "[::1]:8000", 200),
        ("::1", 8000, "192.168.0.7:8000", 403),
        ("0.0.0.0", 8000, "192.168.0.7:8000", 200),
        ("0.0.0.0", 8000, "[fe80::1]:8000", 200),
        ("0.0.0.0", 8000, f"{gethostname()}:8000", 200),
        ("0.0.0.0", 8000, "evil.example:8000", 403),
        ("Lab.Example", 8000, "lab.example:8000", 200),
        ("127.0.0.1", 80, "127.0.0.1", 200),
        ("::1", 80, "[::1]", 200),
        ("127.0.0.1", 80, "evil.example", 403),
        ("127.0.0.1", 8000, "127.0.0.1", 403),
        ("127.0.0.1", 8000, "127.0.0.1:80", 403),
    ],
)
def test_an_address_is_answered_and_a_foreign_name_is_not(
    listens: str, port: int, host: str, status: int
) -> None:
    """On all interfaces any address of them is, and the port of http may be left out."""
    assert status_of(listens, port, host) == status

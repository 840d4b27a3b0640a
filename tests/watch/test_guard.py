"""Who may reach the page, by the address that a browser asks for."""

from socket import gethostname

import httpx
import pytest
from starlette.responses import PlainTextResponse

from prism.watch._guard import Guard


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
async def test_an_address_is_answered_and_a_foreign_name_is_not(
    listens: str, port: int, host: str, status: int
) -> None:
    """On all interfaces any address of them is, and the port of http may be left out."""
    guard = Guard(PlainTextResponse("page"), listens, port)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard)) as client:
        answer = await client.get(f"http://any/?token={guard.token}", headers={"Host": host})
    assert answer.status_code == status

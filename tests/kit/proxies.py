"""A proxy on loopback that answers every request itself."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

REPLY = b'{"message": {"role": "assistant", "content": "by proxy"}}'


class Proxy:
    """What a proxy was asked for, and what it answers.

    Attributes:
        address: Its address.
        body: What it answers.
        requests: Target and headers of every request.
    """

    def __init__(self) -> None:
        self.address: str = ""
        self.body: bytes = REPLY
        self.requests: list[tuple[str, Message]] = []


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Return a running proxy."""
    told = Proxy()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            told.requests.append((self.path, self.headers))
            self.send_response(200)
            self.send_header("Content-Length", str(len(told.body)))
            self.send_header("Connection", "close")
            self.end_headers()
            # whoever asks may hang up when it has read enough
            with suppress(ConnectionError):
                self.wfile.write(told.body)

        def log_message(self, *message: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        told.address = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield told
        running.shutdown()
        thread.join()

"""A real server on loopback that speaks Ollama's wire format, with replies set by the test."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from prism.llm import OllamaChatClient


class OllamaServer(ThreadingHTTPServer):
    """Records what it is asked, and replies as the test has set.

    Attributes:
        asked: Path and JSON body of every request, in order.
        answer: Writes the reply to a request, in that request's own thread.
        hung_up: Set once a connection has been closed.
        closing: Set at the end of the test, for answers that wait.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked: list[tuple[str, Any]] = []
        self.answer: Callable[[BaseHTTPRequestHandler], None] = self.drop
        self.hung_up = Event()
        self.closing = Event()

    def says(self, text: str) -> None:
        """Reply as a model that says something."""
        self.replies({"model": "tiny", "message": {"role": "assistant", "content": text}, "done": True})

    def replies(self, body: Any, status: int = 200, *, length: int | None = None) -> None:
        """Reply with a body, text as it is and anything else as JSON, announced with its length or another."""
        content = (body if isinstance(body, str) else json.dumps(body)).encode()

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            handler.send_header("Content-Length", str(length or len(content)))
            handler.end_headers()
            handler.wfile.write(content)
            handler.close_connection = length is not None

        self.answer = answer

    def drop(self, handler: BaseHTTPRequestHandler) -> None:
        """Close the connection without a word."""
        handler.close_connection = True

    def hang(self, handler: BaseHTTPRequestHandler) -> None:
        """Keep the connection open and silent until the test ends."""
        self.closing.wait()
        handler.close_connection = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about clients that left; what matters is what those clients say."""


class _Handler(BaseHTTPRequestHandler):
    server: OllamaServer
    protocol_version = "HTTP/1.1"

    def finish(self) -> None:
        super().finish()
        self.server.hung_up.set()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, json.loads(body)))
        self.server.answer(self)

    def log_message(self, *args: Any) -> None:
        """Keep no access log."""


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    """Run a server for one test."""
    with OllamaServer() as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.closing.set()
        running.shutdown()
        thread.join()


@pytest.fixture
async def connect(server: OllamaServer) -> AsyncIterator[Callable[..., OllamaChatClient]]:
    """Give a maker of clients for the server, each closed when the test ends."""
    async with AsyncExitStack() as clients:

        def make(host: str = server.url, **settings: Any) -> OllamaChatClient:
            client = OllamaChatClient(host, "tiny", **{"timeout": 5, "attempts": 1, **settings})
            clients.push_async_callback(client.close)
            return client

        yield make

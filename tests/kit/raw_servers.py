"""Model servers of another make than prism's own: bytes over the standard library's HTTP."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Canned:
    """What a server answers to everything.

    Args:
        status: HTTP status.
        body: Body as it is sent.
        headers: Headers beside the length.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def said(content: Any, **message: Any) -> Canned:
    """Return a chat reply in Ollama's format."""
    reply = {
        "model": "tiny",
        "created_at": "2026-01-01T00:00:00Z",
        "done": True,
        "message": {"role": "assistant", "content": content, **message},
    }
    return Canned(body=json.dumps(reply).encode(), headers={"Content-Type": "application/json"})


TOOL_CALL = {"tool_calls": [{"function": {"name": "look", "arguments": {"at": "kettle"}}}]}

FAULTS: dict[str, Canned] = {
    "prose": said("I would rather not choose, thank you."),
    "no option": said('{"next_state": "flying"}'),
    "empty": said(""),
    "tool call without content": said("", **TOOL_CALL),
    "tool call, content null": said(None, **TOOL_CALL),
    "no bytes": Canned(),
    "not JSON": Canned(body=b"<html><body>Sign in</body></html>"),
    "JSON, but no reply": Canned(body=b"[1, 2]"),
    "error in a 200": Canned(body=b'{"error": "the runner has died"}'),
    "400": Canned(400, b'{"error": "prompt too long"}'),
    "401": Canned(401, b"<html>401 Authorization Required</html>"),
    "403": Canned(403, b'{"error": "forbidden"}'),
    "404": Canned(404, b"<html>Not Found</html>"),
    "413": Canned(413, b"<html>413 Request Entity Too Large</html>"),
    "500": Canned(500, b'{"error": "unexpected EOF"}'),
    "520": Canned(520, b"<html>unknown error</html>"),
    "bad gzip": Canned(body=b"this is not gzip", headers={"Content-Encoding": "gzip"}),
    "100,000 brackets": Canned(body=b"[" * 100_000),
    "redirect loop": Canned(307, headers={"Location": "/api/chat"}),
}
"""Ways for a server to fail fast, all of which it answers at once."""


class RawServer(ThreadingHTTPServer):
    """Answers every request with the same bytes.

    Attributes:
        posts: How many requests it has had.
    """

    daemon_threads = True

    def __init__(self, canned: Canned) -> None:
        self.canned = canned
        self.posts = 0
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def host(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: RawServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.posts += 1
        canned = self.server.canned
        self.send_response(canned.status)
        for name, value in {"Content-Length": str(len(canned.body)), **canned.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(canned.body)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def raw_server(canned: Canned) -> Iterator[RawServer]:
    """Run such a server in a thread."""
    server = RawServer(canned)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)

"""One HTTP request, and the answer to it, on the server's side."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler
from typing import Any


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms in which a kind of server puts what a fault may send.

    Args:
        error: Returns the body of an error, given its text and the status.
        tool_call: Returns the reply to a chat that calls a tool, given its name and arguments.
    """

    error: Callable[[str, int], Any]
    tool_call: Callable[[str, Mapping[str, Any]], Any]


class Exchange:
    """A request, and the ways to answer it.

    Args:
        handler: The connection, on which the head of the request was read.
        forms: The form of an error and the like.

    Attributes:
        method: ``GET`` or ``POST``.
        path: Path without host.
        headers: The headers of the request, by any case of their names.
        body: The bytes after them.
    """

    def __init__(self, handler: BaseHTTPRequestHandler, forms: Forms) -> None:
        self.method: str = handler.command
        self.path: str = handler.path
        self.headers: Message = handler.headers
        self.body: bytes = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.forms = forms
        self.has_begun: bool = False
        self._handler = handler
        self._is_chunked = False

    def respond(self, status: int, payload: Any, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send a whole reply.

        Args:
            status: HTTP status.
            payload: Raw bytes, or a value to send as JSON.
            headers: Further headers.
        """
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.begin(status, [("Content-Length", str(len(data))), *headers])
        self.send(data)

    def refuse(self, status: int, problem: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send an error in the form of the server."""
        self.respond(status, self.forms.error(problem, status), headers)

    def begin(self, status: int, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send the head of a reply; the body is chunked unless the headers have its length."""
        fields = {"Content-Type": "application/json", **dict(headers)}
        self._is_chunked = "Content-Length" not in fields
        if self._is_chunked:
            fields["Transfer-Encoding"] = "chunked"

        self.has_begun = True
        self._handler.send_response_only(status)
        for name, value in fields.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def send(self, data: bytes) -> None:
        """Send a piece of the body."""
        self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    def end(self) -> None:
        """Finish a reply whose length its head did not have."""
        self._write(b"0\r\n\r\n")

    def drop(self) -> None:
        """Close the connection at once."""
        self._handler.close_connection = True
        self._handler.connection.shutdown(socket.SHUT_RDWR)

    def wait(self, seconds: float | None) -> None:
        """Wait some seconds, or for ever, while the client does.

        Raises:
            ConnectionError: When the client or the server closes the connection.
        """
        end = None if seconds is None else time.monotonic() + seconds
        connection = self._handler.connection
        connection.settimeout(seconds)
        try:
            is_open = connection.recv(1, socket.MSG_PEEK)
        except (TimeoutError, BlockingIOError):
            return
        finally:
            connection.settimeout(None)
        if not is_open:
            raise ConnectionError("the client has gone")

        # the next request is there already
        time.sleep(3600 if end is None else max(0, end - time.monotonic()))

    def _write(self, data: bytes) -> None:
        self._handler.wfile.write(data)
        self._handler.wfile.flush()

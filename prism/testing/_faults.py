"""Requests to a fake model server, and the faults that it can answer with."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any


class Exchange(BaseHTTPRequestHandler):
    """A connection with one request after another, and the ways to answer each.

    Attributes:
        body: The bytes behind the head of the request.
        has_begun: Whether the reply to it has begun.
    """

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    disable_nagle_algorithm = True
    server: Any

    def do_POST(self) -> None:
        """Answer a request."""
        self.body: bytes = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.has_begun: bool = False
        try:
            self.server.answer(self)
        except ConnectionError:
            self.close_connection = True

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_message: object) -> None:
        """Write nothing."""

    def respond(self, status: int, payload: Any, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send a whole reply.

        Args:
            status: HTTP status.
            payload: Raw bytes, or a value to send as JSON.
            headers: Further headers.
        """
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.begin(status, len(data), headers)
        self.send(data)

    def refuse(self, status: int, problem: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send an error in the form of the server."""
        self.respond(status, self.server.error(problem, status), headers)

    def begin(self, status: int, length: int, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send the head of a reply whose body has so many bytes."""
        fields = {"Content-Type": "application/json", "Content-Length": length, **dict(headers)}
        self.has_begun = True
        self.send_response_only(status)
        for name, value in fields.items():
            self.send_header(name, str(value))
        self.end_headers()

    def send(self, data: bytes) -> None:
        """Send a piece of the body."""
        self.wfile.write(data)
        self.wfile.flush()

    def drop(self) -> None:
        """Close the connection at once."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def wait(self, seconds: float | None) -> None:
        """Wait some seconds, or for ever, while the client does.

        Raises:
            ConnectionError: When the client or the server closes the connection.
        """
        end = None if seconds is None else time.monotonic() + seconds
        self.connection.settimeout(seconds)
        try:
            is_open = self.connection.recv(1, socket.MSG_PEEK)
        except (TimeoutError, BlockingIOError):
            return
        finally:
            self.connection.settimeout(None)
        if not is_open:
            raise ConnectionError("the client has gone")

        # the next request is there already
        time.sleep(3600 if end is None else max(0, end - time.monotonic()))


@dataclass(frozen=True, slots=True)
class Fault:
    """One way for a request to fail; make one with the class methods.

    Args:
        name: Name of the fault, for messages.
        reply: Sends the faulty reply. None if only the content is wrong.
        content: Text of the chat message instead of the model's.
        probabilities: Probabilities of the decision instead of the model's.
    """

    name: str
    reply: Callable[[Exchange], None] | None = None
    content: str | None = None
    probabilities: Mapping[str, Any] | None = None

    @classmethod
    def status(
        cls,
        code: int,
        message: str = "",
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fault:
        """Answer with an HTTP error, or a redirect: ``status(307, headers={"Location": ...})``.

        Args:
            code: HTTP status.
            message: Text of the error, sent in the form of the server.
            body: Raw body instead of the message.
            headers: Further headers, such as ``{"Retry-After": "7"}``.
        """
        fields = dict(headers or {})

        def reply(exchange: Exchange) -> None:
            if body is None:
                exchange.refuse(code, message or f"status {code}", fields.items())
            else:
                exchange.respond(code, body, fields.items())

        return cls(f"status {code}", reply)

    @classmethod
    def body(cls, data: bytes, *, headers: Mapping[str, str] | None = None) -> Fault:
        """Answer 200 with these bytes: invalid JSON, ``{"error": ...}``, an array.

        Args:
            data: The body, as it is sent.
            headers: Further headers, such as ``{"Content-Encoding": "gzip"}`` for a body that is
                not gzip.
        """
        return cls("body", lambda exchange: exchange.respond(200, data, (headers or {}).items()))

    @classmethod
    def hang(cls) -> Fault:
        """Never answer."""
        return cls("hang", lambda exchange: exchange.wait(None))

    @classmethod
    def stall(cls) -> Fault:
        """Send the first part of an answer, then nothing more."""

        def reply(exchange: Exchange) -> None:
            _begin(exchange)
            exchange.wait(None)

        return cls("stall", reply)

    @classmethod
    def drop(cls) -> Fault:
        """Close the connection without an answer."""
        return cls("drop", Exchange.drop)

    @classmethod
    def drop_midway(cls) -> Fault:
        """Close the connection in the middle of an answer."""

        def reply(exchange: Exchange) -> None:
            _begin(exchange)
            exchange.drop()

        return cls("drop midway", reply)

    @classmethod
    def calls_tool(cls, name: str = "look", **arguments: Any) -> Fault:
        """Answer a chat with a call of a tool and no content.

        Args:
            name: Name of the tool.
            arguments: Its arguments.
        """

        def reply(exchange: Exchange) -> None:
            exchange.respond(200, exchange.server.tool_call(name, arguments))

        return cls("tool call", reply)

    @classmethod
    def says(cls, content: str) -> Fault:
        """Make the model reply with this text, such as an empty one or one outside the options."""
        return cls("says", content=content)

    @classmethod
    def weighs(cls, probabilities: Mapping[str, Any]) -> Fault:
        """Give a question by letter these probabilities of its options, or of other tokens."""
        return cls("weighs", probabilities=probabilities)


def _begin(exchange: Exchange) -> None:
    exchange.begin(200, 1000)
    exchange.send(b'{"model": ')

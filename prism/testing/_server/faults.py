"""Faults of a model server, for a `FakeOllama` or `FakeOpenAI` to have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prism.testing._server.exchange import Exchange

Reply = Callable[[Exchange], None]


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
    reply: Reply | None = None
    content: str | None = None
    probabilities: Mapping[str, Any] | None = None

    @classmethod
    def status(
        cls,
        code: int,
        message: str = "",
        *,
        retry_after: str | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fault:
        """Answer with an HTTP error, or a redirect: ``status(307, headers={"Location": ...})``.

        Args:
            code: HTTP status.
            message: Text of the error, sent in the form of the server.
            retry_after: Value of the Retry-After header; None for no such header.
            body: Raw body instead of the message.
            headers: Further headers.
        """
        fields = dict(headers or {})
        if retry_after is not None:
            fields["Retry-After"] = retry_after

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
    def trickle(cls, pause: float = 0.02) -> Fault:
        """Send an endless answer, byte by byte.

        Args:
            pause: Seconds between two bytes.
        """

        def reply(exchange: Exchange) -> None:
            exchange.begin(200)
            while True:
                exchange.send(b" ")
                exchange.wait(pause)

        return cls("trickle", reply)

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
            exchange.respond(200, exchange.forms.tool_call(name, arguments))

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
    exchange.begin(200, [("Content-Length", "1000")])
    exchange.send(b'{"model": ')

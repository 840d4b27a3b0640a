"""What can go wrong with a model server, to be programmed into a `FakeOllama`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prism.testing._server.exchange import Exchange

Reply = Callable[[Exchange], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One way for a request to go wrong; make one with the functions of this class.

    Args:
        name: What it is, for messages.
        reply: Answers the request wrongly. None if only the content of a good answer is changed.
        content: Text of the chat message instead of the right one.
        probabilities: Probabilities of the decision instead of the right ones.
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
    ) -> Fault:
        """Answer with an HTTP error.

        Args:
            code: HTTP status.
            message: Text of the error, in Ollama's form.
            retry_after: Value of the Retry-After header, if there shall be one.
            body: Raw body instead of Ollama's form.
        """
        headers = [] if retry_after is None else [("Retry-After", retry_after)]
        payload: Any = {"error": message or f"status {code}"} if body is None else body

        async def reply(exchange: Exchange) -> None:
            await exchange.respond(code, payload, headers)

        return cls(f"status {code}", reply)

    @classmethod
    def body(cls, data: bytes) -> Fault:
        """Answer 200 with a body of one's own: no JSON, ``{"error": ...}``, an array."""

        async def reply(exchange: Exchange) -> None:
            await exchange.respond(200, data)

        return cls("body", reply)

    @classmethod
    def hang(cls) -> Fault:
        """Never answer."""

        async def reply(exchange: Exchange) -> None:  # noqa: ARG001
            await asyncio.Event().wait()

        return cls("hang", reply)

    @classmethod
    def stall(cls) -> Fault:
        """Send half an answer, and then nothing."""

        async def reply(exchange: Exchange) -> None:
            await exchange.begin(200, [("Content-Length", "1000")])
            await exchange.send(b'{"model": ')
            await asyncio.Event().wait()

        return cls("stall", reply)

    @classmethod
    def trickle(cls, pause: float = 0.02) -> Fault:
        """Send an answer that never ends, byte by byte.

        Args:
            pause: Seconds between two bytes.
        """

        async def reply(exchange: Exchange) -> None:
            await exchange.begin(200)
            while True:
                await exchange.send(b" ")
                await asyncio.sleep(pause)

        return cls("trickle", reply)

    @classmethod
    def drop(cls) -> Fault:
        """Cut the connection off without an answer."""

        async def reply(exchange: Exchange) -> None:
            exchange.drop()

        return cls("drop", reply)

    @classmethod
    def drop_midway(cls) -> Fault:
        """Cut the connection off in the middle of an answer."""

        async def reply(exchange: Exchange) -> None:
            await exchange.begin(200, [("Content-Length", "1000")])
            await exchange.send(b'{"model": ')
            exchange.drop()

        return cls("drop midway", reply)

    @classmethod
    def stream_error(cls, message: str = "the model crashed") -> Fault:
        """Begin a stream of messages well, and end it with an error line."""

        async def reply(exchange: Exchange) -> None:
            await exchange.begin(200)
            await exchange.send(
                b'{"model": "m", "message": {"role": "assistant", "content": "{"}, "done": false}\n'
            )
            await exchange.send(json.dumps({"error": message}).encode() + b"\n")
            await exchange.end()

        return cls("stream error", reply)

    @classmethod
    def says(cls, content: str) -> Fault:
        """Let the model say something else: an empty text, a state outside the options, ten megabytes."""
        return cls("says", content=content)

    @classmethod
    def weighs(cls, probabilities: Mapping[str, Any]) -> Fault:
        """Let a decision have these probabilities: not summing to one, NaN, an option missing."""
        return cls("weighs", probabilities=probabilities)

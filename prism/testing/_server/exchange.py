"""HTTP requests and replies on one connection, on the server's side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import h11

_READ_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Request:
    """A request that the server has read.

    Args:
        method: ``GET``, ``POST``, ...
        path: Path without host.
        body: The JSON of its body, None without a body.
        headers: Its headers, their names in lower case.
    """

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms in which a kind of server puts what a fault may send.

    Args:
        error: Returns the body of an error, given its text and the status.
        tool_call: Returns the reply to a chat that calls a tool, given its name and arguments.
    """

    error: Callable[[str, int], Any]
    tool_call: Callable[[str, Mapping[str, Any]], Any]


def _ollamas_tool_call(name: str, arguments: Mapping[str, Any]) -> Any:
    call = {"function": {"name": name, "arguments": dict(arguments)}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "message": message}


OLLAMAS_FORMS = Forms(lambda message, _status: {"error": message}, _ollamas_tool_call)


class Exchange:
    """Reads requests from one connection and writes the answers to them.

    Args:
        reader: Where the requests come from.
        writer: Where the answers go.
        forms: How an error and the like are put.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        forms: Forms = OLLAMAS_FORMS,
    ) -> None:
        self.forms = forms
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)

    async def next_request(self) -> Request | None:
        """Read the next request, or return None if there will be none.

        Invalid HTTP and invalid JSON are answered with 400 here; invalid HTTP ends the connection.
        """
        try:
            while (received := await self._receive()) is not None:
                head, body = received
                try:
                    return Request(
                        head.method.decode(),
                        head.target.decode(),
                        json.loads(body) if body else None,
                        {name.decode(): value.decode("latin-1") for name, value in head.headers},
                    )
                except ValueError as error:
                    await self.refuse(400, f"invalid JSON: {error}")

                if not self.ready_for_next():
                    return None
        except h11.RemoteProtocolError as error:
            # h11 allows a reply only if none has begun
            if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                await self.refuse(error.error_status_hint, str(error), [("Connection", "close")])
        except ConnectionError:
            pass

        return None

    async def _receive(self) -> tuple[h11.Request, bytes] | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(_READ_BYTES))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return head, bytes(body)
            else:
                return None

    async def respond(
        self, status: int, payload: Any, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Send a whole reply.

        Args:
            status: HTTP status.
            payload: Raw bytes, or a value to send as JSON.
            headers: Further headers.
        """
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        await self.begin(status, [("Content-Length", str(len(data))), *headers])
        await self.send(data)
        await self.end()

    async def refuse(
        self, status: int, problem: str, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Send an error in the form of the server."""
        await self.respond(status, self.forms.error(problem, status), headers)

    async def begin(self, status: int, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send the head of a reply; the body is chunked unless the headers have its length."""
        fields = [("Content-Type", "application/json"), *headers]
        if not any(name.lower() == "content-length" for name, _ in fields):
            fields.append(("Transfer-Encoding", "chunked"))
        await self._write(h11.Response(status_code=status, headers=fields))

    async def send(self, data: bytes) -> None:
        """Send a piece of the body."""
        await self._write(h11.Data(data=data))

    async def end(self) -> None:
        """Finish the reply."""
        await self._write(h11.EndOfMessage())

    def nothing_sent(self) -> bool:
        """Return True if no part of the reply has been sent."""
        return self._http.our_state is h11.SEND_RESPONSE

    def ready_for_next(self) -> bool:
        """Prepare the connection for another request; return False if it cannot take one."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False

        self._http.start_next_cycle()

        return True

    def drop(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()

    async def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()

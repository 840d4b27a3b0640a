"""The base of all model servers for tests: HTTP on loopback, slots, answers and faults."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar, Self, TypedDict

from prism.errors import FieldValueError
from prism.testing._server.exchange import OLLAMAS_FORMS, Exchange, Forms, Request
from prism.testing._server.faults import Fault
from prism.testing._server.tokens import count_tokens, first_tokens
from prism.testing._server.wire import Asked, Said, chosen_reply

_HOST = "127.0.0.1"
_START_SECONDS = 10
_GONE_POLL_SECONDS = 0.01

Latency = float | Callable[[], float | Awaitable[float]]
"""How long an answer takes, or a function that returns it."""

_TOKENS_OF_TEMPLATE = 4
"""The text that a server adds to each message of a conversation."""

_ANY_QUESTION = ""
"""Represents the path of every question to a model where faults are kept by path."""


class PromptTooLongError(Exception):
    """A prompt that does not fit into the window, on a server that refuses it."""


def first_option(asked: Asked) -> str:
    """Choose the first option."""
    return asked.options[0] if asked.options else "Hello."


class ServerSettings(TypedDict, total=False):
    """How any of the servers answers; see `ModelServer`."""

    choose: Callable[[Asked], str]
    write: Callable[[str, Mapping[str, Any] | None], Any] | None
    latency: Latency
    window: int | None
    restarts: Mapping[int, float] | None
    slots: int | None
    port: int
    sure: float
    mass: float


class ModelServer(ABC):
    """Serves models on a free port of loopback, from a thread of its own.

    Args:
        models: Names of the models that it has.
        choose: Returns the answer to a question, called in the server's thread.
        write: Returns the model's text for questions without options; called in the server's thread
            with the prompt and the schema of the answer (None for a text). Defaults to `choose`.
        latency: Seconds that each answer of a model takes, or a function that returns them, called
            in the server's thread. An async function is awaited before the answer.
        window: Tokens of prompt and reply together; None for no limit, and none told.
        restarts: Seconds for which the server is away, by the number of questions after which it
            stops, such as ``{400: 4.0}``.
        slots: Number of simultaneous answers; further questions wait. None for no limit.
        port: Port to listen on; by default any free one.
        sure: Share of the chosen letter in the probability of all letters.
        mass: Probability of all letters together.

    Raises:
        FieldValueError: If there is no slot, or the window has no room.

    Attributes:
        latency: Seconds that each answer takes, or a function that returns them.
        questions: The questions asked, in order of arrival.
        asked: The number of questions asked.
        most_at_once: Maximum number of simultaneous answers.
        busy_seconds: Total seconds for which slots were busy.
        open_connections: Connections that are open now.
    """

    _forms: ClassVar[Forms] = OLLAMAS_FORMS
    """The forms of its errors and of other things that a fault sends."""

    _asking: ClassVar[Collection[str]]
    """Paths that ask a model, so a fault can change its reply."""

    def __init__(
        self,
        models: Iterable[str] | None,
        *,
        choose: Callable[[Asked], str] = first_option,
        write: Callable[[str, Mapping[str, Any] | None], Any] | None = None,
        latency: Latency = 0.0,
        window: int | None = None,
        restarts: Mapping[int, float] | None = None,
        slots: int | None = None,
        port: int = 0,
        sure: float = 1.0,
        mass: float = 1.0,
    ) -> None:
        if slots is not None and slots < 1:
            raise FieldValueError(f"slots must be 1 or more, or None for no limit, got {slots}")
        if window is not None and window < 2:
            raise FieldValueError(f"window must be 2 tokens or more, got {window}")

        if not (0 < sure <= 1 and 0 <= mass <= 1):
            raise FieldValueError(f"sure and mass must be probabilities, got {sure} and {mass}")

        self.models: tuple[str, ...] = tuple(models or ())
        self._has_any = models is None
        self.choose = choose
        self.write = write
        self.latency: Latency = latency
        self.window: int | None = window
        self.sure: float = sure
        self.mass: float = mass

        self.questions: list[Asked] = []
        self.asked: int = 0
        self.most_at_once: int = 0
        self.busy_seconds: float = 0.0
        self.open_connections: int = 0

        self._restarts = dict(restarts or {})
        self._loaded: dict[str, int | None] = {}
        self._slots = slots
        self._faults: dict[str, deque[Fault]] = {}
        self._lasting: dict[str, Fault] = {}
        self._running = 0

        self._port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._orders: asyncio.Queue[float | None] = asyncio.Queue()
        self._free: asyncio.Semaphore | None = None

    @property
    def host(self) -> str:
        """Address of the server, such as ``http://127.0.0.1:40001``."""
        return f"http://{_HOST}:{self._port}"

    @property
    def url(self) -> str:
        """The same address, under the usual name in test servers."""
        return self.host

    def fail(self, *faults: Fault, path: str | None = None) -> None:
        """Make the next questions fail, one with each fault; then the server answers again.

        Args:
            faults: The faults, in order.
            path: Path whose requests fail, such as ``/api/show``; by default questions to a model.

        Raises:
            FieldValueError: If a fault changes a model's reply, and the path asks no model.
        """
        for fault in faults:
            self._require_possible(fault, path)

        self._faults.setdefault(path or _ANY_QUESTION, deque()).extend(faults)

    def fail_always(self, fault: Fault, path: str | None = None) -> None:
        """Make every question fail until `recover`.

        Args:
            fault: The fault.
            path: As in `fail`.

        Raises:
            FieldValueError: As `fail`.
        """
        self._require_possible(fault, path)
        self._lasting[path or _ANY_QUESTION] = fault

    def recover(self) -> None:
        """Forget all faults."""
        self._faults.clear()
        self._lasting.clear()

    def start(self) -> None:
        """Start serving, on the same port as before if it was stopped.

        Raises:
            RuntimeError: If it is running already.
            OSError: If another process has taken the port.
        """
        if self._thread is not None:
            raise RuntimeError(f"the fake server is already running, at {self.host}")

        started: Future[None] = Future()
        thread = threading.Thread(
            target=self._run, args=(started,), name="prism-server", daemon=True
        )
        thread.start()
        started.result(timeout=_START_SECONDS)
        self._thread = thread

    def stop(self) -> None:
        """Stop serving, and cut off all connections."""
        loop, thread = self._loop, self._thread
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(self._orders.put_nowait, None)
            thread.join(timeout=_START_SECONDS)

        self._loop = self._thread = None

    def __enter__(self) -> Self:
        """Start serving."""
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop serving."""
        self.stop()

    def _run(self, started: Future[None]) -> None:
        try:
            asyncio.run(self._serve(started))
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)

    async def _serve(self, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        # seconds to be away, or None to stop
        self._orders = asyncio.Queue()
        self._free = None if self._slots is None else asyncio.Semaphore(self._slots)
        self._running = self.open_connections = 0

        order: float | None = 0.0
        while order is not None:
            server = await asyncio.start_server(self._connected, _HOST, self._port, backlog=1024)
            self._port = server.sockets[0].getsockname()[1]
            if not started.done():
                started.set_result(None)

            order = await self._orders.get()
            for listening in server.sockets:
                self._loop.remove_reader(listening)
            # asyncio never closes what was accepted just before its server was closed
            await asyncio.sleep(0)
            server.close()
            await _cancel_all_others()
            self._loaded.clear()
            if order:
                with suppress(TimeoutError):
                    order = await asyncio.wait_for(self._orders.get(), order)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_connections += 1
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                await self._converse(reader, Exchange(reader, writer, self._forms))
        finally:
            self.open_connections -= 1
            writer.transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, exchange: Exchange) -> None:
        while (request := await exchange.next_request()) is not None:
            answering = asyncio.create_task(self._answer(request, exchange))
            await self._unless_gone(reader, answering)
            if not exchange.ready_for_next():
                return

    async def _unless_gone(
        self, reader: asyncio.StreamReader, answering: asyncio.Task[None]
    ) -> None:
        """Wait for an answer, and cancel it when the client disconnects, as a real server does."""
        try:
            while not answering.done():
                # a stream signals its end only to a reader
                await asyncio.wait({answering}, timeout=_GONE_POLL_SECONDS)
                if reader.at_eof():
                    answering.cancel()

            await answering
        finally:
            answering.cancel()

    async def _answer(self, request: Request, exchange: Exchange) -> None:
        try:
            fault = self._next_fault(request.path)
            if fault is not None and fault.reply is not None:
                await fault.reply(exchange)
            else:
                await self._route(request, exchange, fault)
        except ConnectionError:
            raise
        except Exception as error:
            # an error in the answering itself, such as in `choose`, is a 500 as on a real server
            if exchange.nothing_sent():
                await exchange.refuse(500, f"{type(error).__name__}: {error}")
            else:
                exchange.drop()

    def _next_fault(self, path: str) -> Fault | None:
        coming = self._faults.get(path)
        return self._lasting.get(path) or (coming.popleft() if coming else None)

    @abstractmethod
    async def _route(self, request: Request, exchange: Exchange, fault: Fault | None) -> None:
        """Answer a request."""

    @abstractmethod
    async def _reply(self, asked: Asked, exchange: Exchange, fault: Fault | None) -> None:
        """Answer a question to a model that the server has."""

    @abstractmethod
    def _read(self, request: Request) -> Asked:
        """Return the question of a request.

        Raises:
            AttributeError, IndexError, KeyError, TypeError: If the request lacks a part of it.
        """

    def _counts(self, asked: Asked) -> bool:  # noqa: ARG002
        """Return True for what is a question, and not only a request to load a model."""
        return True

    async def _ask(self, request: Request, exchange: Exchange, fault: Fault | None) -> None:
        try:
            asked = self._read(request)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            await exchange.refuse(400, f"invalid request: {type(error).__name__}: {error}")
            return

        if self._counts(asked):
            self._record(asked)

        async with self._slot():
            await self._make_answer(asked, exchange, fault)

    def _record(self, asked: Asked) -> None:
        self.asked += 1
        self.questions.append(asked)
        if self.asked in self._restarts:
            self._orders.put_nowait(self._restarts.pop(self.asked))

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        """Wait for a slot, and count the time that it is in use."""
        if self._free is not None:
            await self._free.acquire()

        began = time.monotonic()
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        try:
            yield
        finally:
            self._running -= 1
            self.busy_seconds += time.monotonic() - began
            if self._free is not None:
                self._free.release()

    async def _make_answer(self, asked: Asked, exchange: Exchange, fault: Fault | None) -> None:
        fault = fault or self._next_fault(_ANY_QUESTION)
        if fault is not None and fault.reply is not None:
            await fault.reply(exchange)
            return

        latency = self.latency() if callable(self.latency) else self.latency
        await asyncio.sleep(latency if isinstance(latency, (int, float)) else await latency)

        if not self._has(asked.model):
            await exchange.refuse(404, f"model {asked.model!r} not found")
            return

        self._loaded[asked.model] = self._limits(asked)[0]
        try:
            await self._reply(asked, exchange, fault)
        except PromptTooLongError as error:
            await exchange.refuse(400, str(error))

    def _has(self, model: Any) -> bool:
        """Return True for a model that it serves, or for any."""
        if self._has_any and model not in self.models:
            self.models += (model,)
        return model in self.models

    def _said(self, asked: Asked, fault: Fault | None) -> Said:
        """Return what the model says.

        Raises:
            PromptTooLongError: If the prompt does not fit into the model's window.
        """
        if fault is not None and fault.content is not None:
            return Said.simply(asked, fault.content)
        window, most_tokens = self._limits(asked)
        if self.window is None:
            said = Said.simply(asked, self._content(asked))
            if most_tokens is None or count_tokens(said.text) <= most_tokens:
                return said
            kept, count = first_tokens(said.text, most_tokens)
            return Said(kept, said.read, count, "length")

        window = window or self.window
        messages = asked.body["messages"]
        text = "\n\n".join(str(message.get("content") or "") for message in messages)
        read = count_tokens(text) + _TOKENS_OF_TEMPLATE * len(messages)
        if read > window:
            asked, read = self._shortened(asked, text, read, window)

        written = self._content(asked)
        room = max(0, window - read)
        kept, count = first_tokens(written, min(room, most_tokens or room))
        return Said(kept, read, count, "stop" if kept == written else "length")

    def _shortened(self, asked: Asked, text: str, read: int, window: int) -> tuple[Asked, int]:  # noqa: ARG002
        """Return what is left of a question that does not fit into the window, and its tokens.

        Raises:
            PromptTooLongError: If the server refuses such questions.
        """
        raise PromptTooLongError(
            f"This model's maximum context length is {window} tokens. However, your messages "
            f"resulted in {read} tokens. Please reduce the length of the messages."
        )

    def _limits(self, asked: Asked) -> tuple[int | None, int | None]:
        """Return the window and the length of the reply that a request asks for, if it does."""
        return None, asked.body.get("max_tokens")

    def _content(self, asked: Asked) -> str:
        """Return what the model writes."""
        if asked.options:
            chosen = self.choose(asked)
            # in the order of the schema, as servers write it that keep to one
            asks_reason = "reason" in (asked.schema or {}).get("properties", {})
            reason = {"reason": f"I prefer {chosen}."} if asks_reason else {}
            return json.dumps({**chosen_reply(asked, chosen), **reason})
        if self.write is None:
            return self.choose(asked)

        text = self.write(asked.prompt, asked.schema)
        return text if isinstance(text, str) else json.dumps(text)

    def _require_possible(self, fault: Fault, path: str | None) -> None:
        if fault.reply is None and path is not None and path not in self._asking:
            raise FieldValueError(
                f"a fault of kind {fault.name!r} changes what a model says, but {path} asks no "
                "model"
            )


async def _cancel_all_others() -> None:
    """Cancel every other task of the loop, including those that begin meanwhile."""
    this = asyncio.current_task()
    while others := asyncio.all_tasks() - {this}:
        for task in others:
            task.cancel()

        await asyncio.wait(others)
        # transports close, and connections accepted just now begin their conversation
        await asyncio.sleep(0)

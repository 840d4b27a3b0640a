"""The base of all model servers for tests: HTTP on loopback, slots, answers and faults."""

from __future__ import annotations

import json
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, ClassVar, Self, TypedDict

from prism.errors import FieldValueError
from prism.testing._server.exchange import Exchange, Forms
from prism.testing._server.faults import Fault
from prism.testing._server.wire import Asked, Said, chosen_reply, count_tokens, first_tokens

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.01

Latency = float | Callable[[], float]
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


class ModelServer(ABC):
    """Serves models on a free port of loopback, from a thread of its own.

    Args:
        models: Names of the models that it has.
        choose: Returns the answer to a question. Questions call it one after another.
        write: Returns the model's text for questions without options; called in the server's thread
            with the prompt and the schema of the answer (None for a text). Defaults to `choose`.
        latency: Seconds that each answer of a model takes, or a function that returns them.
        window: Tokens of prompt and reply together; None for no limit, and none told.
        restarts: Seconds for which the server is away, by the number of questions after which it
            stops, such as ``{400: 4.0}``.
        slots: Number of simultaneous answers; further questions wait. None for no limit.
        port: Port to listen on; by default any free one.

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

    _forms: ClassVar[Forms]
    """The forms of its errors and of other things that a fault sends."""

    _asking: ClassVar[Collection[str]]
    """Paths that ask a model, so a fault can change its reply."""

    def __init__(
        self,
        models: Iterable[str],
        *,
        choose: Callable[[Asked], str] = first_option,
        write: Callable[[str, Mapping[str, Any] | None], Any] | None = None,
        latency: Latency = 0.0,
        window: int | None = None,
        restarts: Mapping[int, float] | None = None,
        slots: int | None = None,
        port: int = 0,
    ) -> None:
        if slots is not None and slots < 1:
            raise FieldValueError(f"slots must be 1 or more, or None for no limit, got {slots}")
        if window is not None and window < 2:
            raise FieldValueError(f"window must be 2 tokens or more, got {window}")

        self.models: tuple[str, ...] = tuple(models)
        self.choose = choose
        self.write = write
        self.latency: Latency = latency
        self.window: int | None = window

        self.questions: list[Asked] = []
        self.asked: int = 0
        self.most_at_once: int = 0
        self.busy_seconds: float = 0.0

        self._restarts = dict(restarts or {})
        self._loaded: dict[str, int | None] = {}
        self._faults: dict[str, deque[Fault]] = {}
        self._lasting: dict[str, Fault] = {}
        self._running = 0
        self._free = None if slots is None else threading.Semaphore(slots)
        self._lock = threading.RLock()

        self._port = port
        self._listening: _Listening | None = None
        self._stopped = threading.Event()

    @property
    def host(self) -> str:
        """Address of the server, such as ``http://127.0.0.1:40001``."""
        return f"http://{_HOST}:{self._port}"

    @property
    def url(self) -> str:
        """The same address, under the usual name in test servers."""
        return self.host

    @property
    def open_connections(self) -> int:
        """Number of connections that are open now."""
        return 0 if self._listening is None else len(self._listening.connections)

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
        if self._listening is not None:
            raise RuntimeError(f"the fake server is already running, at {self.host}")

        self._stopped.clear()
        self._open()

    def stop(self) -> None:
        """Stop serving, and cut off all connections."""
        self._stopped.set()
        with self._lock:
            self._close()

    def __enter__(self) -> Self:
        """Start serving."""
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop serving."""
        self.stop()

    def _open(self) -> None:
        self._listening = _Listening(self._port, self._answer, self._forms)
        self._port = self._listening.server_address[1]

    def _close(self) -> None:
        if self._listening is not None:
            self._listening.close()
        self._listening = None
        self._loaded.clear()

    def _restart(self, seconds: float) -> None:
        with self._lock:
            self._close()
        self._stopped.wait(seconds)
        with self._lock:
            if not self._stopped.is_set():
                self._open()

    def _answer(self, exchange: Exchange) -> None:
        try:
            fault = self._next_fault(exchange.path)
            if fault is not None and fault.reply is not None:
                fault.reply(exchange)
            else:
                self._route(exchange, _json_of(exchange.body), fault)
        except ConnectionError:
            raise
        except PromptTooLongError as error:
            exchange.refuse(400, str(error))
        except json.JSONDecodeError as error:
            exchange.refuse(400, f"invalid JSON: {error}")
        except Exception as error:
            # an error in the answering itself, such as in `choose`, is a 500 as on a real server
            if exchange.has_begun:
                exchange.drop()
            else:
                exchange.refuse(500, f"{type(error).__name__}: {error}")

    def _next_fault(self, path: str) -> Fault | None:
        coming = self._faults.get(path)
        return self._lasting.get(path) or (coming.popleft() if coming else None)

    @abstractmethod
    def _route(self, exchange: Exchange, body: Any, fault: Fault | None) -> None:
        """Answer a request with this JSON; None without a body."""

    @abstractmethod
    def _reply(self, asked: Asked, exchange: Exchange, fault: Fault | None) -> None:
        """Answer a question to a model that the server has."""

    @abstractmethod
    def _read(self, path: str, body: Any) -> Asked:
        """Return the question of a request.

        Raises:
            AttributeError, IndexError, KeyError, TypeError: If the request lacks a part of it.
        """

    def _counts(self, asked: Asked) -> bool:  # noqa: ARG002
        """Return True for what is a question, and not only a request to load a model."""
        return True

    def _ask(self, exchange: Exchange, body: Any, fault: Fault | None) -> None:
        try:
            asked = self._read(exchange.path, body)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            exchange.refuse(400, f"invalid request: {type(error).__name__}: {error}")
            return

        if self._counts(asked):
            self._record(asked)
        with self._slot(exchange):
            self._make_answer(asked, exchange, fault)

    def _record(self, asked: Asked) -> None:
        with self._lock:
            self.asked += 1
            self.questions.append(asked)
            away = self._restarts.pop(self.asked, None)
        if away is not None:
            threading.Thread(target=self._restart, args=(away,), daemon=True).start()

    @contextmanager
    def _slot(self, exchange: Exchange) -> Iterator[None]:
        """Wait for a slot, and count the time that it is in use."""
        while self._free is not None and not self._free.acquire(blocking=False):
            exchange.wait(_POLL_SECONDS)

        began = time.monotonic()
        with self._lock:
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                self.busy_seconds += time.monotonic() - began
            if self._free is not None:
                self._free.release()

    def _make_answer(self, asked: Asked, exchange: Exchange, fault: Fault | None) -> None:
        fault = fault or self._next_fault(_ANY_QUESTION)
        if fault is not None and fault.reply is not None:
            fault.reply(exchange)
            return

        exchange.wait(self.latency() if callable(self.latency) else self.latency)
        if asked.model not in self.models:
            exchange.refuse(404, f"model {asked.model!r} not found")
            return

        self._loaded[asked.model] = self._limits(asked)[0]
        self._reply(asked, exchange, fault)

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
        """Return what the model writes; the functions of a test are called one at a time."""
        with self._lock:
            return self._written(asked)

    def _written(self, asked: Asked) -> str:
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


class _Listening(ThreadingTCPServer):
    """A listening socket, with a thread for each connection.

    Args:
        port: The port; 0 for any free one.
        answer: Answers a request.
        forms: The forms of errors.
    """

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, port: int, answer: Callable[[Exchange], None], forms: Forms) -> None:
        super().__init__((_HOST, port), _Connection)
        self.answer = answer
        self.forms = forms
        self.connections: set[Any] = set()
        self._thread = threading.Thread(
            target=self.serve_forever, args=(_POLL_SECONDS,), name="prism-server", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and cut off all connections."""
        self.shutdown()
        self.server_close()
        for connection in [*self.connections]:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take in a connection."""
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that go away while they are read from."""


class _Connection(BaseHTTPRequestHandler):
    """One connection, and the requests on it."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    disable_nagle_algorithm = True
    server: _Listening

    def do_POST(self) -> None:
        """Answer a request."""
        try:
            self.server.answer(Exchange(self, self.server.forms))
        except ConnectionError:
            self.close_connection = True

    def do_GET(self) -> None:
        """Answer a request."""
        self.do_POST()

    def log_message(self, *_message: object) -> None:
        """Write nothing."""


def _json_of(body: bytes) -> Any:
    return json.loads(body.decode(errors="replace")) if body else None

"""The base of all model servers for tests: HTTP on loopback, slots, answers and faults."""

from __future__ import annotations

import json
import socket
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from socketserver import ThreadingTCPServer
from typing import Any, ClassVar, Self

from prism.errors import FieldValueError
from prism.testing._faults import Exchange, Fault
from prism.testing._wire import Asked, Reply, count_tokens, first_tokens, likely_tokens

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.01

_ANY_QUESTION = ""
"""Represents the path of every question to a model where faults are kept by path."""


class RefusedError(Exception):
    """A request that the server refuses with a status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status: int = status


def first_option(asked: Asked) -> str:
    """Choose the first option."""
    return asked.options[0] if asked.options else "Hello."


class ModelServer(ABC):
    """Serves models on a free port of loopback, from a thread of its own; see `FakeOllama`."""

    _chat: ClassVar[str]
    """The path of questions."""

    def __init__(
        self,
        *,
        models: Iterable[str] = ("llama3.2",),
        choose: Callable[[Asked], str] = first_option,
        write: Callable[[str, Mapping[str, Any] | None], Any] | None = None,
        logprobs: bool = True,
        latency: float | Callable[[], float] = 0.0,
        slots: int | None = None,
    ) -> None:
        if isinstance(models, str):
            raise FieldValueError(f"models must be a list of names, such as [{models!r}]")
        if slots is not None and slots < 1:
            raise FieldValueError(f"slots must be 1 or more, or None for no limit, got {slots}")

        self.models: tuple[str, ...] = tuple(models)
        self.choose = choose
        self.write = write
        self.logprobs: bool = logprobs
        self.latency: float | Callable[[], float] = latency

        self.questions: list[Asked] = []
        self.most_at_once: int = 0

        self._faults: dict[str, deque[Fault]] = {}
        self._lasting: dict[str, Fault] = {}
        self._running = 0
        self._free = None if slots is None else threading.Semaphore(slots)
        self._lock = threading.RLock()

        self._port = 0
        self._listening: _Listening | None = None

    @property
    def host(self) -> str:
        """Address of the server, such as ``http://127.0.0.1:40001``."""
        return f"http://{_HOST}:{self._port}"

    @property
    def url(self) -> str:
        """The same address, under the usual name in test servers."""
        return self.host

    @property
    def asked(self) -> int:
        """Number of questions asked."""
        return len(self.questions)

    @property
    def open_connections(self) -> int:
        """Number of connections that are open now."""
        return 0 if self._listening is None else len(self._listening.connections)

    def fail(self, *faults: Fault, path: str | None = None) -> None:
        """Make the next questions fail, one with each fault; then the server answers again.

        Args:
            faults: The faults, in order.
            path: Path whose requests fail, such as ``/api/tags``; by default questions to a model.
        """
        self._faults.setdefault(path or _ANY_QUESTION, deque()).extend(faults)

    def fail_always(self, fault: Fault, path: str | None = None) -> None:
        """Make every question fail until `recover`.

        Args:
            fault: The fault.
            path: As in `fail`.
        """
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

        self._listening = _Listening(
            self._port, answer=self._answer, error=self._error, tool_call=self._tool_call
        )
        self._port = self._listening.server_address[1]

    def stop(self) -> None:
        """Stop serving, and cut off all connections."""
        if self._listening is not None:
            self._listening.close()
        self._listening = None

    def __enter__(self) -> Self:
        """Start serving."""
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop serving."""
        self.stop()

    @abstractmethod
    def _error(self, message: str, status: int) -> Any:
        """Return the body of an error."""

    @abstractmethod
    def _tool_call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the reply to a chat that calls a tool."""

    @abstractmethod
    def _route(self, exchange: Exchange, body: Any) -> None:
        """Answer a request with this JSON; None without a body."""

    @abstractmethod
    def _reply(self, question: Asked, fault: Fault | None) -> Any:
        """Return the whole reply to a question."""

    def _answer(self, exchange: Exchange) -> None:
        try:
            fault = self._next_fault(exchange.path)
            if fault is not None and fault.reply is not None:
                fault.reply(exchange)
            else:
                body = exchange.body.decode(errors="replace")
                self._route(exchange, json.loads(body) if body else None)
        except ConnectionError:
            raise
        except RefusedError as refusal:
            exchange.refuse(refusal.status, str(refusal))
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

    def _ask(self, exchange: Exchange, body: Any) -> None:
        is_chat = exchange.path == self._chat
        try:
            prompt = str(body["messages"][-1]["content"]) if is_chat else body.get("prompt", "")
            question = Asked(exchange.path, body["model"], prompt, body)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise RefusedError(400, f"invalid request: {type(error).__name__}: {error}") from error

        if is_chat:
            self.questions.append(question)
        with self._slot(exchange):
            fault = self._next_fault(_ANY_QUESTION)
            if fault is not None and fault.reply is not None:
                fault.reply(exchange)
                return

            exchange.wait(self.latency() if callable(self.latency) else self.latency)
            if question.model not in self.models:
                raise RefusedError(404, f"model {question.model!r} not found")

            exchange.respond(200, self._reply(question, fault))

    @contextmanager
    def _slot(self, exchange: Exchange) -> Iterator[None]:
        """Wait for a slot, and count those in use."""
        while self._free is not None and not self._free.acquire(blocking=False):
            exchange.wait(_POLL_SECONDS)

        with self._lock:
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
            if self._free is not None:
                self._free.release()

    def _answer_to(self, question: Asked, fault: Fault | None) -> Reply:
        """Return what the model says, as many tokens as the reply may have."""
        read, most = count_tokens(question.prompt), self._most_tokens(question)
        if fault is not None and fault.content is not None:
            return Reply(fault.content, read, len(fault.content.split()))

        text = self._content(question)
        if most is None or count_tokens(text) <= most:
            return Reply(text, read, len(text.split()))
        kept, count = first_tokens(text, most)
        return Reply(kept, read, count, "length")

    def _tokens_of(self, question: Asked, answer: Reply, fault: Fault | None) -> list[Any] | None:
        """Return the tokens of a reply with their alternatives, if the request asks for them."""
        if not (self.logprobs and question.body.get("logprobs")):
            return None
        return likely_tokens(question, answer.text, None if fault is None else fault.probabilities)

    @abstractmethod
    def _most_tokens(self, question: Asked) -> int | None:
        """Return the tokens that a reply may have by its request; None for any number."""

    def _content(self, question: Asked) -> str:
        """Return what the model writes; the functions of a test are called one at a time."""
        with self._lock:
            if not question.options:
                if self.write is None:
                    return self.choose(question)
                text = self.write(question.prompt, question.schema)
                return text if isinstance(text, str) else json.dumps(text)

            chosen = self.choose(question)
        reply = {"next_state": chosen}
        if letters := {text: letter for letter, text in question.letters.items()}:
            reply = {"letter": letters.get(chosen, chosen)}
        return json.dumps(reply)


class _Listening(ThreadingTCPServer):
    """A listening socket, with a thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, port: int, **answers: Callable[..., Any]) -> None:
        super().__init__((_HOST, port), Exchange)
        # an exchange calls what answers it, and what gives errors and calls of tools their form
        vars(self).update(answers)
        self.connections: set[Any] = set()
        threading.Thread(
            target=self.serve_forever, args=(_POLL_SECONDS,), name="prism-server", daemon=True
        ).start()

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

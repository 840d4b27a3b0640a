"""A model server for tests: real HTTP on loopback, Ollama's wire format, programmable answers and faults."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from prism.errors import FieldValueError
from prism.testing._server.exchange import Exchange, Request
from prism.testing._server.faults import Fault

_CREATED = "2026-01-01T00:00:00Z"
_HOST = "127.0.0.1"
_LIKELY = 0.9
_MOST_STATE_BYTES = 65_536
_LOAD = "/api/generate"
_QUESTION = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that reached the server.

    Args:
        path: ``/api/chat`` or ``/v1/systemone``.
        model: Model asked.
        prompt: What it was asked: the last message, or the decision's state and, when choosing, its
            instructions.
        options: What it may answer: the schema's enum, or the criteria.
        body: The whole request.
    """

    path: str
    model: str
    prompt: str
    options: tuple[str, ...]
    body: Mapping[str, Any] = field(repr=False)


def first_option(asked: Asked) -> str:
    """Choose the first option."""
    return asked.options[0] if asked.options else "Hello."


class FakeOllama:
    """Serves Ollama's API on a free port of loopback, from a thread of its own.

    It answers ``/api/chat`` (also streaming), ``/v1/systemone``, ``/api/tags``, ``/api/show``,
    ``/api/version`` and ``/api/generate`` (which warms a model up). Use it as a context manager::

        with FakeOllama(latency=0.1, slots=4) as server:
            client = OllamaChatClient(server.host, "llama3.2")

    Args:
        models: Models that can chat.
        decision_models: Models that can also decide.
        choose: Gives the answer to a question, from the server's thread; the first option by
            default.
        latency: Seconds that each answer of a model takes.
        slots: Answers made at once; the others wait. None for no limit.
        queue_limit: How many may wait before the next is refused with 503. None for no limit.
        decides: Whether ``/v1/systemone`` exists; servers before 0.35 have none.
        version: Version that the server reports.
        remember: How many questions to keep, the last ones; all by default, which a long run may
            not have room for.

    Raises:
        FieldValueError: If there is no slot, or models are given as one text.

    Attributes:
        questions: What it was asked, in order of arrival.
        asked: How many questions there were.
        most_at_once: Most answers that were being made at the same time.
        busy_seconds: Seconds that slots were busy, added up over the slots.
        open_connections: Connections that clients hold open now.
    """

    def __init__(
        self,
        *,
        models: Iterable[str] = ("llama3.2",),
        decision_models: Iterable[str] = ("nimble",),
        choose: Callable[[Asked], str] = first_option,
        latency: float = 0.0,
        slots: int | None = None,
        queue_limit: int | None = None,
        decides: bool = True,
        version: str = "0.35.0",
        remember: int | None = None,
    ) -> None:
        if isinstance(models, str) or isinstance(decision_models, str):
            raise FieldValueError(
                f"models must be several names, such as [{models!r}], not one text"
            )

        if slots is not None and slots < 1:
            raise FieldValueError(f"slots must be 1 or more, or None for no limit, got {slots}")

        self.decision_models: tuple[str, ...] = tuple(decision_models)
        self.models: tuple[str, ...] = (*models, *self.decision_models)
        self.choose = choose
        self.latency = latency
        self.decides = decides
        self.version = version
        self.questions: list[Asked] = []
        self.asked: int = 0
        self.most_at_once: int = 0
        self.busy_seconds: float = 0.0
        self.open_connections: int = 0
        self._slots = slots
        self._queue_limit = queue_limit
        self._remember = remember
        self._faults: dict[str, deque[Fault]] = {}
        self._lasting: dict[str, Fault] = {}
        self._running = 0
        self._waiting = 0
        self._port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopping: asyncio.Event | None = None
        self._free: asyncio.Semaphore | None = None

    @property
    def host(self) -> str:
        """Address of the server, such as ``http://127.0.0.1:40001``."""
        return f"http://{_HOST}:{self._port}"

    @property
    def url(self) -> str:
        """The address again, by the name that test servers usually have for it."""
        return self.host

    def fail(self, *faults: Fault, path: str | None = None) -> None:
        """Let the next questions go wrong, each in its own way; after them the server answers again.

        Args:
            faults: How.
            path: Path whose requests go wrong, such as ``/api/show``, instead of the questions to
                the model.

        Raises:
            FieldValueError: If what a model says is to go wrong on a path where none is asked.
        """
        for fault in faults:
            _require_possible(fault, path)

        self._faults.setdefault(path or _QUESTION, deque()).extend(faults)

    def fail_always(self, fault: Fault, path: str | None = None) -> None:
        """Let every question go wrong until `recover`.

        Args:
            fault: How.
            path: As in `fail`.

        Raises:
            FieldValueError: As `fail`.
        """
        _require_possible(fault, path)
        self._lasting[path or _QUESTION] = fault

    def recover(self) -> None:
        """Forget all faults."""
        self._faults.clear()
        self._lasting.clear()

    def start(self) -> None:
        """Start serving; on the same port as before, if it has been stopped.

        Raises:
            RuntimeError: If it is running already.
            OSError: If another process has taken the port.
        """
        if self._thread is not None:
            raise RuntimeError(f"the fake Ollama server is running already, at {self.host}")

        started: Future[None] = Future()
        thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        thread.start()
        started.result(timeout=10)
        self._thread = thread

    def stop(self) -> None:
        """Stop serving, and cut all connections off."""
        loop, stopping, thread = self._loop, self._stopping, self._thread
        if loop is not None and stopping is not None and thread is not None:
            loop.call_soon_threadsafe(stopping.set)
            thread.join(timeout=10)

        self._loop = self._stopping = self._thread = None

    def __enter__(self) -> Self:
        """Start serving."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        self._stopping = asyncio.Event()
        self._free = None if self._slots is None else asyncio.Semaphore(self._slots)
        self._running = self._waiting = self.open_connections = 0

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.open_connections += 1
            try:
                with suppress(ConnectionError, asyncio.CancelledError):
                    await self._converse(reader, Exchange(reader, writer))
            finally:
                self.open_connections -= 1
                writer.transport.abort()

        server = await asyncio.start_server(connected, _HOST, self._port, backlog=1024)
        self._port = server.sockets[0].getsockname()[1]
        started.set_result(None)
        await self._stopping.wait()
        server.close()
        await _end_all_others()

    async def _converse(self, reader: asyncio.StreamReader, exchange: Exchange) -> None:
        while (request := await exchange.next_request()) is not None:
            answering = asyncio.create_task(self._answer(request, exchange))
            await self._unless_gone(reader, answering)
            if not exchange.ready_for_next():
                return

    async def _unless_gone(
        self, reader: asyncio.StreamReader, answering: asyncio.Task[None]
    ) -> None:
        """Wait for an answer, and give it up when the client goes away, as a real server does."""
        try:
            while not answering.done():
                await asyncio.wait({answering}, timeout=0.05)
                if reader.at_eof():
                    answering.cancel()

            await answering
        finally:
            answering.cancel()

    async def _answer(self, request: Request, exchange: Exchange) -> None:
        """Answer a request; what the answering itself stumbles over is a 500, as on a real server."""
        try:
            fault = self._next_fault(request.path)
            if fault is not None and fault.reply is not None:
                await fault.reply(exchange)
            else:
                await self._route(request, exchange, fault)
        except ConnectionError:
            raise
        except Exception as error:
            if exchange.nothing_sent():
                await exchange.respond(500, {"error": f"{type(error).__name__}: {error}"})
            else:
                exchange.drop()

    def _next_fault(self, path: str) -> Fault | None:
        coming = self._faults.get(path)
        return self._lasting.get(path) or (coming.popleft() if coming else None)

    async def _route(self, request: Request, exchange: Exchange, fault: Fault | None) -> None:
        routes: dict[tuple[str, str], Callable[[Any], Any]] = {
            ("GET", "/api/version"): lambda _: {"version": self.version},
            ("GET", "/api/tags"): lambda _: {
                "models": [{"model": name, "name": name} for name in self.models]
            },
            ("POST", "/api/show"): self._show,
        }
        asking = ("/api/chat", _LOAD, *(["/v1/systemone"] if self.decides else []))
        route = routes.get((request.method, request.path))
        if route is not None:
            payload = route(request.body)
            await exchange.respond(404 if "error" in payload else 200, payload)
        elif request.method == "POST" and request.path in asking:
            await self._ask(request, exchange, fault)
        else:
            await exchange.respond(404, b"404 page not found", [])

    def _show(self, body: Any) -> dict[str, Any]:
        model = body.get("model") if isinstance(body, dict) else None
        if model not in self.models:
            return _missing(model)

        capabilities = ["completion", *(["decision"] if model in self.decision_models else [])]
        return {"model_info": {}, "details": {"family": "fake"}, "capabilities": capabilities}

    async def _ask(self, request: Request, exchange: Exchange, fault: Fault | None) -> None:
        try:
            asked = _asked(request.path, request.body)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            await exchange.respond(
                400, {"error": f"invalid request: {type(error).__name__}: {error}"}
            )
            return

        if asked.path != _LOAD:
            self._note(asked)

        full = self._free is not None and self._free.locked()
        if full and self._queue_limit is not None and self._waiting >= self._queue_limit:
            await exchange.respond(
                503, {"error": "server busy, please try again. maximum pending requests exceeded"}
            )
            return

        async with self._slot():
            await self._make_answer(asked, exchange, fault)

    def _note(self, asked: Asked) -> None:
        self.asked += 1
        self.questions.append(asked)
        if self._remember is not None:
            del self.questions[: max(0, len(self.questions) - self._remember)]

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        """Wait for a slot, and count the time that it is in use."""
        if self._free is not None:
            self._waiting += 1
            try:
                await self._free.acquire()
            finally:
                self._waiting -= 1

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
        fault = fault or self._next_fault(_QUESTION)
        if fault is not None and fault.reply is not None:
            await fault.reply(exchange)
            return

        await asyncio.sleep(self.latency)

        if asked.model not in self.models:
            await exchange.respond(404, _missing(asked.model))
        elif asked.path == "/v1/systemone":
            await self._decide(asked, exchange, fault)
        elif asked.path == _LOAD:
            await exchange.respond(
                200, {**_envelope(asked.model), "response": "", "done_reason": "load"}
            )
        else:
            await self._chat(asked, exchange, fault)

    async def _chat(self, asked: Asked, exchange: Exchange, fault: Fault | None) -> None:
        content = (
            json.dumps({"next_state": self.choose(asked)}) if asked.options else self.choose(asked)
        )
        if fault is not None and fault.content is not None:
            content = fault.content

        counts = {
            "prompt_eval_count": len(asked.prompt.split()),
            "eval_count": len(content.split()),
        }
        if asked.body.get("stream") is False:  # streaming is what Ollama does unless told otherwise
            message = {"role": "assistant", "content": content}
            await exchange.respond(200, {**_envelope(asked.model), **counts, "message": message})
            return

        await exchange.begin(200)

        for piece in (content[: len(content) // 2], content[len(content) // 2 :]):
            line = {
                **_envelope(asked.model),
                "done": False,
                "message": {"role": "assistant", "content": piece},
            }
            await exchange.send(json.dumps(line).encode() + b"\n")

        end = {**_envelope(asked.model), **counts, "message": {"role": "assistant", "content": ""}}
        await exchange.send(json.dumps(end).encode() + b"\n")
        await exchange.end()

    async def _decide(self, asked: Asked, exchange: Exchange, fault: Fault | None) -> None:
        if asked.model not in self.decision_models:
            await exchange.respond(
                400, {"error": f"model {asked.model!r} does not support decisions"}
            )
            return

        if len(asked.prompt.encode()) > _MOST_STATE_BYTES:
            await exchange.respond(
                400, {"error": f"state is larger than {_MOST_STATE_BYTES} bytes"}
            )
            return

        answers = {}
        for name, question in asked.body["questions"].items():
            options = tuple(question["criteria"])
            prompt = f"{asked.prompt}\n\n{_text(question['instructions'])}"
            chosen = self.choose(Asked(asked.path, asked.model, prompt, options, asked.body))
            weights = (
                _weights(chosen, options)
                if fault is None or fault.probabilities is None
                else fault.probabilities
            )
            answers[name] = {
                "type": "choice",
                "choice": chosen,
                "probabilities": weights,
                "confidence": _LIKELY,
            }

        usage = {"input_tokens": len(asked.prompt.split()), "output_tokens": 0}
        await exchange.respond(200, {"model": asked.model, "answers": answers, "usage": usage})


async def _end_all_others() -> None:
    """Cancel every other task of the loop, also those that begin meanwhile, as connections just accepted do."""
    this = asyncio.current_task()
    while others := asyncio.all_tasks() - {this}:
        for task in others:
            task.cancel()

        await asyncio.wait(others)
        await asyncio.sleep(0)  # transports close, and those just made begin their conversation


def _require_possible(fault: Fault, path: str | None) -> None:
    if fault.reply is None and path not in (None, "/api/chat", "/v1/systemone"):
        raise FieldValueError(
            f"a fault of kind {fault.name!r} changes what a model says, and {path} asks none"
        )


def _asked(path: str, body: Any) -> Asked:
    """Read a question; what it lacks is an AttributeError, IndexError, KeyError or TypeError."""
    options: list[str] = []
    if path == "/v1/systemone":
        prompt = _text(body["state"])
        options = [
            option for question in body["questions"].values() for option in question["criteria"]
        ]
    elif path == "/api/chat":
        prompt = str(body["messages"][-1]["content"])
        schema = body.get("format")
        if isinstance(schema, dict):
            options = schema.get("properties", {}).get("next_state", {}).get("enum", [])
    else:
        prompt = body.get("prompt", "")

    return Asked(path, body["model"], prompt, tuple(dict.fromkeys(options)), body)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content)


def _weights(chosen: str, options: tuple[str, ...]) -> dict[str, float]:
    if len(options) == 1:
        return {chosen: 1.0}
    others = (1 - _LIKELY) / (len(options) - 1)
    return {option: _LIKELY if option == chosen else others for option in options}


def _envelope(model: str) -> dict[str, Any]:
    return {"model": model, "created_at": _CREATED, "done": True}


def _missing(model: object) -> dict[str, Any]:
    return {"error": f"model {model!r} not found"}

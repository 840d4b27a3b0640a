"""Model servers by their dialects, Ollama's and OpenAI's, and one model on several of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Self

import httpx
import ollama

from prism.errors import (
    BudgetSpentError,
    LLMError,
    ModelMissingError,
    TimedOutError,
    UnreachableError,
)
from prism.llm._addresses import Kind, check_address, same_address, with_port, with_version
from prism.llm._servers import LOOK_SECONDS, ModelServer
from prism.llm._settings import filled_in
from prism.reasoner._calls import Call
from prism.reasoner._faults import NO_SUCH_PATH
from prism.reasoner._replies import Request, prompted
from prism.reasoner._slots import Pool
from prism.reasoner._spending import Cost, count_of

_GREETING = prompted("Say hello.")

_CLEAR = (BudgetSpentError, ModelMissingError, TimedOutError, UnreachableError)
"""Failures that say nothing about the dialect of a server."""

_UNLIMITED: Mapping[str, Any] = {"top_p": 1, "top_k": 0, "min_p": 0}
"""Sampling without limits, so that what is drawn has the model's own probabilities."""


async def _has_path(client: httpx.AsyncClient, address: str) -> bool:
    """Return whether a server has a path: it answers with data, or with a failure of another kind.

    Without a key, some refuse to answer, and litellm fails. LM Studio has no status for a path that
    it does not have.
    """
    try:
        response = await client.get(address, timeout=LOOK_SECONDS)
        if response.is_error:
            return response.status_code not in NO_SUCH_PATH
        data = response.json()
    except (httpx.HTTPError, LLMError, ValueError):
        return False
    return isinstance(data, dict) and "error" not in data


class OllamaServer(ModelServer):
    """An Ollama server, asked by Ollama's own client."""

    key_variable = "OLLAMA_API_KEY"
    unreachable = "check that 'ollama serve' is running there"
    no_model = "run  ollama pull {model}"
    no_key = "run  ollama signin  on that machine, or give a key in OLLAMA_API_KEY"

    def connect(self) -> ollama.AsyncClient:
        """Return a new client of Ollama's."""
        return ollama.AsyncClient(with_port(self.address), **self._http)

    async def sent(self, call: Call, cost: Cost, seconds: float | None = None) -> Any:
        """Return the result of a call.

        Raises:
            ModelMissingError: If the server speaks OpenAI's dialect instead.
            LLMError: If it fails in another way.
        """
        try:
            return await super().sent(call, cost, seconds)
        except LLMError as error:
            may_be_another = not isinstance(error, _CLEAR) and error.status != 401
            if self.answers or not may_be_another or not await self._is_another():
                raise
            problem = f"{error}: openai:{self.model}@{self.address} answers there"
            raise ModelMissingError(problem, host=self.address) from error

    def require_reply(self, reply: Any) -> None:
        """Refuse an error with status 200, also where the client does not look at it."""
        super().require_reply(reply)
        if isinstance(reply, ollama.GenerateResponse) and not reply.done:
            raise self.bad("has loaded nothing")

    async def _is_another(self) -> bool:
        """Return whether the server has the paths of OpenAI's API, and not those of Ollama's."""
        address = with_port(self.address).rstrip("/")
        async with httpx.AsyncClient(**self._http) as client:
            if await _has_path(client, f"{address}/api/version"):
                return False
            return await _has_path(client, f"{with_version(address).rstrip('/')}/models")

    def call(self, request: Request[Any]) -> Call:
        """Return the call for a conversation."""
        settings = self.settings
        options = {
            "temperature": settings["temperature"],
            "seed": settings["seed"] + request.variation,
            # another value of it would load the model again
            "num_ctx": settings["window"],
            "num_predict": request.tokens(settings["reply_tokens"]),
            **(_UNLIMITED if settings["temperature"] or request.chances else {}),
        }
        named = {
            "model": self.model,
            "messages": list(request.messages),
            "format": request.schema,
            "options": {name: value for name, value in options.items() if value is not None},
            "think": settings["think"],
            "keep_alive": settings["keep_alive"],
        }
        named |= self.chances_of(request)
        arguments = {name: value for name, value in named.items() if value is not None}
        return Call(self.client.chat, (), arguments)

    async def models(self) -> list[str]:
        """List the models that the server has."""
        reply = await self.look(lambda: Call(self.client.list, (), {}))
        return [str(each.model) for each in reply.models]

    async def load(self, cost: Cost | None = None) -> None:
        """Load the model, so that the first question does not wait for it."""
        named = {"model": self.model, "keep_alive": self.settings["keep_alive"]}
        del cost  # it costs nothing
        await self.ready()
        call = Call(self.client.generate, (), named)
        await self.sent(call, Cost(), self.settings["load_timeout"])

    async def usable_window(self) -> int | None:
        """Return the window that is asked for, with which Ollama loads the model again."""
        return self.settings["window"] or await self.reported_window()

    async def reported_window(self) -> int | None:
        """Return the window with which the server has loaded the model."""
        running = await self.look(lambda: Call(self.client.ps, (), {}))
        names = {self.model, self.model if ":" in self.model else f"{self.model}:latest"}
        sizes = [each.context_length for each in running.models if {each.model, each.name} & names]
        return count_of(sizes[0]) if sizes else None


class OpenAIServer(ModelServer):
    """A server that speaks OpenAI's API: vLLM, llama.cpp, LM Studio and others."""

    key_variable = "OPENAI_API_KEY"
    unreachable = "check that the server is running, and that the port is right"
    no_model = "start the server with {model}, or name a model that it lists"
    no_key = "give its key in OPENAI_API_KEY, or in a variable of your own (--key-variable)"

    def __init__(self, address: str, model: str, settings: Mapping[str, Any]) -> None:
        super().__init__(address, model, settings)
        self._base = with_version(self.address).rstrip("/")

    def connect(self) -> httpx.AsyncClient:
        """Return a new client of HTTP."""
        return httpx.AsyncClient(**self._http)

    async def _requested(self, address: str, body: Mapping[str, Any] | None = None) -> Any:
        method = "GET" if body is None else "POST"
        response = await self.client.request(method, address, json=body)
        response.raise_for_status()
        # a text that ends by length may end within a character, which `text` replaces
        return json.loads(response.text)

    def call(self, request: Request[Any]) -> Call:
        """Return the call for a conversation."""
        settings = self.settings
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(request.messages),
            "temperature": settings["temperature"],
            "seed": settings["seed"] + request.variation,
            "max_tokens": request.tokens(settings["reply_tokens"]),
            "response_format": None if request.schema is None else _response_format(request.schema),
            **(_UNLIMITED if settings["temperature"] or request.chances else {}),
            **_thinking(settings["think"]),
        }
        body |= self.chances_of(request)
        sent = {name: part for name, part in body.items() if part is not None}
        return Call(self._completed, (), sent)

    async def _completed(self, **body: Any) -> Any:
        reply = await self._requested(f"{self._base}/chat/completions", body)
        if not (isinstance(reply, dict) and (reply.get("choices") or "error" in reply)):
            raise self.bad("sent a reply without choices")
        return reply

    async def models(self) -> list[str]:
        """List the models that the server has."""
        return [str(each.get("id")) for each in await self._listed()]

    async def _listed(self) -> list[dict[str, Any]]:
        address = f"{self._base}/models"
        listed = await self.look(lambda: Call(self._requested, (address,), {}))
        data = listed.get("data") if isinstance(listed, dict) else None
        return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []

    async def load(self, cost: Cost | None = None) -> None:
        """Ask for a token, so that the first question does not wait for the model."""
        await self.ready()
        call = self.call(Request(_GREETING, most_tokens=1))
        await self.sent(call, cost or Cost(), self.settings["load_timeout"])

    async def reported_window(self) -> int | None:
        """Return the window that vLLM, SGLang or llama.cpp report."""
        models = [each for each in await self._listed() if each.get("id") == self.model]
        window = count_of(models[0].get("max_model_len")) if models else None
        if window is not None:
            return window

        root = self._base.removesuffix("/v1")
        with suppress(LLMError):
            reply = await self.look(partial(Call, self._requested, (f"{root}/props",), {}))
            return count_of((reply.get("default_generation_settings") or {}).get("n_ctx"))
        return None


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a request with a JSON schema; strict where a strict one can say it."""
    named: dict[str, Any] = {"name": "answer", "schema": dict(schema)}
    members = schema.get("properties", {})
    plain = all(
        each.get("type") in ("string", "number", "integer") and "maxLength" not in each
        for each in members.values()
    )
    if plain and set(schema.get("required", ())) == set(members):
        named["schema"]["additionalProperties"] = False
        named["strict"] = True

    return {"type": "json_schema", "json_schema": named}


def _thinking(think: bool | str | None) -> dict[str, Any]:
    """Return the part of a request on whether, or how much, the model may think first."""
    if think is None:
        return {}
    if isinstance(think, str):
        return {"reasoning_effort": think}
    # vLLM's, llama.cpp's and SGLang's word
    return {"chat_template_kwargs": {"enable_thinking": think}}


# Several servers

_KINDS: dict[str, Any] = {
    "ollama": (OllamaServer, with_port),
    "openai": (OpenAIServer, with_version),
}
"""By kind of server: its class, and the address of an address."""


class ModelPool(Pool):
    """Asks one model on several servers, with a limit on concurrent questions for each.

    Use it in one event loop at a time.

    Args:
        hosts: Addresses of the servers. Repeated ones, in any spelling, count once.
        model: Name of the model, as the server lists it.
        server: The kind of server: ``ollama``, or ``openai`` for vLLM, llama.cpp, LM Studio and
            others that speak OpenAI's API.
        given: The settings of requests, as for `OllamaChatClient`.

    Raises:
        FieldValueError: If an address is invalid, or a setting is out of range.

    Attributes:
        model: Name of the model.
        temperature: Sampling temperature.
        concurrency: Simultaneous questions on all servers together.
    """

    servers: tuple[ModelServer, ...]

    def __init__(
        self,
        hosts: Sequence[str],
        model: str,
        server: Kind = "ollama",
        **options: Any,
    ) -> None:
        settings = filled_in(options)
        self.temperature: float = settings["temperature"]

        kind, full = _KINDS[server]
        distinct: dict[object, str] = {}
        for host in hosts:
            check_address(host)
            distinct.setdefault(same_address(full(host)), host)
        made = [kind(host, model, settings) for host in distinct.values()]
        super().__init__(made, model, attempts=settings["attempts"])

    @property
    def hosts(self) -> list[str]:
        """Addresses of the servers."""
        return [each.address for each in self.servers]

    async def warm_up(
        self, limit: float | None = None, cost: Cost | None = None
    ) -> dict[str, LLMError | None]:
        """Load the model on every server at the same time.

        Args:
            limit: Maximum seconds to wait; by default only the time-out of each load.
            cost: Collects the cost, since a server without a path for loading is asked for a token.

        Returns:
            The error on each server by address, or None.
        """
        total = Cost() if cost is None else cost

        async def load(server: ModelServer) -> LLMError | None:
            try:
                async with asyncio.timeout(limit):
                    await server.load(total)
            except TimeoutError:
                return TimedOutError(f"{server.model} is not loaded at {server.address} yet")
            except LLMError as error:
                return error
            return None

        with self.entered():
            errors = await asyncio.gather(*map(load, self.servers))
        return {each.address: error for each, error in zip(self.servers, errors, strict=True)}

    def is_away(self, error: LLMError) -> bool:
        """Return whether a failure of loading says that every question would fail, too.

        There is no server, no model on it, or none of OpenAI's paths at its address.
        """
        if isinstance(error, UnreachableError):
            return error.is_refused
        has_no_path = error.status in NO_SUCH_PATH and isinstance(self.servers[0], OpenAIServer)
        return has_no_path or isinstance(error, ModelMissingError)

    sends_schemas: ClassVar[bool] = True

    async def smallest_window(self) -> int | None:
        """Return the smallest window that questions have on any server; None if unknown."""
        windows: list[int] = []
        for server in self.servers:
            with suppress(LLMError):
                if (window := await server.usable_window()) is not None:
                    windows.append(window)
        return min(windows, default=None)

    async def close(self) -> None:
        """Close the connections; the next question makes new ones."""
        for each in self.servers:
            await each.close()

    async def __aenter__(self) -> Self:
        """Return the pool itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()


class OllamaChatClient(ModelPool):
    """Asks one model on one Ollama server.

    Args:
        host: Address of the server.
        model: Name of the model, as ``ollama list`` shows it.
        settings: ``concurrency``, simultaneous questions (4): a server answers
            ``OLLAMA_NUM_PARALLEL`` (1 by default) at a time and queues the others without bound, so
            the limit must be set here. ``timeout`` and ``load_timeout``, seconds to wait for one
            reply (60) and for a model to be loaded (600). ``attempts``, requests for one question
            in case of temporary failures (3). ``temperature`` (0), ``seed`` (0), ``think`` (the
            server's default) and ``keep_alive`` (``"30m"``), as Ollama takes them. ``patience``,
            seconds that a server may fail before its questions fail at once (None means 0; 60 in a
            run). ``window`` and ``reply_tokens``, tokens of prompt and reply together, and of the
            reply, which are sent to the server. ``key``, the environment variable with the key
            (``OLLAMA_API_KEY``).

    Raises:
        FieldValueError: If an address is invalid, a setting is out of range, or the key cannot be
            sent in a header.
    """

    def __init__(self, host: str, model: str, **settings: Any) -> None:
        super().__init__([host], model, **settings)

"""The dialects of model servers: Ollama's, by its own client, and OpenAI's, by HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import httpx
import ollama

from prism.errors import (
    BudgetSpentError,
    LLMError,
    ModelMissingError,
    TimedOutError,
    UnreachableError,
)
from prism.llm._servers import LOOK_SECONDS, ModelServer
from prism.llm.addresses import with_port, with_version
from prism.reasoner import Cost
from prism.reasoner.faults import NO_SUCH_PATH
from prism.reasoner.requests import Request, count_of, prompted, without_none
from prism.reasoner.servers import Call

_GREETING = prompted("Say hello.")

_CLEAR = (BudgetSpentError, ModelMissingError, TimedOutError, UnreachableError)
"""Failures that say nothing about the dialect of a server."""


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
            **self.sampling_of(request, settings["temperature"]),
            "seed": settings["seed"] + request.variation,
            # another value of it would load the model again
            "num_ctx": settings["window"],
            "num_predict": request.tokens(settings["reply_tokens"]),
        }
        named = {
            "model": self.model,
            "messages": list(request.messages),
            "format": request.schema,
            "options": without_none(**options),
            "think": settings["think"],
            "keep_alive": settings["keep_alive"],
        }
        named |= self.chances_of(request)
        return Call(self.client.chat, (), without_none(**named))

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
        """Return the window in the settings, with which Ollama reloads the model, or its own."""
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
            **self.sampling_of(request, settings["temperature"]),
            "seed": settings["seed"] + request.variation,
            "max_tokens": request.tokens(settings["reply_tokens"]),
            "response_format": None if request.schema is None else _response_format(request.schema),
            **_thinking(settings["think"]),
        }
        body |= self.chances_of(request)
        return Call(self._completed, (), without_none(**body))

    async def _completed(self, **body: Any) -> Any:
        reply = await self._requested(f"{self._base}/chat/completions", body)
        if not (isinstance(reply, dict) and (reply.get("choices") or "error" in reply)):
            raise self.bad("sent a reply without choices")
        return reply

    async def models(self) -> list[str]:
        """List the models that the server has."""
        return [str(each.get("id")) for each in await self._listed(self._base)]

    async def _listed(self, base: str) -> list[dict[str, Any]]:
        address = f"{base}/models"
        listed = await self.look(lambda: Call(self._requested, (address,), {}))
        data = listed.get("data") if isinstance(listed, dict) else None
        return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []

    async def load(self, cost: Cost | None = None) -> None:
        """Ask for a token, so that the first question does not wait for the model."""
        await self.ready()
        call = self.call(Request(_GREETING, most_tokens=1))
        await self.sent(call, cost or Cost(), self.settings["load_timeout"])
        # llama.cpp answers with the model that it has, whatever the request says
        with suppress(LLMError):
            listed = await self.models()
            if listed and (among := self.lack_in(listed)):
                self.warn_once("listed", f"{among}: another one may answer")

    async def reported_window(self) -> int | None:
        """Return the window that vLLM, SGLang, llama.cpp or LM Studio report."""
        if (window := await self._listed_window(self._base, "max_model_len")) is not None:
            return window

        root = self._base.removesuffix("/v1")
        with suppress(LLMError):
            reply = await self.look(partial(Call, self._requested, (f"{root}/props",), {}))
            window = count_of((reply.get("default_generation_settings") or {}).get("n_ctx"))
        with suppress(LLMError):
            # LM Studio has a path of its own for it
            return window or await self._listed_window(f"{root}/api/v0", "loaded_context_length")
        return None

    async def _listed_window(self, base: str, key: str) -> int | None:
        models = [each for each in await self._listed(base) if each.get("id") == self.model]
        return count_of(models[0].get(key)) if models else None


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

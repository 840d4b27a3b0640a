"""Model servers: transport, key, window and failures, and the dialects of Ollama and OpenAI."""

from __future__ import annotations

import asyncio
import json
import os
import re
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any, ClassVar
from urllib.request import getproxies, proxy_bypass

import httpx

from prism.errors import (
    BadReplyError,
    BudgetSpentError,
    FieldValueError,
    InputError,
    LLMError,
    ModelMissingError,
    PromptTooLongError,
    TimedOutError,
    UnreachableError,
)
from prism.llm.addresses import (
    is_local,
    model_name,
    safe_address,
    same_address,
    secrets_in,
    with_port,
    with_version,
)
from prism.reasoner import Cost
from prism.reasoner.faults import NO_SUCH_PATH
from prism.reasoner.prompts import DECISION_TOKENS
from prism.reasoner.requests import (
    ChatReply,
    Request,
    count_of,
    count_tokens,
    prompted,
    without_none,
)
from prism.reasoner.servers import Call, ClientServer


@contextmanager
def _naming_variables() -> Iterator[None]:
    """Name the variables of the environment that may be why no client of HTTP can be made.

    Raises:
        InputError: If none can be made, for instance as a proxy needs a package.
    """
    try:
        yield
    except (ImportError, ValueError, OSError, httpx.InvalidURL) as error:
        names = ", ".join(filter(_OF_CLIENTS.fullmatch, os.environ))
        problem = f"no HTTP client can be made ({error}): correct or unset one of {names}"
        raise InputError(problem) from error


_OF_CLIENTS = re.compile("(?i).*_proxy|ssl_cert_file|ollama_.*")

with _naming_variables():  # it makes a client of its own
    import ollama

LOOK_SECONDS = 5.0
"""Most seconds to wait for what a server knows without a model."""

_MOST_LISTED = 5

_LEAST_DOUBTFUL = 200
"""Tokens of a prompt below which servers' own counts are too far off to prove a cut."""

_MOST_BYTES = 1024 * 1024

_BYTES_A_TOKEN = 3000
"""Bytes of a token with twenty alternatives, each with its own bytes, as they stand in a reply."""

_COMPRESSIONS = {"gzip", "x-gzip", "deflate", "br", "zstd"}

_THINKING = {"think", "chat_template_kwargs", "reasoning_effort"}
"""The parts of requests that say how much a model may think."""

_LONG_SECRET = 8
"""Bytes of a secret that is cut out of good replies, too."""


@cache
def _certificates() -> Any:
    # reading them takes longer than everything else that a client needs
    return httpx.create_ssl_context()


async def _read_whole(most: int, secrets: Sequence[bytes], response: httpx.Response) -> None:
    """Read the body of a response, up to a number of bytes, and cut secrets out of it.

    Raises:
        BadReplyError: If it is longer, or compressed, which could expand a thousandfold.
    """
    host = f"{response.url.scheme}://{response.url.netloc.decode()}"
    if response.status_code in (301, 302, 303) and response.request.method == "POST":
        await response.aclose()
        target = safe_address(response.headers.get("location", "another address"))
        raise LLMError(f"{host} redirects to {target}, and loses the question: give that address")
    # some servers name the encoding of their characters there
    encoding = response.headers.pop("content-encoding", "").lower()
    if encoding in _COMPRESSIONS and not response.is_error:
        await response.aclose()
        raise BadReplyError(f"{host} sent a compressed reply, which was not asked for")

    stream, content = response.stream, bytearray()
    assert isinstance(stream, httpx.AsyncByteStream)
    async for piece in stream:
        content += piece
        if len(content) > most and response.is_error:
            break
        if len(content) > most:
            await response.aclose()
            raise BadReplyError(f"{host} sent a reply of more than {most} bytes")
    await stream.aclose()
    body = b"" if encoding in _COMPRESSIONS else bytes(content)
    for secret in secrets:
        # a short one may occur in any reply
        if response.is_error or len(secret) >= _LONG_SECRET:
            body = body.replace(secret, b"[key]")
    response.stream = httpx.ByteStream(body)


class ModelServer(ClientServer):
    """A model server, with the settings of its requests.

    Args:
        address: Address of the server.
        model: Name of the model, as the server lists it.
        settings: The settings of its requests.

    Raises:
        InputError: If the environment variable of the key is not set.
        FieldValueError: If the key cannot be sent in a header.

    Attributes:
        settings: The settings of its requests.
        window: Tokens of prompt and reply together, if they are known.
        client: The client of this event loop, once it is `ready`.
    """

    key_variable: ClassVar[str]
    unreachable: ClassVar[str]
    """What to check if nothing answers."""

    no_model: ClassVar[str]
    """What to do if the model is missing."""

    no_key: ClassVar[str]
    """What to do if the server does not accept who asks."""

    def __init__(self, address: str, model: str, settings: Mapping[str, Any]) -> None:
        limit, patience = settings["concurrency"], settings["patience"] or 0.0
        super().__init__(address, model, limit, patience)
        self.settings: Mapping[str, Any] = settings
        self.seconds: float = settings["timeout"]
        if settings["think"] is not None:
            self.fixed |= _THINKING
        if settings["temperature"]:
            self.fixed.add("temperature")
        self.window: int | None = settings["window"]
        self.client: Any = None
        self._holder: AsyncGenerator[Any, None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        key = self._key()
        secrets = [each.encode() for each in secrets_in(key)]
        # this machine is reached without a proxy
        self._proxy = None if is_local(address) else _proxy_of(address)
        headers = {"Accept-Encoding": "identity"}
        if key:
            headers["Authorization"] = key if key.startswith("Basic ") else f"Bearer {key}"
        # thoughts have log-probabilities, too
        tokens = settings["reply_tokens"] or DECISION_TOKENS
        read = partial(_read_whole, max(_MOST_BYTES, tokens * _BYTES_A_TOKEN), secrets)
        self._http: dict[str, Any] = {
            # `sent` limits the whole request, and so a reply that comes drop by drop
            "timeout": None,
            "limits": httpx.Limits(max_connections=None, max_keepalive_connections=limit),
            "event_hooks": {"response": [read]},
            "headers": headers,
            "follow_redirects": True,
            "trust_env": self._proxy is not None,
            "verify": _certificates(),
        }

    def _key(self) -> str:
        named = self.settings["key"]
        variable = named or self.key_variable
        key = os.environ.get(variable, "").strip()
        if named and not key:
            problem = (
                f"names the environment variable {named}, which is not set: export {named}=..."
            )
            raise InputError(problem, field="key")
        plain = key.removeprefix("Basic ")
        if not (plain.isascii() and plain.isprintable() and " " not in plain):
            kind = "a key of printable ASCII characters without spaces"
            raise FieldValueError(f"{variable} must be {kind}")
        return key

    async def ready(self) -> None:
        """Make the client of this event loop, with its first request."""
        loop = asyncio.get_running_loop()
        if self.client is None or self._loop is not loop:
            self._holder, self._loop = self._held(), loop
            self.client = await anext(self._holder)

    async def _held(self) -> AsyncGenerator[Any, None]:
        """Keep a client open until its event loop ends, when asyncio closes its generators."""
        with _naming_variables():
            client = self.connect()
        try:
            yield client
        finally:
            # httpx has the one, Ollama's client the other
            close: Any = getattr(client, "aclose", None) or client.close
            await close()

    @abstractmethod
    def connect(self) -> Any:
        """Return a new client."""

    @abstractmethod
    async def models(self) -> list[str]:
        """List the models that the server has."""

    def lack_in(self, listed: Sequence[str]) -> str | None:
        """Return that the model is not among those that the server lists, unless it is."""
        if model_name(self.model) in map(model_name, listed):
            return None
        more = ", ..." if len(listed) > _MOST_LISTED else ""
        return f"is not among its models ({', '.join(listed[:_MOST_LISTED])}{more})"

    @abstractmethod
    async def load(self, cost: Cost | None = None) -> None:
        """Load the model, so that the first question does not wait for it."""

    @abstractmethod
    async def reported_window(self) -> int | None:
        """Return the window that the server reports; None if it does not."""

    async def usable_window(self) -> int | None:
        """Return the window that questions have: the server's, or the one that it is asked for."""
        return await self.reported_window()

    async def look(self, call: Callable[[], Call]) -> Any:
        """Ask a server for something that it knows without a model."""
        await self.ready()
        return await self.sent(call(), Cost(), min(self.seconds, LOOK_SECONDS))

    async def chat(self, request: Request[Any], cost: Cost) -> ChatReply:
        """Send a conversation that fits into the window, and check that all of it was read.

        Raises:
            PromptTooLongError: If it does not fit, or the server has cut it.
        """
        tokens = sum(count_tokens(str(each.get("content"))) for each in request.messages)
        room = None if self.window is None else self.window - (self.settings["reply_tokens"] or 0)
        if room is not None and tokens > room:
            what = f"is not asked: about {tokens} tokens of the prompt exceed the room of {room}"
            raise self.bad(what, PromptTooLongError)

        read_before = cost.input_tokens or 0
        reply = await super().chat(request, cost)
        if request.schema is not None and self._schema_was_ignored(reply):
            reply = await super().chat(request, cost)
        await self._require_whole(tokens, (cost.input_tokens or 0) - read_before)
        return reply

    def _schema_was_ignored(self, reply: ChatReply) -> bool:
        """Return whether to ask again, since ``think: false`` has switched the schema off."""
        is_set = self.settings["think"] is False and not self.dropped & _THINKING
        if not is_set or reply.text.lstrip().startswith(("{", "[")):
            return False

        self.dropped |= _THINKING
        self.warn_once("schema", "ignores a schema with think=False, so it is asked without that")
        return True

    async def _require_whole(self, tokens: int, read: int) -> None:
        """Refuse the reply to a prompt of which the server has read only a part.

        Ollama cuts a prompt down to about half of its window, from the front, and answers.
        """
        if not read or tokens < _LEAST_DOUBTFUL or tokens <= 1.2 * read:
            return
        if self.window is None:
            with suppress(LLMError):
                self.window = await self.reported_window()
        if self.window is not None and abs(read - self.window / 2) <= 5:
            what = f"read {read} of about {tokens} tokens: the prompt was cut to half the window"
            raise self.bad(what, PromptTooLongError)

    def failure(self, error: Exception, seconds: float = 0.0) -> LLMError:
        """Return the error for an exception, with advice about what a user can mend."""
        failure = super().failure(error, seconds)
        if isinstance(error, (AttributeError, TypeError)) and not failure.status:
            # of ollama, for JSON that is no object
            return self.bad(f"sent an invalid reply ({error})")
        advice = ""
        if isinstance(failure, ModelMissingError):
            advice = self.no_model.format(model=self.model)
        elif isinstance(failure, UnreachableError):
            advice = f"through the proxy {self._proxy}" if self._proxy else self.unreachable
        elif failure.status == 401:
            advice = self.no_key
        if advice and advice not in str(failure):
            failure.args = (f"{failure}: {advice}",)
        return failure

    async def close(self) -> None:
        """Close the connections; the next question opens new ones."""
        holder, self.client, self._holder = self._holder, None, None
        if holder is not None and self._loop is asyncio.get_running_loop():
            await holder.aclose()


def _proxy_of(address: str) -> str | None:
    """Return the proxy that the environment names for an address."""
    scheme, name, *_ = same_address(address)
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    return safe_address(proxy) if proxy and not proxy_bypass(name) else None


# The dialects: Ollama's, by its own client, and OpenAI's, by HTTP

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

    async def load(self, cost: Cost | None = None) -> None:  # noqa: ARG002 - it costs nothing
        """Load the model, so that the first question does not wait for it."""
        await self.ready()
        named = {"model": self.model, "keep_alive": self.settings["keep_alive"]}
        load = Call(self.client.generate, (), named)
        await self.sent(load, Cost(), self.settings["load_timeout"])

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
    no_key = "give its key in OPENAI_API_KEY, or name another variable (key in --model-file)"

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
        # a text that ends by length may end within a character, and a header name another encoding
        content = response.content
        return json.loads(content.decode(json.detect_encoding(content), "replace"))

    def call(self, request: Request[Any]) -> Call:
        """Return the call for a conversation."""
        settings = self.settings
        # OpenAI's newer models refuse the name that all others know
        bound = "max_completion_tokens" if "max_tokens" in self.dropped else "max_tokens"
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(request.messages),
            **self.sampling_of(request, settings["temperature"]),
            "seed": settings["seed"] + request.variation,
            bound: request.tokens(settings["reply_tokens"]),
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
        data = listed.get("data") if isinstance(listed, dict) else listed
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
    types = ("string", "number", "integer")
    plain = all(each.get("type") in types and "maxLength" not in each for each in members.values())
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

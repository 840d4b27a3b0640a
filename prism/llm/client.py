"""A chat client for one Ollama server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from prism.errors import (
    BadReplyError,
    FieldValueError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
)

DEFAULT_HOST = "http://127.0.0.1:11434"
DEFAULT_TIMEOUT_SECONDS = 60.0
DEFAULT_CONCURRENCY = 4

_OVERLOADED = (429, 502, 503, 504)


class OllamaChatClient:
    """Asks one model on one Ollama server, at most so many questions at once.

    The connection is made with the first question, and belongs to the event loop it was made in: close the client
    before using it in another.

    Args:
        model: Name of the model, as ``ollama list`` shows it.
        host: Address of the server.
        timeout: Seconds to wait for one reply.
        concurrency: Questions under way at once. A server answers ``OLLAMA_NUM_PARALLEL`` (1 by default) at a
            time and queues the others without bound, so the limit has to be here.
        temperature: Sampling temperature; 0 for the likeliest answer.
        seed: Seed of the sampling; the server's own parallelism still makes replies vary.
        think: Whether a thinking model may think first.
        keep_alive: How long the server keeps the model loaded.

    Raises:
        FieldValueError: If the model is empty, the host no address, or the time-out or the concurrency not above 0.
    """

    def __init__(
        self,
        model: str,
        host: str = DEFAULT_HOST,
        *,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        concurrency: int = DEFAULT_CONCURRENCY,
        temperature: float = 0.0,
        seed: int = 0,
        think: bool | None = False,
        keep_alive: str = "30m",
    ) -> None:
        if not model:
            raise FieldValueError("model must be the name of a model on the server, such as 'llama3.2'")
        _require_address(host)
        if not timeout > 0:
            raise FieldValueError(f"timeout must be above 0 seconds, got {timeout!r}")
        if concurrency < 1:
            raise FieldValueError(f"concurrency must be 1 or more, got {concurrency!r}")
        self.model = model
        self.host = host
        self._timeout = timeout
        self._concurrency = concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._options = {"temperature": temperature, "seed": seed}
        self._think = think
        self._keep_alive = keep_alive
        self._client: Any = None

    async def chat(self, messages: Sequence[Mapping[str, Any]], *, format: dict[str, Any] | None = None) -> str:  # noqa: A002
        """Send a conversation and give the text of the reply.

        Args:
            messages: ``{"role": ..., "content": ...}``, oldest first.
            format: JSON schema that the reply must follow.

        Raises:
            UnreachableError: If nothing listens at the host or the connection drops.
            TimedOutError: If there is no complete reply within the time-out.
            OverloadedError: If the server is too busy.
            ModelMissingError: If the server does not have the model.
            BadReplyError: If the answer is no chat reply, or an empty one.
            LLMError: If the server refuses the request for any other reason.
        """
        async with self._slots:
            try:
                async with asyncio.timeout(self._timeout):
                    reply = await self._connected().chat(
                        model=self.model,
                        messages=messages,
                        format=format,
                        options=self._options,
                        think=self._think,
                        keep_alive=self._keep_alive,
                    )
            except Exception as error:
                raise self._translate(error) from error
        text = reply.message.content
        if not text:
            raise BadReplyError(f"{self.model} at {self.host} gave an empty reply")
        return str(text)

    async def close(self) -> None:
        """Close the connections; a later question makes new ones."""
        client, self._client = self._client, None
        self._slots = asyncio.Semaphore(self._concurrency)  # the old one may belong to another event loop
        if client is not None:
            await client.close()

    def _connected(self) -> Any:
        if self._client is None:
            import ollama  # builds a client when imported, so not before one is needed

            self._client = ollama.AsyncClient(host=self.host, timeout=self._timeout)
        return self._client

    def _translate(self, error: Exception) -> LLMError:
        """Map what the ollama client raises to prism's tree, as measured for its version 0.6.3."""
        import httpx
        import ollama

        where = f"{self.model} at {self.host}"
        if isinstance(error, ollama.ResponseError):
            return self._translate_status(error.status_code, str(error.error))
        refused = error.__context__  # the ollama client stumbles over a JSON body that is no object
        if isinstance(error, AttributeError) and isinstance(refused, httpx.HTTPStatusError):
            return self._translate_status(refused.response.status_code, refused.response.text)
        if isinstance(error, (TimeoutError, httpx.TimeoutException)):
            return TimedOutError(f"no complete reply from {where} within {self._timeout:g} s")
        if isinstance(error, (ConnectionError, httpx.TransportError)):
            return UnreachableError(f"cannot reach {self.host}: is 'ollama serve' running there?")
        if isinstance(error, (ValueError, TypeError, AttributeError)):
            return BadReplyError(f"{where} answered with something that is no chat reply ({_first_line(error)})")
        return LLMError(f"{where} failed: {type(error).__name__}: {_first_line(error)}")

    def _translate_status(self, status: int, message: str) -> LLMError:
        what = f"{self.host} answered {status}: {' '.join(message.split())[:200]}"
        if status in _OVERLOADED:
            return OverloadedError(what)
        if status == 404 and "model" in message:
            return ModelMissingError(f"{self.host} does not have the model: run  ollama pull {self.model}")
        return BadReplyError(what) if status == 404 else LLMError(what)


def _require_address(host: str) -> None:
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        usable = parts.port != 0 and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise FieldValueError(f"host must be an address such as {DEFAULT_HOST}, got {host!r}")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]

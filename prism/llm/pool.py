"""One model on several servers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, Self

from prism.errors import LLMError, ModelMissingError, TimedOutError, UnreachableError
from prism.llm._servers import ModelServer, OllamaServer, OpenAIServer
from prism.llm.addresses import Kind, check_address, same_address, with_port, with_version
from prism.llm.settings import filled_in
from prism.reasoner import Cost
from prism.reasoner.asking import Pool
from prism.reasoner.faults import NO_SUCH_PATH

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
        options: The settings of requests, as for `OllamaChatClient`.

    Raises:
        FieldValueError: If an address is invalid, or a setting is out of range.

    Attributes:
        model: Name of the model.
        temperature: Sampling temperature.
        concurrency: Simultaneous questions on all servers together.
    """

    servers: tuple[ModelServer, ...]

    def __init__(
        self, hosts: Sequence[str], model: str, server: Kind = "ollama", **options: Any
    ) -> None:
        settings = filled_in(options)
        self.temperature: float = settings["temperature"]
        self.reply_seconds: float = settings["timeout"]

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

"""One model on several servers: asking them, and loading it on all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import ClassVar, Self, Unpack

from prism.errors import FieldValueError, LLMError, TimedOutError
from prism.llm._addresses import check_address, same_address
from prism.llm._dialect import Dialect
from prism.llm._host import Host
from prism.llm._ollama import OLLAMA
from prism.llm._openai import OPENAI
from prism.llm._settings import RequestSettings, Server, filled_in
from prism.reasoner._faults import is_busy, is_loading, is_retryable
from prism.reasoner._pool import Pool, cancel
from prism.reasoner._spending import Cost, loop_time

_DIALECTS: Mapping[str, Dialect] = {"ollama": OLLAMA, "openai": OPENAI}


class ModelPool(Pool[Host]):
    """Asks one model on several servers, with a limit on concurrent questions for each.

    Every question goes to the server with the fewest open questions. A retryable failure (a busy
    server, a broken connection, a time-out) is retried, on another server if there is one, after a
    jittered pause or the time that the server asks for. A server that lacks the model costs a
    question one request. With patience, the pool waits for a server that had the model before,
    since it may be downloading it again, and for one that cannot read its files. A question that a
    server refuses, or answers uselessly, is asked elsewhere once; if another server answers it,
    that counts as a failure of the first. If there is no other server, an internal error (HTTP 500,
    or an error in a 200) is retried once. A server that fails several times in a row is not asked
    for a while, and then probed with one question (a circuit breaker). While the breakers of all
    servers are open, questions fail at once, or, with patience, after the breakers have been open
    for that long. Use a pool in one event loop at a time.

    Args:
        hosts: Addresses of the servers. Repeated ones, in any spelling, count once. User name and
            password in an address (``https://name:password@host``) are sent, but never shown.
        model: Name of the model, as the server lists it.
        server: The kind of server. Those with OpenAI's API are vLLM, llama.cpp, LM Studio and,
            under ``/v1``, Ollama: a decision question is a separate chat there, whose options get
            letters, and the log-probabilities of the letters give the probabilities of the options.
        given: The settings of requests, as for `OllamaChatClient`.

    Raises:
        FieldValueError: If an address is invalid, the model is empty, a limit is not above 0, or
            temperature or patience is not finite or below 0.

    Attributes:
        model: Name of the model.
        temperature: Sampling temperature.
        seed: Seed of the sampling.
        think: Whether the model may think first.
        concurrency: Simultaneous questions on all hosts together.
    """

    reopens: ClassVar[bool] = True
    """Whether it can be closed at any time, since the next question makes new connections."""

    def __init__(
        self,
        hosts: Sequence[str],
        model: str,
        server: Server = "ollama",
        **given: Unpack[RequestSettings],
    ) -> None:
        if not model:
            raise FieldValueError(
                "model must be the name of a model on the server, such as 'llama3.2'"
            )

        settings = filled_in(given)
        self.temperature: float = settings["temperature"]
        self.seed: int = settings["seed"]
        self.think: bool | str | None = settings["think"]

        dialect = _DIALECTS[server]
        servers: dict[object, str] = {}
        for host in hosts:
            check_address(host)
            servers.setdefault(same_address(dialect.full_address(host)), host)

        made = [Host(host, model, settings, dialect) for host in servers.values()]
        super().__init__(made, model, attempts=settings["attempts"])

    @property
    def hosts(self) -> list[str]:
        """Addresses of the servers, without user names and passwords."""
        return [host.address for host in self.servers]

    async def warm_up(
        self, limit: float | None = None, cost: Cost | None = None
    ) -> dict[str, LLMError | None]:
        """Load the model on every server at the same time.

        Once the first has loaded it, the others get the same time again, but at least a second.

        Args:
            limit: Maximum seconds to wait; by default only the time-out of each load.
            cost: Collects the cost, since a server without a path for loading is asked for a token.

        Returns:
            The error on each server by address, or None.
        """
        with self.slots.entered():
            return await load_models(self.servers, limit, Cost() if cost is None else cost)

    async def close(self) -> None:
        """Close the connections; those in use close when their questions have ended."""
        for host in self.servers:
            await host.close()

    async def __aenter__(self) -> Self:
        """Return the pool itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()


class OllamaChatClient(ModelPool):
    """Asks one model on one Ollama server.

    After a temporary failure (a busy server, a broken connection, a time-out), a question is asked
    again. A server that fails several times in a row gets no questions for a while, and then a
    single one as a probe.

    Args:
        host: Address of the server. User name and password in it
            (``https://name:password@host``) are sent, but never shown.
        model: Name of the model, as ``ollama list`` shows it.
        settings: ``concurrency``, simultaneous questions (4): a server answers
            ``OLLAMA_NUM_PARALLEL`` (1 by default) at a time and queues the others without bound, so
            the limit must be set here. ``timeout`` and ``load_timeout``, seconds to wait for one
            reply (60) and for a model to be loaded (600). ``attempts``, requests for one question
            in case of temporary failures (3). ``temperature`` (0), ``seed`` (0), ``think`` (False)
            and ``keep_alive`` (``"30m"``), as Ollama takes them. ``patience``, seconds that a
            server may fail before its questions fail at once (None means 0; 60 in a run).
            ``window`` and ``reply_tokens``, tokens of prompt and reply together, and of the reply,
            which are sent to the server. ``max_reply_bytes``, the maximum size of a reply (1 MiB).
            ``key``, the environment variable with the key (``OLLAMA_API_KEY``).

    Raises:
        FieldValueError: If an address is invalid, the model is empty, a limit is not above 0,
            temperature or patience is not finite or below 0, or the key cannot be sent in a header.
    """

    def __init__(self, host: str, model: str, **settings: Unpack[RequestSettings]) -> None:
        super().__init__([host], model, **settings)

    @property
    def host(self) -> str:
        """Address of the server."""
        return self.hosts[0]


# Loading a model early

_SHORTEST_GRACE_SECONDS = 1.0
_BUSY_PAUSE_SECONDS = 1.0

Load = asyncio.Task[LLMError | None]


async def load_models(
    hosts: Sequence[Host], limit: float | None, cost: Cost
) -> dict[str, LLMError | None]:
    """Load the model on every server at the same time; see `ModelPool.warm_up`."""
    loads = [asyncio.create_task(_load(host, cost)) for host in hosts]
    try:
        await _wait_for_one(loads, inf if limit is None else limit)
        ended = zip(hosts, loads, strict=True)
        return {host.address: load.result() if load.done() else _late(host) for host, load in ended}
    finally:
        await cancel(loads)


async def _load(host: Host, cost: Cost) -> LLMError | None:
    """Load the model, waiting with patience while the server is busy; return the error.

    Some servers answer 503 for minutes while they load.
    """
    began, settings = loop_time(), host.settings
    while (error := await _load_now(host, cost)) is not None and is_busy(error):
        limit = settings["load_timeout"] if is_loading(error) else settings["patience"] or 0.0
        pause = max(error.retry_after or 0.0, _BUSY_PAUSE_SECONDS)
        if not settings["patience"]:
            break
        if loop_time() - began + pause > limit:
            host.trouble = str(error)
            host.breaker.failed(was_patient=True)
            break
        await asyncio.sleep(pause)

    return error


async def _load_now(host: Host, cost: Cost) -> LLMError | None:
    """Load the model, after a quick check that a server answers at all; return the error."""
    try:
        await host.kind()
    except LLMError as error:
        if is_retryable(error):
            return error

    # the server may have closed that connection meanwhile
    await host.close()
    try:
        await host.load(cost)
    except LLMError as error:
        return error

    return None


async def _wait_for_one(loads: Collection[Load], limit: float) -> None:
    """Wait until all have ended, but at most twice as long as the first success, or the limit."""
    began, pending, is_warm = loop_time(), set(loads), False
    ends = began + limit
    while pending and (left := ends - loop_time()) > 0:
        done, pending = await asyncio.wait(
            pending, timeout=None if left == inf else left, return_when=asyncio.FIRST_COMPLETED
        )
        if not is_warm and any(load.result() is None for load in done):
            is_warm, now = True, loop_time()
            ends = min(ends, now + max(_SHORTEST_GRACE_SECONDS, now - began))


def _late(host: Host) -> LLMError:
    return TimedOutError(f"{host.model} is not loaded at {host.address} yet", host=host.address)

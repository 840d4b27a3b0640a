"""The pools by the dialect that their servers speak: Ollama's own, and OpenAI's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypedDict, Unpack

from prism.llm._exchange import MOST_REPLY_BYTES
from prism.llm._host import ModelHost, ModelSettings
from prism.llm._model_pool import (
    DEFAULT_ATTEMPTS,
    DEFAULT_CONCURRENCY,
    DEFAULT_LOAD_TIMEOUT_SECONDS,
    DEFAULT_TIMEOUT_SECONDS,
    ModelPool,
)
from prism.llm._ollama import OllamaHost
from prism.llm._openai import OpenAIHost
from prism.llm._slots import Slots


class PoolSettings(TypedDict, total=False):
    """The settings of an `OllamaPool` besides hosts and model; see there."""

    concurrency: int
    timeout: float
    attempts: int
    load_timeout: float
    temperature: float
    seed: int
    think: bool | str | None
    keep_alive: str
    patience: float
    max_reply_bytes: int
    hedge: bool
    slots: Slots | None


class OllamaPool(ModelPool):
    """Asks one model on several Ollama servers; see `ModelPool` for what all pools do.

    Args:
        hosts: Addresses of the servers. One that is named twice, in whatever spelling, counts once.
            A user's name and password in it (``https://name:password@host``) are sent, but never
            shown.
        model: Name of the model, as ``ollama list`` shows it.
        concurrency: Questions under way at once on each host. A server answers
            ``OLLAMA_NUM_PARALLEL`` (1 by default) at a time and queues the others without bound, so
            the limit has to be here.
        timeout: Seconds to wait for one reply.
        attempts: Requests for one question while its failures pass, at most; 1 for no retries.
            Asking elsewhere what one server cannot answer is not a retry.
        load_timeout: Seconds to wait for a model to be loaded, by ``warm_up``.
        temperature: Sampling temperature; 0 for the likeliest answer.
        seed: Seed of the sampling; the server's own parallelism still makes replies vary.
        think: Whether a thinking model may think first; some take ``"low"``, ``"medium"`` or
            ``"high"``.
        keep_alive: How long the server keeps the model loaded.
        patience: Seconds that a server may fail before its questions fail at once. Until then they
            wait for its next probe, within the time that a `Reasoner` allows them. 0 not to wait.
        max_reply_bytes: How long a reply may be, decoded; a longer one is not read on.
        hedge: Whether a question that takes longer than the 95th percentile of the latest answers
            is put a second time, on a slot that nobody else wants. The first answer counts; both
            requests cost.
        slots: Slots on the servers, which other pools share that are given the same; of its own by
            default.

    Raises:
        FieldValueError: If there is no host or an address is invalid, the model is empty, a limit
            is not above 0, temperature or patience is not finite or below 0, or pools that
            share a server give it different limits.
    """

    _host_type: ClassVar[type[ModelHost]] = OllamaHost

    def __init__(
        self,
        hosts: Sequence[str],
        model: str,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        attempts: int = DEFAULT_ATTEMPTS,
        load_timeout: float = DEFAULT_LOAD_TIMEOUT_SECONDS,
        temperature: float = 0.0,
        seed: int = 0,
        think: bool | str | None = False,
        keep_alive: str = "30m",
        patience: float = 0.0,
        max_reply_bytes: int = MOST_REPLY_BYTES,
        hedge: bool = False,
        slots: Slots | None = None,
    ) -> None:
        settings = ModelSettings(
            model,
            timeout,
            load_timeout,
            temperature,
            seed,
            think,
            keep_alive,
            patience,
            max_reply_bytes=max_reply_bytes,
        )
        super().__init__(
            hosts, settings, concurrency=concurrency, attempts=attempts, hedge=hedge, slots=slots
        )


class OllamaChatClient(OllamaPool):
    """Asks one model on one Ollama server: an `OllamaPool` of one host.

    Args:
        host: Address of the server.
        model: Name of the model, as ``ollama list`` shows it.
        settings: Everything else that `OllamaPool` takes.
    """

    def __init__(self, host: str, model: str, **settings: Unpack[PoolSettings]) -> None:
        super().__init__([host], model, **settings)

    @property
    def host(self) -> str:
        """Address of the server."""
        return self.hosts[0]


class OpenAIPool(ModelPool):
    """Asks one model on several OpenAI-compatible servers; see `ModelPool` for what all pools do.

    Such servers are vLLM, llama.cpp, LM Studio and, under ``/v1``, Ollama. A decision question is a
    chat of its own: its options get letters, and the log-probabilities of the letters are the
    probabilities of the options. Where a server gives no log-probabilities, it takes no decision
    questions. What else a server refuses by name (a JSON schema, a seed, thinking that is switched
    off) is left out from then on; a warning of the logger ``prism.llm`` says so once for each.

    It needs the extra: ``pip install '.[openai]'``.

    The key is taken from the environment variable ``OPENAI_API_KEY`` and sent to every host;
    without one, none is sent. It is in no file, event or message, even where a server repeats it.

    Args:
        hosts: Addresses of the servers, such as ``http://127.0.0.1:8000``; ``/v1`` is added to one
            without a path. A user's name and password in it are sent instead of the key, but never
            shown.
        model: Name of the model, as the server lists it.
        concurrency: Questions under way at once on each host.
        timeout: As for `OllamaPool`.
        attempts: As for `OllamaPool`.
        load_timeout: Seconds to wait for the first reply of a server that may have to load the
            model, by ``warm_up``, which asks for one token.
        temperature: Sampling temperature; 0 for the likeliest answer.
        seed: Seed of the sampling; the server's own parallelism still makes replies vary.
        think: Whether a thinking model may think first, or how much (``"low"``, ...); None leaves
            it to the server.
        patience: As for `OllamaPool`.
        max_reply_bytes: As for `OllamaPool`.
        hedge: As for `OllamaPool`.
        slots: As for `OllamaPool`.

    Raises:
        FieldValueError: As for `OllamaPool`; or if the key cannot stand in a header.
        MissingExtraError: If the package ``openai`` is not installed.
    """

    _host_type: ClassVar[type[ModelHost]] = OpenAIHost

    def __init__(
        self,
        hosts: Sequence[str],
        model: str,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        attempts: int = DEFAULT_ATTEMPTS,
        load_timeout: float = DEFAULT_LOAD_TIMEOUT_SECONDS,
        temperature: float = 0.0,
        seed: int = 0,
        think: bool | str | None = False,
        patience: float = 0.0,
        max_reply_bytes: int = MOST_REPLY_BYTES,
        hedge: bool = False,
        slots: Slots | None = None,
    ) -> None:
        settings = ModelSettings(
            model,
            timeout,
            load_timeout,
            temperature,
            seed,
            think,
            patience=patience,
            max_reply_bytes=max_reply_bytes,
        )
        super().__init__(
            hosts, settings, concurrency=concurrency, attempts=attempts, hedge=hedge, slots=slots
        )

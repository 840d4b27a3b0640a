"""Many model servers as one, each bounded, with retries and without those that fail.

The public pools are named for the dialect that their servers speak: Ollama's own, and OpenAI's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, ClassVar, Self, TypedDict, Unpack

from tenacity import wait_random_exponential

from prism.errors import CircuitOpenError, DecisionsUnsupportedError, FieldValueError, LLMError
from prism.llm._addresses import check_address, same_address
from prism.llm._exchange import MOST_REPLY_BYTES
from prism.llm._faults import is_busy, is_retryable
from prism.llm._hedging import Pace, cancel, load_models
from prism.llm._host import ChatReply, DecisionReply, ModelHost, ModelSettings
from prism.llm._ollama import OllamaHost
from prism.llm._openai import OpenAIHost
from prism.llm._router import Backoff, Question, ReplyT, Router
from prism.llm._slots import Hosts, Slots, all_fail_fast, circuit_open
from prism.statechart.reasoner._cost import Cost, require_positive

DEFAULT_TIMEOUT_SECONDS = 60.0
DEFAULT_LOAD_TIMEOUT_SECONDS = 600.0
DEFAULT_CONCURRENCY = 4
DEFAULT_ATTEMPTS = 3

random_backoff: Backoff = wait_random_exponential(multiplier=0.2, max=5.0)


class ModelPool:
    """Asks one model on several servers, with a limit on concurrent questions for each.

    Use `OllamaPool` or `OpenAIPool`: they say how their servers are spoken to.

    Every question goes to the server with the fewest under way. A retryable failure (a busy server,
    a broken connection, a time-out) is retried, on another server where there is one, after a
    jittered pause or as long as the server asks for. A server that lacks the model costs a question
    one request. What a server refuses, or answers with nothing of use, is asked elsewhere once; if
    another server answers it, that counts as a failure of the first. Where there is no other, an
    internal error (HTTP 500, an error in a 200) is retried once. A server that fails several times
    in a row is not asked for a while, then probed with one question (a circuit breaker). While the
    breakers of all servers are open, questions fail at once, or, with patience, when they have been
    open for so long. Use a pool in one event loop at a time.

    Args:
        hosts: Addresses of the servers. One that is named twice, in whatever spelling, counts once.
            A user's name and password in it (``https://name:password@host``) are sent, but never
            shown.
        settings: How the model is asked.
        concurrency: Questions under way at once on each host.
        attempts: Requests for one question while its failures pass, at most; 1 for no retries.
            Asking elsewhere what one server cannot answer is not a retry.
        hedge: Whether a question that takes longer than the 95th percentile of the latest answers
            is put a second time, on a slot that nobody else wants. The first answer counts; both
            requests cost.
        slots: Slots on the servers, which other pools share that are given the same.

    Raises:
        FieldValueError: If there is no host or an address is invalid, the model is empty, a limit
            is not above 0, temperature or patience is not finite or below 0, or pools that
            share a server give it different limits.

    Attributes:
        model: Name of the model.
        temperature: Sampling temperature.
        seed: Seed of the sampling.
        think: Whether the model may think first.
        concurrency: Questions under way at once on all hosts together.
        hedge: Whether a question that straggles is put a second time.
    """

    reopens: ClassVar[bool] = True
    """Closing loses nothing: the next question makes new connections."""

    _host_type: ClassVar[type[ModelHost]]
    """The dialect that the servers speak."""

    def __init__(
        self,
        hosts: Sequence[str],
        settings: ModelSettings,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        attempts: int = DEFAULT_ATTEMPTS,
        hedge: bool = False,
        slots: Slots | None = None,
    ) -> None:
        if isinstance(hosts, str) or not hosts:
            raise FieldValueError(f"hosts must be a list of at least one address, got {hosts!r}")

        require_positive(concurrency=concurrency, attempts=attempts)
        _check_settings(settings)
        self.model: str = settings.model
        self.temperature: float = settings.temperature
        self.seed: int = settings.seed
        self.think: bool | str | None = settings.think

        kind = self._host_type
        servers: dict[object, str] = {}
        for host in hosts:
            check_address(host)
            servers.setdefault(same_address(kind.full_address(host)), host)

        self._slots: Slots = slots or Slots()
        self._hosts: Hosts = tuple(
            kind(host, settings, self._slots.traffic_of(kind.full_address(host), concurrency))
            for host in servers.values()
        )
        self.concurrency: int = concurrency * len(self._hosts)
        # a test may set another
        self.backoff: Backoff = random_backoff
        self.hedge: bool = hedge
        self._router = Router(self._hosts, self._slots, attempts, lambda state: self.backoff(state))
        self._chat_pace = Pace() if hedge else None
        self._decision_pace = Pace() if hedge else None

    @property
    def asks_one_by_one(self) -> bool:
        """Whether each decision question is a request of its own, so that none waits for others."""
        return self._host_type.asks_one_by_one

    @property
    def hosts(self) -> list[str]:
        """Addresses of the servers, without names and passwords of users."""
        return [host.address for host in self._hosts]

    @property
    def servers(self) -> Hosts:
        """The servers themselves, for looking at them without retries."""
        return self._hosts

    @property
    def waiting(self) -> int:
        """How many questions wait for a slot."""
        return self._slots.waiting

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        format: dict[str, Any] | None = None,  # noqa: A002
        cost: Cost | None = None,
        lacks: Callable[[ChatReply], int] | None = None,
    ) -> ChatReply:
        """Send a conversation.

        Args:
            messages: ``{"role": ..., "content": ...}``, oldest first.
            format: JSON schema that the reply must follow.
            cost: Where to add what it costs, however it ends.
            lacks: Returns how many of the answers that were asked for a reply lacks, 0 if it is
                valid. One that lacks any is asked for on another server, once; of two such replies
                the one that lacks fewer is returned.

        Raises:
            CircuitOpenError: If all servers keep failing, so that none is asked now.
            UnreachableError: If no server can be reached.
            TimedOutError: If there is no complete reply within the time-out.
            OverloadedError: If the servers are too busy.
            ModelMissingError: If the server does not have the model.
            BadReplyError: If the answer is not a chat reply, or is empty.
            LLMError: If the server refuses the request for any other reason, or another event loop
                uses the pool.
        """
        cost = Cost() if cost is None else cost
        question: Question[ChatReply] = Question(
            lambda host, own: host.chat(messages, format, own), cost, lacks, pace=self._chat_pace
        )
        return await self._ask(question)

    async def systemone(
        self,
        state: str,
        questions: Mapping[str, Mapping[str, Any]],
        *,
        cost: Cost | None = None,
        lacks: Callable[[DecisionReply], int] | None = None,
    ) -> DecisionReply:
        """Put choice questions to a decision model.

        Args:
            state: What the questions are about.
            questions: By name, in the wire format of ``/v1/systemone``.
            cost: Where to add what it costs, however it ends.
            lacks: As for `chat`.

        Raises:
            DecisionsUnsupportedError: If no server takes decision questions.
            CircuitOpenError: If the servers that take them keep failing, whatever others could do.
            LLMError: As `chat`.
        """
        cost = Cost() if cost is None else cost
        question: Question[DecisionReply] = Question(
            lambda host, own: host.systemone(state, questions, own),
            cost,
            lacks,
            _deciding,
            self._decision_pace,
        )
        try:
            return await self._ask(question)
        except DecisionsUnsupportedError as error:
            raise self._takes_none(self._hosts, error) from error
        except LLMError as error:
            # only an answer can tell, and those that have answered do not decide
            known = {host.known_to_decide for host in self._hosts}
            if known == {None, False} and not isinstance(error, CircuitOpenError):
                others = [host for host in self._hosts if host.known_to_decide is False]
                raise self._takes_none(others, error, f", and {error}") from error

            # said apart from other failures, so that the other servers can be asked to chat
            deciding = _deciding(self._hosts)
            are_down = all_fail_fast(deciding) and not all_fail_fast(self._hosts)
            if is_retryable(error) and are_down:
                raise circuit_open(deciding) from error
            raise

    def _takes_none(
        self, hosts: Sequence[ModelHost], error: LLMError, more: str = ""
    ) -> DecisionsUnsupportedError:
        addresses = ", ".join(host.address for host in hosts)
        refusal = DecisionsUnsupportedError(
            f"{self.model} takes no decision questions at {addresses}{more}"
        )
        refusal.host = error.host
        return refusal

    async def offers_decisions(self) -> bool:
        """Return True if any server and its model take decision questions, or if only one can tell.

        The first that does settles it. Each server is asked until it has answered.

        Raises:
            LLMError: If none does and some did not answer.
        """
        with self._slots.entered():
            looks = [asyncio.create_task(self._look(host)) for host in self._hosts]
            failures: list[LLMError] = []
            try:
                for look in asyncio.as_completed(looks):
                    try:
                        if await look is not False:
                            return True
                    except LLMError as error:
                        failures.append(error)
            finally:
                await cancel(looks)

        if failures:
            raise failures[0]

        return False

    async def _look(self, host: ModelHost) -> bool | None:
        if host.known_to_decide is None and host.breaker.is_open():
            raise circuit_open((host,))

        try:
            return await host.decides()
        except LLMError as error:
            if is_retryable(error) and not is_busy(error):
                host.trouble = str(error)
                host.breaker.failed()

            raise

    async def warm_up(self, limit: float | None = None) -> dict[str, LLMError | None]:
        """Load the model on every server at the same time.

        When the first has it, the others are given as long again, and a second at least.

        Args:
            limit: Seconds to wait at most; by default only the time-out of each load.

        Returns:
            What went wrong on each, by address; None where nothing did.
        """
        with self._slots.entered():
            return await load_models(self._hosts, limit)

    async def close(self) -> None:
        """Close the connections, those in use when their questions have ended."""
        for host in self._hosts:
            await host.close()

    async def __aenter__(self) -> Self:
        """Return the pool itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def _ask(self, question: Question[ReplyT]) -> ReplyT:
        with self._slots.entered():
            return await self._router.ask(question)


def _check_settings(settings: ModelSettings) -> None:
    """Refuse settings that nothing can be asked with."""
    if not settings.model:
        raise FieldValueError("model must be the name of a model on the server, such as 'llama3.2'")

    require_positive(
        timeout=settings.timeout,
        load_timeout=settings.load_timeout,
        max_reply_bytes=settings.max_reply_bytes,
    )
    for name in ("temperature", "patience"):
        value = getattr(settings, name)
        if not (isfinite(value) and value >= 0):
            raise FieldValueError(f"{name} must be a finite number, 0 or above, got {value!r}")


def _deciding(hosts: Hosts) -> Hosts:
    """Return the hosts that may take decision questions."""
    # all if none does, as they may have learned it meanwhile
    return tuple(host for host in hosts if host.known_to_decide is not False) or hosts


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

"""A server of models: its slots and its health, and its calls, replies and failures.

Another library's client is a server, too.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from random import uniform
from time import perf_counter
from typing import Any, NamedTuple

from prism.errors import (
    BadReplyError,
    LLMError,
    PromptTooLongError,
    TimedOutError,
    UselessReplyError,
)
from prism.reasoner.faults import MALFORMED, of_status, translated
from prism.reasoner.replies import (
    choice_in,
    first,
    of_kind,
    text_of,
    tokens_of,
    usage_in,
    with_calls,
)
from prism.reasoner.requests import ChatReply, Cost, Request, loop_time

LOGGER = logging.getLogger("prism.llm")

FAILURES_TO_REST = 5
"""Failures in a row after which a server counts as gone."""

_FIRST_PAUSE_SECONDS = 0.2

_LONGEST_PAUSE_SECONDS = 5.0

_LONGEST_WAIT_SECONDS = 60.0
"""The longest pause that a server may ask for."""


def random_backoff(failures: int) -> float:
    """Return the seconds to leave a slot alone after a number of failures in a row."""
    longest = min(_FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 10), _LONGEST_PAUSE_SECONDS)
    return uniform(0.5, 1.0) * longest


class Server(ABC):
    """A model server, or another library's client, with its slots and its health.

    Args:
        address: Its name in messages.
        model: The model that it is asked for.
        limit: Questions that it answers at once.
        patience: Seconds to wait for it when it fails; 0 not to wait.

    Attributes:
        open: Questions that it is answering.
        answers: Questions that it has answered.
        failures: Failures in a row.
        trouble: Its last failure.
        busy_until: When it wants to be asked again, on the clock of the event loop.
        backoff: Returns the seconds to leave a slot alone after a number of failures in a row.
    """

    def __init__(self, address: str, model: str, limit: int = 1, patience: float = 0.0) -> None:
        self.address: str = address
        self.model: str = model
        self.limit: int = limit
        self.patience: float = patience
        self.open: int = 0
        self.pausing: int = 0
        self.answers: int = 0
        self.failures: int = 0
        self.failing_since: float = 0.0
        self.busy_until: float = 0.0
        self.trouble: str = ""
        self.backoff: Callable[[int], float] = random_backoff
        self._halved_at = 0.0

    @abstractmethod
    async def chat(self, request: Request[Any], cost: Cost) -> ChatReply:
        """Send a conversation."""

    @property
    def has_room(self) -> bool:
        """Whether a slot is free; a server that is gone has one, to be probed."""
        slots = 1 if self.is_gone else self.limit
        return self.open + self.pausing < slots and loop_time() >= self.busy_until

    @property
    def is_gone(self) -> bool:
        """Whether it has failed several times in a row."""
        return self.failures >= FAILURES_TO_REST

    @property
    def is_waited_for(self) -> bool:
        """Whether it fails, and has not failed for longer than the patience lasts."""
        return self.failures > 0 and loop_time() < self.failing_since + self.patience

    @property
    def waits(self) -> bool:
        """Whether refusals that may be an outage are waited for: it has answered before."""
        return bool(self.patience and self.answers)

    @property
    def is_given_up(self) -> bool:
        """Whether questions to it fail at once."""
        return self.is_gone and not self.is_waited_for

    def answered(self) -> None:
        """Note an answer."""
        if self.is_gone:
            gone = loop_time() - self.failing_since
            LOGGER.warning("%s at %s answers again, after %.1f s", self.model, self.address, gone)
        self.failures = 0
        self.answers += 1

    def failed(self, error: LLMError, sent_at: float) -> float:
        """Note a failure; return the seconds for which to leave the slot alone.

        Args:
            error: The failure.
            sent_at: When the question was put, on the clock of the event loop.
        """
        self.trouble = str(error)
        self.failures += 1
        if self.failures == 1:
            self.failing_since = loop_time()
        if self.failures == FAILURES_TO_REST:
            LOGGER.warning(
                "%s at %s is failing, and will only be probed until it answers: %s",
                *(self.model, self.address, self.trouble),
            )
        if isinstance(error, TimedOutError) and self.answers and sent_at >= self._halved_at:
            self._halve()

        asks_to_wait = min(error.retry_after or 0.0, _LONGEST_WAIT_SECONDS)
        self.busy_until = max(self.busy_until, loop_time() + asks_to_wait)
        return max(self.backoff(self.failures), asks_to_wait)

    def _halve(self) -> None:
        """Ask a server that works, but not in time, half as much at once."""
        if self.open > 1:
            self._halved_at = loop_time()
            self.limit = self.open // 2
            LOGGER.warning(
                "%s at %s did not answer %d questions at once in time: from now on it is asked %d",
                *(self.model, self.address, self.open, self.limit),
            )


# Servers that are asked by calls of a client

MOST_ALTERNATIVES = 20
"""Most log-probabilities of alternatives that servers give for a token."""

_DROPPABLE: Mapping[str, tuple[str, ...]] = {
    "logprobs": ("logprob",),
    "top_logprobs": ("logprob",),
    "response_format": ("response_format", "schema", "grammar", "guided", "structured"),
    "chat_template_kwargs": ("chat_template", "think"),
    "reasoning_effort": ("reasoning", "effort", "think"),
    **{each: (each,) for each in ("format", "think", "seed", "temperature", "max_tokens")},
    **{each: (each,) for each in ("top_k", "min_p", "top_p")},
}
"""Parts that a request may do without, and the words by which servers name them in a refusal."""

_UNLIMITED: Mapping[str, Any] = {"top_p": 1, "top_k": 0, "min_p": 0}
"""Sampling without limits, so that what is drawn has the model's own probabilities."""

_MOST_REASON = 40


class Call(NamedTuple):
    """A call of a client: its method and its arguments."""

    method: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]


class ClientServer(Server):
    """A server that is asked by calls of a client.

    Attributes:
        seconds: Time limit of one request; 0 for none.
        dropped: The parts of requests that it has refused.
        fixed: The parts that the user has set, which are never left out.
        model_and_host: What is logged as a model and its server; None where it is unknown.
        sampling: How it was told to sample its replies.
    """

    seconds: float = 0.0

    def __init__(self, address: str, model: str, limit: int, patience: float) -> None:
        super().__init__(address, model, limit, patience)
        self.dropped: set[str] = set()
        self.fixed: set[str] = set()
        self.model_and_host: tuple[str | None, str | None] = model, address
        self.sampling: dict[str, Any] = {}
        self._warned: set[str] = set()

    async def ready(self) -> None:
        """Connect, where that is necessary before the first call."""

    @abstractmethod
    def call(self, request: Request[Any]) -> Call:
        """Return the call for a conversation."""

    async def chat(self, request: Request[Any], cost: Cost) -> ChatReply:
        """Send a conversation, and again without each part that the server refuses by name.

        Raises:
            UselessReplyError: If the reply is empty.
            LLMError: If there is none.
        """
        await self.ready()
        while True:
            call = self.call(request)
            for part in self.dropped:
                call.named.pop(part, None)
            try:
                reply = await self.sent(call, cost)
            except LLMError as error:
                refused = _part_refused(error, {*call.named} - self.fixed)
                if refused is None:
                    raise
                self.dropped.add(refused)
                self.warn_once(refused, f"refuses {refused}, so it is asked without: {error}")
                if refused == "logprobs":
                    return ChatReply("", cost.model or "", cost.host or "")
                continue

            try:
                return self.read(reply, request, cost)
            except LLMError as error:
                error.host = error.host or self.model_and_host[1]
                raise

    def read(self, reply: Any, request: Request[Any], cost: Cost) -> ChatReply:
        """Return what a reply says.

        Raises:
            UselessReplyError: If it says nothing.
        """
        message = first(choice_in(reply), "message")
        thought = first(message, "thinking", "reasoning_content", "reasoning")
        text = with_calls(text_of(reply), reply, request.schema) or self._thought(thought, request)
        if not text.strip():
            what = "thoughts, and no reply" if thought else "an empty reply"
            raise self.bad(f"gave {what}{cost.cut_short}", UselessReplyError)

        return ChatReply(
            text,
            cost.model or "",
            cost.host or "",
            cost.input_tokens,
            cost.output_tokens,
            tokens_of(reply) if request.chances else (),
        )

    def _thought(self, thought: Any, request: Request[Any]) -> str:
        """Return an answer that a server has put where thoughts belong; empty if it is none."""
        if request.schema is None or not isinstance(thought, str):
            return ""
        try:
            data = json.loads(thought)
        except (ValueError, RecursionError):
            return ""

        properties = request.schema.get("properties", {})
        required = request.schema.get("required", properties)
        if not isinstance(data, dict) or not {*required} <= {*data} <= {*properties}:
            return ""
        self.warn_once("thoughts", "puts its answers where thoughts belong; they are taken")
        return thought

    async def sent(self, call: Call, cost: Cost, seconds: float | None = None) -> Any:
        """Return the result of a call, and add it to the cost.

        Args:
            call: The call.
            cost: Collects its cost.
            seconds: Time limit, if it is another than that of questions.

        Raises:
            LLMError: If it fails.
        """
        limit = self.seconds if seconds is None else seconds
        cost.began(*self.model_and_host)
        began = perf_counter()
        try:
            async with asyncio.timeout(limit or None):
                reply = call.method(*call.arguments, **call.named)
                reply = await reply if inspect.isawaitable(reply) else reply
            self.require_reply(reply)
            cost.replied(*usage_in(reply))
            name = of_kind(str, first(reply, "model"))
            # Ollama adds the tag of a name without one
            if name and name != f"{cost.model}:latest":
                cost.model = name
            cost.host = of_kind(str, first(reply, "host")) or cost.host
            reason = of_kind(str, first(choice_in(reply), "done_reason", "finish_reason"))
            cost.done_reason = reason and reason[:_MOST_REASON]
            return reply
        except Exception as error:
            failure = self.failure(error, limit)
            if failure is error:
                raise
            raise failure from error
        finally:
            cost.request_seconds = perf_counter() - began

    def failure(self, error: Exception, seconds: float = 0.0) -> LLMError:
        """Return the error of prism's tree for an exception of a call with a time limit."""
        failure = translated(error, f"{self.model} at {self.address}", seconds)
        failure.host = failure.host or self.model_and_host[1]
        return failure

    def chances_of(self, request: Request[Any]) -> dict[str, Any]:
        """Return the part of a request for log-probabilities, if a conversation wants them."""
        return {"logprobs": True, "top_logprobs": MOST_ALTERNATIVES} if request.chances else {}

    def sampling_of(self, request: Request[Any], temperature: float | None) -> dict[str, Any]:
        """Return how a reply is to be sampled: without limits if an answer is drawn from it."""
        is_drawn = request.chances or temperature != 0
        parts = {"temperature": temperature, **(_UNLIMITED if is_drawn else {})}
        self.sampling.update((name, each) for name, each in parts.items() if each is not None)
        return parts

    def require_reply(self, reply: Any) -> None:
        """Refuse an error with status 200; gateways say which status it would have had."""
        error = first(reply, "error") if isinstance(reply, Mapping) else None
        error = error or first(choice_in(reply), "error")
        if error is None or first(reply, "message") is not None:
            return

        code = str(first(error, "code"))
        status = int(code) if re.fullmatch("[45][0-9][0-9]", code) else 500
        where = f"{self.model} at {self.address}"
        raise of_status(status, json.dumps(error, default=str), {}, where)

    def bad(self, what: str, kind: type[LLMError] = BadReplyError) -> LLMError:
        """Return an error about its reply."""
        return kind(f"{self.model} at {self.address} {what}", host=self.model_and_host[1])

    def warn_once(self, about: str, what: str) -> None:
        """Warn of something that it does, the first time."""
        if about not in self._warned:
            self._warned.add(about)
            LOGGER.warning("%s at %s %s", self.model, self.address, what)


def _part_refused(error: LLMError, sent: Collection[str]) -> str | None:
    """Return the part of a request that a refusal names, if it may be left out."""
    # behind the address
    message = (str(error).partition(" answered ")[2] or str(error)).lower()
    # OpenAI refuses log-probabilities of some models as forbidden, others as not implemented
    is_refusal = error.status in MALFORMED or (error.status >= 400 and "logprob" in message)
    if not is_refusal or isinstance(error, PromptTooLongError):
        return None

    named = (part for part, words in _DROPPABLE.items() if any(word in message for word in words))
    return next((part for part in named if part in sent), None)

"""A server of models: its slots and its health, and its calls, replies and failures.

Another library's client is such a server, too.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from random import uniform
from time import perf_counter
from typing import Any, NamedTuple

from prism.errors import (
    BadReplyError,
    DeclinedError,
    LLMError,
    OverloadedError,
    PromptTooLongError,
    TimedOutError,
    UselessReplyError,
)
from prism.reasoner.faults import MALFORMED, of_status, translated
from prism.reasoner.replies import spoken, tokens_of
from prism.reasoner.requests import ChatReply, Cost, Request, first, loop_time, of_kind

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
        """Whether it has been failing for less time than its patience."""
        return self.failures > 0 and loop_time() < self.failing_since + self.patience

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
        """Note a failure; return the seconds to leave its slot alone.

        Args:
            error: The failure.
            sent_at: When the question was sent, on the clock of the event loop.
        """
        self.trouble = str(error)
        self.failures += 1
        if self.failures == 1:
            self.failing_since = loop_time()
        if self.failures == FAILURES_TO_REST:
            about = self.model, self.address, self.trouble
            LOGGER.warning("%s at %s is failing, and only probed until it answers: %s", *about)
        if isinstance(error, TimedOutError) and self.answers and sent_at >= self._halved_at:
            self._halve()

        asks_to_wait = min(error.retry_after or 0.0, _LONGEST_WAIT_SECONDS)
        self.busy_until = max(self.busy_until, loop_time() + asks_to_wait)
        return max(self.backoff(self.failures), asks_to_wait)

    def _halve(self) -> None:
        """Halve the slots of a server that works, but not in time."""
        if self.open > 1:
            self._halved_at = loop_time()
            self.limit = self.open // 2
            what = "%s at %s did not answer %d questions at once in time: now it is asked %d"
            LOGGER.warning(what, self.model, self.address, self.open, self.limit)


MOST_ALTERNATIVES = 20
"""Most log-probabilities of alternatives that servers give for a token."""

_FEW_ALTERNATIVES = 5
"""How many some servers give at most, which refuse a request for more."""

# the limit that a refusal names
_LIMIT = re.compile(r" answered .*\b[5-9]\b", re.DOTALL)

_DROPPABLE: Mapping[str, tuple[str, ...]] = {
    "logprobs": ("logprob", "top_n_tokens"),
    "top_logprobs": ("logprob",),
    "response_format": ("response_format", "schema", "grammar", "guided", "structured"),
    "chat_template_kwargs": ("chat_template", "think"),
    "reasoning_effort": ("reasoning", "effort", "think"),
    **{each: (each,) for each in ("format", "think", "seed", "temperature", "max_tokens")},
    **{each: (each,) for each in ("max_completion_tokens", "top_k", "min_p", "top_p")},
}
"""Parts that a request may do without, and the words by which servers name them in a refusal."""

_UNLIMITED: Mapping[str, Any] = {"top_p": 1, "top_k": 0, "min_p": 0}
"""Sampling without limits, so that answers have the model's own probabilities."""

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
        model_and_host: Model and server for the log; None for one that is unknown.
        sampling: The parameters of sampling in its requests.
    """

    seconds: float = 0.0

    def __init__(self, address: str, model: str, limit: int, patience: float) -> None:
        super().__init__(address, model, limit, patience)
        self.dropped: set[str] = set()
        self.fixed: set[str] = set()
        self.model_and_host: tuple[str | None, str | None] = model, address
        self.sampling: dict[str, Any] = {}
        self._alternatives = MOST_ALTERNATIVES
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
        left_out: set[str] = set()
        while True:
            call = self.call(request)
            for part in self.dropped:
                call.named.pop(part, None)
            try:
                reply = await self.sent(call, cost)
            except LLMError as error:
                refused = _part_refused(error, {*call.named} - self.fixed)
                if refused is None:
                    # that it may refuse the question itself, in words that quote it, proves nothing
                    self.dropped -= left_out
                    raise
                has_many = call.named.get("top_logprobs", 0) > _FEW_ALTERNATIVES
                if refused == "logprobs" and has_many and _LIMIT.search(str(error)):
                    self._alternatives = _FEW_ALTERNATIVES
                    continue
                left_out.add(refused)
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
        text = with_calls(text_of(reply), reply, request.schema)
        text = text if text.strip() else self._thought(thought, request)
        if not text.strip():
            what = "thoughts, and no reply" if thought else "an empty reply"
            raise self.bad(f"gave {what}{cost.cut_short}", UselessReplyError)

        tokens = tokens_of(choice_in(reply)) if request.chances else ()
        return ChatReply(text, cost.model or "", cost.host or "", tokens)

    def _thought(self, thought: Any, request: Request[Any]) -> str:
        """Return an answer that a server has sent as a thought; empty if the thought is none."""
        schema, data = request.schema or {}, None
        with suppress(ValueError, RecursionError, TypeError):
            data = json.loads(thought)

        properties = schema.get("properties", {})
        required = schema.get("required", properties)
        if not isinstance(data, dict) or not data or not {*required} <= {*data} <= {*properties}:
            return ""
        self.warn_once("thoughts", "puts its answers where thoughts belong; they are taken")
        return str(thought)

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
        return {"logprobs": True, "top_logprobs": self._alternatives} if request.chances else {}

    def sampling_of(self, request: Request[Any], temperature: float | None) -> dict[str, Any]:
        """Return the parameters of sampling: no limits if an answer is drawn from the reply."""
        is_drawn = request.chances or temperature != 0
        parts = {"temperature": temperature, **(_UNLIMITED if is_drawn else {})}
        self.sampling.update((name, each) for name, each in parts.items() if each is not None)
        return parts

    def require_reply(self, reply: Any) -> None:
        """Refuse an error that came with status 200; gateways add the status that they mean."""
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
        """Warn of a habit of the server, the first time that it shows."""
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


# Replies

_USAGE = ("usage_details", "usage")

_READ = ("input_tokens", "prompt_eval_count", "input_token_count", "prompt_tokens")

_WRITTEN = ("output_tokens", "eval_count", "output_token_count", "completion_tokens")


_SAID = (None, "text", "output_text")
"""Types of the parts of a reply that are its text, and no thought."""

_WITHHELD = ("content_filter", "safety", "prohibited", "recitation", "sensitive", "refusal")
_BROKEN_OFF = ("error", "abort", "cancelled", "insufficient_system_resource", "network_error")


def text_of(reply: Any) -> str:
    """Return a reply's text.

    Raises:
        DeclinedError: If the model declined to answer.
        OverloadedError: If its server broke off.
        BadReplyError: If it is of an unknown kind.
    """
    if isinstance(reply, str):
        return reply

    choice = choice_in(reply)
    _require_answer(choice)
    for path in (("message", "content"), ("text",), ("content",), ("output",), ()):
        content = choice
        for name in path:
            content = first(content, name)
        if isinstance(content, list):
            said = (part for part in content if first(part, "type") in _SAID)
            content = "".join(str(first(part, "text") or "") for part in said)
        if isinstance(content, str):
            return content
        # agents with typed results return data instead of text
        if (chosen := first(content, "next_state")) is not None:
            return json.dumps({"next_state": str(getattr(chosen, "value", chosen))})

    if first(choice, "message") is not None:
        return ""
    raise BadReplyError(f"the client's reply of type {type(reply).__name__} has no text")


def _require_answer(choice: Any) -> None:
    """Refuse a text that its server says is no answer, or only a part of one."""
    refusal = first(first(choice, "message"), "refusal")
    if isinstance(refusal, str) and refusal:
        raise DeclinedError(f"the model declined to answer: {' '.join(refusal.split()):.120}")
    reason = str(first(choice, "finish_reason")).lower()
    if reason.startswith(_WITHHELD):
        raise DeclinedError("the content filter of the model's server withheld its reply")
    if reason in _BROKEN_OFF:
        raise OverloadedError(f"the model's server broke its reply off ({reason})")


def with_calls(text: str, reply: Any, schema: Mapping[str, Any] | None) -> str:
    """Return the text of a reply with its tool calls as JSON.

    Servers that know how a model calls tools cut the calls out of its text. A call may be the
    answer to a choice, with no words beside it that might deny it, or an action of an agent.
    """
    calls = first(first(choice_in(reply), "message"), "tool_calls")
    if not isinstance(calls, Sequence) or not calls:
        return text
    properties = (schema or {}).get("properties") or ()
    is_choice = not {"next_state", "letter"}.isdisjoint(properties) and not spoken(text)
    if not ("agent" in properties or is_choice):
        return text

    functions = [first(each, "function") for each in calls]
    plain = [
        {"name": first(each, "name"), "arguments": first(each, "arguments") or {}}
        for each in functions
    ]
    return f"{text}\n{json.dumps(plain, default=str)}".strip()


def choice_in(reply: Any) -> Any:
    """Return the first of several choices, as in OpenAI's replies, or else the reply."""
    choices = first(reply, "choices")
    return choices[0] if isinstance(choices, Sequence) and choices else reply


def usage_in(reply: Any) -> tuple[Any, Any, Any]:
    """Return the tokens that were read and written, by any of the names in use, and the money."""
    usage = first(reply, *_USAGE)
    counts = reply if usage is None else usage
    return first(counts, *_READ), first(counts, *_WRITTEN), first(counts, "cost")

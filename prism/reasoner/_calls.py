"""A server that is asked by calls of a client: a call, its reply, and its exceptions."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from math import exp
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from prism.errors import (
    BadReplyError,
    DeclinedError,
    LLMError,
    PromptTooLongError,
    UselessReplyError,
)
from prism.reasoner._faults import MALFORMED, of_status, translated
from prism.reasoner._replies import ChatReply, Request, Token, spoken
from prism.reasoner._slots import LOGGER, Server
from prism.reasoner._spending import Cost

MOST_ALTERNATIVES = 20
"""Most log-probabilities of alternatives that servers give for a token."""


_USAGE = ("usage_details", "usage")
_READ = ("input_tokens", "prompt_eval_count", "input_token_count", "prompt_tokens")
_WRITTEN = ("output_tokens", "eval_count", "output_token_count", "completion_tokens")

_DROPPABLE: Mapping[str, tuple[str, ...]] = {
    "logprobs": ("logprob",),
    "top_logprobs": ("logprob",),
    "response_format": ("response_format", "schema", "grammar", "guided", "structured"),
    "format": ("format",),
    "think": ("think",),
    "chat_template_kwargs": ("chat_template", "think"),
    "reasoning_effort": ("reasoning", "effort", "think"),
    "seed": ("seed",),
    "temperature": ("temperature",),
    "max_tokens": ("max_tokens",),
    "top_k": ("top_k",),
    "min_p": ("min_p",),
    "top_p": ("top_p",),
}
"""Parts that a request may do without, and the words by which servers name them in a refusal."""

_NEVER = -10_000.0
"""A logarithm whose probability is 0, since JSON may contain one that no float can hold."""

_WRAPPING = " \t\n\"'`:{}▁Ġ"
"""Characters that may share a token with an option's letter, as in ``"B`` and ``B"`` in JSON.

The last two are how some servers show a space.
"""

_MOST_REASON = 40


KindT = TypeVar("KindT")


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
    """

    seconds: float = 0.0

    def __init__(self, address: str, model: str, limit: int, patience: float) -> None:
        super().__init__(address, model, limit, patience)
        self.dropped: set[str] = set()
        self.fixed: set[str] = set()
        self.model_and_host: tuple[str | None, str | None] = model, address
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
        message = first(_choice(reply), "message")
        thought = first(message, "thinking", "reasoning_content", "reasoning")
        text = _with_calls(text_of(reply), reply, request.schema) or self._thought(thought, request)
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

        if not isinstance(data, dict) or set(data) != set(request.schema.get("properties", ())):
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
            cost.replied(*_counts(reply), first(first(reply, *_USAGE), "cost"))
            name = of_kind(str, first(reply, "model"))
            # Ollama adds the tag of a name without one
            if name and name != f"{cost.model}:latest":
                cost.model = name
            cost.host = of_kind(str, first(reply, "host")) or cost.host
            reason = of_kind(str, first(_choice(reply), "done_reason", "finish_reason"))
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

    def require_reply(self, reply: Any) -> None:
        """Refuse an error with status 200; gateways say which status it would have had."""
        error = first(reply, "error") if isinstance(reply, Mapping) else None
        error = error or first(_choice(reply), "error")
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


# Replies


def text_of(reply: Any) -> str:
    """Return a reply's text.

    Raises:
        DeclinedError: If the model declined to answer.
        BadReplyError: If it is of an unknown kind.
    """
    if isinstance(reply, str):
        return reply

    choice = _choice(reply)
    _require_answer(choice)
    for path in (("message", "content"), ("text",), ("content",), ("output",), ()):
        content = choice
        for name in path:
            content = first(content, name)
        if isinstance(content, list):
            content = "".join(str(first(part, "text") or "") for part in content)
        if isinstance(content, str):
            return content
        # agents with typed results return data instead of text
        if (chosen := first(content, "next_state")) is not None:
            return json.dumps({"next_state": str(getattr(chosen, "value", chosen))})

    if first(choice, "message") is not None:
        return ""
    raise BadReplyError(f"the client's reply of type {type(reply).__name__} has no text")


def _require_answer(choice: Any) -> None:
    """Refuse a text that its server says is no answer."""
    refusal = first(first(choice, "message"), "refusal")
    if isinstance(refusal, str) and refusal:
        raise DeclinedError(f"the model declined to answer: {' '.join(refusal.split()):.120}")
    if str(first(choice, "finish_reason")).startswith("content_filter"):
        raise DeclinedError("the content filter of the model's server withheld its reply")


def _with_calls(text: str, reply: Any, schema: Mapping[str, Any] | None) -> str:
    """Return the text of a reply with its tool calls as JSON.

    Servers that know how a model calls tools cut the calls out of its text. A call may be the
    answer to a choice, with no words beside it that might deny it, or an action of an agent.
    """
    calls = first(first(_choice(reply), "message"), "tool_calls")
    properties = (schema or {}).get("properties") or ()
    is_choice = not {"next_state", "letter"}.isdisjoint(properties) and not spoken(text)
    if not isinstance(calls, Sequence) or not calls or not ("agent" in properties or is_choice):
        return text

    functions = [first(each, "function") for each in calls]
    plain = [
        {"name": first(each, "name"), "arguments": first(each, "arguments") or {}}
        for each in functions
    ]
    return f"{text}\n{json.dumps(plain, default=str)}".strip()


def tokens_of(reply: Any) -> list[Token]:
    """Return a reply's tokens with their alternatives; none if its server gives none."""
    logprobs = first(_choice(reply), "logprobs")
    listed = first(logprobs, "content") if not isinstance(logprobs, Sequence) else logprobs
    return [_token(each) for each in listed or () if first(each, "top_logprobs")]


def _token(token: Any) -> Token:
    likely: dict[str, float] = {}
    for each in first(token, "top_logprobs"):
        # a letter may be listed in several spellings, with a space or a quote before it
        text = _letter_in(each)
        likely[text] = likely.get(text, 0.0) + _probability(first(each, "logprob"))
    return _letter_in(token), likely


def _letter_in(token: Any) -> str:
    text = first(token, "token")
    return text.strip(_WRAPPING) if isinstance(text, str) else ""


def _probability(logarithm: Any) -> float:
    is_number = isinstance(logarithm, (int, float)) and not isinstance(logarithm, bool)
    # NaN and positive values are not logarithms of a probability
    return exp(max(logarithm, _NEVER)) if is_number and logarithm <= 0 else 0.0


def _choice(reply: Any) -> Any:
    """Return the first of several choices, as in OpenAI's replies, or else the reply."""
    choices = first(reply, "choices")
    return choices[0] if isinstance(choices, Sequence) and choices else reply


def _counts(reply: Any) -> tuple[Any, Any]:
    """Return the tokens that were read and written, by any of the names in use."""
    usage = first(reply, *_USAGE)
    read, written = first(usage, *_READ), first(usage, *_WRITTEN)
    return (
        first(reply, *_READ) if read is None else read,
        first(reply, *_WRITTEN) if written is None else written,
    )


# Clients by duck type


def has(client: object, method: str) -> bool:
    """Return whether an object has a method of this name."""
    return callable(getattr(client, method, None))


def of_kind(kind: type[KindT], value: Any) -> KindT | None:
    """Return a value if it is of a type, else None."""
    return value if isinstance(value, kind) else None


def first(thing: Any, *names: str) -> Any:
    """Return the first of these keys or attributes that has a value."""
    for name in names:
        value = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value

    return None


def accepted(method: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that have a value and that a method accepts."""
    names, takes_any = parameters(method)
    return {
        name: value
        for name, value in offered.items()
        if value is not None and (takes_any or name in names)
    }


def parameters(method: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """Return the parameter names of a method, and whether it accepts any other."""
    accepted = inspect.signature(method).parameters.values()
    named = [each.name for each in accepted if each.kind is not inspect.Parameter.VAR_KEYWORD]
    return tuple(named), len(named) < len(accepted)

"""Servers that are asked through a client: a call, its reply, and its exceptions.

`prism.llm` has the clients of model servers; here are those of other libraries.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from prism.errors import (
    BadReplyError,
    DeclinedError,
    FieldValueError,
    LLMError,
    PromptTooLongError,
    ReasonerError,
    UselessReplyError,
)
from prism.reasoner._faults import (
    MALFORMED,
    of_status,
    translated,
)
from prism.reasoner._messages import (
    Chat,
    ChatReply,
    ModelClient,
    accepted,
    awaited,
    first,
    has,
    of_kind,
    parameters,
)
from prism.reasoner._replies import spoken
from prism.reasoner._slots import Pool, Server
from prism.reasoner._spending import Cost
from prism.telemetry.loggers import describe

LOGGER = logging.getLogger("prism.llm")

MOST_ALTERNATIVES = 20
"""Most log-probabilities of alternatives that servers give for a token."""

_FEW_ALTERNATIVES = 5
_CHANCES = ("logprobs", "top_logprobs")

PROMPTED = ("chat", "get_response", "run")
"""The methods that take a prompt; the first that a client has is called."""

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

_MOST_RECORDED = 1024 * 1024
_MOST_REASON = 40


class Call(NamedTuple):
    """A call of a client: its method and its arguments."""

    method: Callable[..., Any]
    given: tuple[Any, ...]
    named: dict[str, Any]


class ClientServer(Server):
    """A server that is asked by calls of a client.

    Attributes:
        seconds: Time limit of one request; 0 for none.
        dropped: The parts of requests that it has refused.
        fixed: The parts that the user has set, which are never left out.
        alternatives: Log-probabilities of alternatives that it is asked for.
        model_and_host: What is logged as a model and its server; None where it is unknown.
    """

    seconds: float = 0.0

    def __init__(self, address: str, model: str, limit: int, patience: float) -> None:
        super().__init__(address, model, limit, patience)
        self.dropped: set[str] = set()
        self.fixed: set[str] = set()
        self.alternatives: int = MOST_ALTERNATIVES
        self.model_and_host: tuple[str | None, str | None] = model, address
        self._warned: set[str] = set()

    async def ready(self) -> None:
        """Connect, where that is necessary before the first call."""

    @abstractmethod
    def call(self, chat: Chat) -> Call:
        """Return the call for a conversation."""

    async def chat(self, chat: Chat, cost: Cost) -> ChatReply:
        """Send a conversation, and again without each part that the server refuses by name.

        Raises:
            UselessReplyError: If the reply is empty.
            LLMError: If there is none.
        """
        await self.ready()
        while True:
            call = self.call(chat)
            for part in self.dropped:
                call.named.pop(part, None)
            try:
                reply = await self.sent(call, cost)
            except LLMError as error:
                refused = _part_refused(error, {*call.named} - self.fixed)
                if refused is None or not cost.allows_another:
                    raise
                # by what was sent: another question may have lowered the number in the meantime
                most = call.named.get("top_logprobs")
                if refused in _CHANCES and most == MOST_ALTERNATIVES and _allows_some(error):
                    self.alternatives = _FEW_ALTERNATIVES
                    continue
                self.dropped.add(refused)
                self.warn_once(refused, f"refuses {refused}, so it is asked without: {error}")
                if refused == "logprobs":
                    return ChatReply("", cost.model or "", cost.host or "")
                continue

            try:
                return self.read(reply, chat, cost)
            except LLMError as error:
                error.host = error.host or self.model_and_host[1]
                raise

    def read(self, reply: Any, chat: Chat, cost: Cost) -> ChatReply:
        """Return what a reply says.

        Raises:
            UselessReplyError: If it says nothing.
        """
        text = _with_calls(text_of(reply), reply, chat.schema) or self._thought(reply, chat)
        if not text.strip():
            message = first(_choice(reply), "message")
            has_thoughts = first(message, "thinking", "reasoning_content", "reasoning")
            what = "thoughts, and no reply" if has_thoughts else "an empty reply"
            raise self.bad(f"gave {what}{cost.cut_short}", UselessReplyError)

        return ChatReply(
            text,
            cost.model or "",
            cost.host or "",
            cost.input_tokens,
            cost.output_tokens,
            tokens_of(reply) if chat.chances else (),
        )

    def _thought(self, reply: Any, chat: Chat) -> str:
        """Return an answer that a server has put where thoughts belong; empty if it is none."""
        message = first(_choice(reply), "message")
        thought = first(message, "thinking", "reasoning_content", "reasoning")
        if chat.schema is None or not isinstance(thought, str):
            return ""
        try:
            found = json.loads(thought)
        except (ValueError, RecursionError):
            return ""

        if not isinstance(found, dict) or set(found) != set(chat.schema.get("properties", ())):
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
        is_recorded = cost.trail is not None
        request = _request_of(call) if is_recorded else None
        attempt, fault = cost.began(*self.model_and_host, request), None
        try:
            async with asyncio.timeout(limit or None):
                reply = await awaited(call.method(*call.given, **call.named))
            self._require_reply(reply)
            cost.replied(attempt, _plain(reply) if is_recorded else None, *_counts(reply))
            cost.model = of_kind(str, first(reply, "model")) or cost.model
            cost.host = of_kind(str, first(reply, "host")) or cost.host
            reason = of_kind(str, first(_choice(reply), "done_reason", "finish_reason"))
            cost.done_reason = reason and reason[:_MOST_REASON]
            return reply
        except asyncio.CancelledError:
            fault = "cancelled before an answer came"
            raise
        except Exception as error:
            fault = describe(error)
            failure = self.failure(error, limit)
            if failure is error:
                raise
            raise failure from error
        finally:
            cost.ended(attempt, fault)

    def failure(self, error: Exception, seconds: float = 0.0) -> LLMError:
        """Return the error of prism's tree for an exception of a call with a time limit."""
        failure = translated(error, f"{self.model} at {self.address}", seconds)
        failure.host = failure.host or self.model_and_host[1]
        return failure

    def chances_of(self, chat: Chat) -> dict[str, Any]:
        """Return the part of a request for log-probabilities, if a conversation wants them."""
        return {"logprobs": True, "top_logprobs": self.alternatives} if chat.chances else {}

    def _require_reply(self, reply: Any) -> None:
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


class ForeignServer(ClientServer):
    """A client of another library: Ollama's, OpenAI's, or one with a method that takes a prompt.

    Args:
        client: The client.
        model: Model name, for a client that needs one with every call.
        seed: Seed of the sampling, if the client takes one.
        limit: Simultaneous questions.
        patience: Seconds to wait for it when it fails.
    """

    def __init__(
        self, client: Any, model: str | None, seed: int | None, limit: int, patience: float
    ) -> None:
        super().__init__(type(client).__name__, model or "the model", limit, patience)
        self._client, self._model, self._seed = client, model, seed
        self.model_and_host = model, None

    def call(self, chat: Chat) -> Call:
        """Return the call in the form that the client takes."""
        seed = None if self._seed is None else self._seed + chat.variation
        if (completions := completions_of(self._client)) is not None:
            return self._of_openai(completions.create, chat, seed)

        name = next(each for each in PROMPTED if has(self._client, each))
        ask = getattr(self._client, name)
        names, takes_any = parameters(ask)
        if name == "chat" and ("messages" in names or takes_any or not names):
            return self._of_ollama(ask, chat, seed)

        # as agent-framework's clients and agents take them
        options = {"response_format": chat.schema, "seed": seed}
        known = {key: value for key, value in options.items() if value is not None}
        takes_options = name != "chat" and {"messages", "options"} <= set(names)
        (message,) = chat.messages
        return Call(ask, (message["content"],), {"options": known} if takes_options else {})

    def _of_openai(self, create: Callable[..., Any], chat: Chat, seed: int | None) -> Call:
        schema = {"name": "answer", "schema": chat.schema}
        offered = {
            "model": self._model,
            "messages": list(chat.messages),
            "seed": seed,
            "response_format": chat.schema and {"type": "json_schema", "json_schema": schema},
            **self.chances_of(chat),
        }
        return Call(create, (), {key: part for key, part in offered.items() if part is not None})

    def _of_ollama(self, ask: Callable[..., Any], chat: Chat, seed: int | None) -> Call:
        offered = {
            "messages": chat.messages,
            "format": chat.schema,
            "model": self._model,
            "options": {"seed": seed} if self._model and seed is not None else None,
            **self.chances_of(chat),
        }
        return Call(ask, (), accepted(ask, offered))

    def failure(self, error: Exception, seconds: float = 0.0) -> LLMError:
        """Return the error of prism's tree for an exception of the client."""
        if isinstance(error, LLMError):
            # of one of prism's own clients inside of another, which has tried again already
            return LLMError(describe(error), host=error.host)
        return super().failure(error, seconds)


def gives_chances(client: Any) -> bool:
    """Return whether a client takes a request for log-probabilities, by name."""
    completions = completions_of(client)
    method = getattr(client, "chat", None) if completions is None else completions.create
    if not callable(method):
        return False
    names, _ = parameters(method)
    return "logprobs" in names or "chances" in names


def _part_refused(error: LLMError, sent: Collection[str]) -> str | None:
    """Return the part of a request that a refusal names, if it may be left out."""
    # behind the address
    said = (str(error).partition(" answered ")[2] or str(error)).lower()
    # OpenAI refuses log-probabilities of some models as forbidden, others as not implemented
    is_refusal = error.status in MALFORMED or (error.status >= 400 and "logprob" in said)
    if not is_refusal or isinstance(error, PromptTooLongError):
        return None

    named = (part for part, words in _DROPPABLE.items() if any(word in said for word in words))
    return next((part for part in named if part in sent), None)


def _allows_some(error: LLMError) -> bool:
    """Return whether a refusal of many alternatives names a number of them that is allowed."""
    return re.search(r"top_logprobs\D*.*\b([5-9]|1\d)\b", str(error)) is not None


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
        found = choice
        for name in path:
            found = first(found, name)
        if isinstance(found, list):
            found = "".join(str(first(part, "text") or "") for part in found)
        if isinstance(found, str):
            return found
        # agents with typed results return data instead of text
        if (chosen := first(found, "next_state")) is not None:
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
    asked = (schema or {}).get("properties") or ()
    is_choice = not {"next_state", "letter"}.isdisjoint(asked) and not spoken(text)
    if not isinstance(calls, Sequence) or not calls or not ("agent" in asked or is_choice):
        return text

    functions = [first(each, "function") for each in calls]
    told = [
        {"name": first(each, "name"), "arguments": first(each, "arguments") or {}}
        for each in functions
    ]
    return f"{text}\n{json.dumps(told, default=str)}".strip()


def tokens_of(reply: Any) -> Sequence[Any]:
    """Return a reply's tokens with their alternatives; none if its server gives none."""
    found = first(_choice(reply), "logprobs")
    listed = first(found, "content") if not isinstance(found, Sequence) else found
    return [each for each in listed if first(each, "top_logprobs")] if listed else ()


def _choice(reply: Any) -> Any:
    """Return the first of several choices, as in OpenAI's replies, or else the reply."""
    choices = first(reply, "choices")
    return choices[0] if isinstance(choices, Sequence) and choices else reply


def _counts(reply: Any) -> tuple[Any, Any]:
    """Return the tokens that were read and written, by any of the names in use."""
    usage = first(reply, "usage_details", "usage")
    read, written = first(usage, *_READ), first(usage, *_WRITTEN)
    return (
        first(reply, *_READ) if read is None else read,
        first(reply, *_WRITTEN) if written is None else written,
    )


def _request_of(call: Call) -> str:
    body = call.named.get("json", call.named)
    prompt = {"prompt": call.given[0]} if call.given else {}
    return json.dumps({**prompt, **body}, ensure_ascii=False, default=str)


def _plain(reply: Any) -> str:
    """Return a reply for the record, as JSON if it supports that."""
    if isinstance(reply, str):
        return reply
    dump = getattr(reply, "model_dump_json", None)
    try:
        text = dump() if callable(dump) else json.dumps(reply, ensure_ascii=False, default=str)
    except Exception:  # of the user's client, whose repr is enough
        text = repr(reply)

    return str(text)[:_MOST_RECORDED]


# Clients


def completions_of(client: Any) -> Any:
    """Return the completions of a client like ``openai.AsyncOpenAI``; None for others."""
    completions = getattr(getattr(client, "chat", None), "completions", None)
    return completions if has(completions, "create") else None


def adapt(
    client: Any,
    model: str | None,
    seed: int | None,
    attempts: int = 1,
    concurrency: int = 1,
    patience: float = 0.0,
) -> ModelClient:
    """Return the client itself if it is a `ModelClient`, or else a pool with it as the only server.

    Args:
        client: A client that passed `check_client`.
        model: Model name, for a client that needs one with every call.
        seed: Seed of the sampling, if the client takes one.
        attempts: Requests for one question, if the client does not try again by itself.
        concurrency: Simultaneous questions.
        patience: Seconds to wait for it when it fails.
    """
    if has_slots(client):
        return cast("ModelClient", client)

    tries_again = of_kind(int, getattr(client, "max_retries", None))
    server = ForeignServer(client, model, seed, concurrency, patience)
    return cast("ModelClient", Pool([server], model or "", attempts=1 if tries_again else attempts))


def has_slots(client: Any) -> bool:
    """Return whether a client manages slots itself: it has a limit, and accepts a cost."""
    if not getattr(client, "concurrency", None):
        return False
    chat = getattr(client, "chat", None)
    return callable(chat) and "cost" in parameters(chat)[0]


def refuse_own_limits(client: Any, kind: str, **given: Any) -> None:
    """Refuse limits for a client that has its own and would ignore them.

    Raises:
        FieldValueError: If ``concurrency`` or ``attempts`` is given for such a client.
    """
    own, concurrency = getattr(client, "concurrency", None), given["concurrency"]
    if own and concurrency is not None:
        raise FieldValueError(
            f"concurrency must be omitted, got {concurrency!r}: {kind} has its own, {own!r}"
        )
    if given["attempts"] is not None and has_slots(client):
        raise FieldValueError(
            f"attempts must be omitted, got {given['attempts']!r}: {kind} retries by itself"
        )


def check_client(client: object, *, only_decides: bool = False) -> None:
    """Refuse a client that cannot be asked.

    Args:
        client: The client.
        only_decides: Whether it would be asked for probabilities and nothing else.

    Raises:
        ReasonerError: If it has none of the methods, or blocks the event loop.
    """
    kind = type(client).__name__
    if instead := _async_twin(client):
        raise ReasonerError(f"{kind} stops the event loop while it waits for an answer: {instead}")
    if only_decides:
        if not gives_chances(client):
            raise ReasonerError(
                f"mode 'decision' needs a client whose chat takes logprobs; that of {kind} does not"
            )
    elif completions_of(client) is None and not any(has(client, name) for name in PROMPTED):
        raise ReasonerError(
            f"a Reasoner's client needs an async method chat, get_response or run; {kind} has none"
        )


def _async_twin(client: object) -> str | None:
    """Return what to use instead of a blocking client of Ollama or OpenAI."""
    bases = type(client).__mro__
    makers = {base.__module__.partition(".")[0] for base in bases} & {"ollama", "openai"}
    if not makers or any(base.__name__.startswith("Async") for base in bases):
        return None
    if inspect.iscoroutinefunction(getattr(client, "chat", None)):
        return None
    return f"use {'ollama.AsyncClient' if 'ollama' in makers else 'openai.AsyncOpenAI'}"


def check_model(client: object, model: str | None) -> None:
    """Refuse a client that needs a model name with every call if there is none.

    Raises:
        ReasonerError: If there is no name, and the client's method needs one.
    """
    completions = completions_of(client)
    method = getattr(client, "chat", None) if completions is None else completions.create
    if model or not callable(method):
        return

    parameter = inspect.signature(method).parameters.get("model")
    if parameter is not None and parameter.default in (inspect.Parameter.empty, ""):
        raise ReasonerError(
            f"{type(client).__name__}.chat needs the name of a model: give one, "
            "such as Reasoner(client, model='...')"
        )


def require_model(client: object, model: str | None) -> None:
    """Refuse to keep answers whose model is unknown.

    Raises:
        ReasonerError: If neither the client nor the user names it.
    """
    if model is None and not isinstance(getattr(client, "model", None), str):
        raise ReasonerError(
            f"a cache keeps answers by model, but {type(client).__name__} names none: give "
            "Reasoner a model, any name that stands for the model and all else that the answers "
            "depend on"
        )


def depends_on(client: Any, model: str | None, seed: int) -> list[Any]:
    """Return what a reply depends on besides the question, if the client reveals it."""
    names = ("model", "temperature", "seed", "think")
    settings = [getattr(client, name, None) for name in names]
    plain = [each if isinstance(each, (str, int, float)) else None for each in settings]
    return [model, seed, *plain]

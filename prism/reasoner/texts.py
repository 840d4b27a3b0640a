"""Texts: a call for one, its answer, the base of all writers, and a writer that asks a model."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Unpack

from prism.errors import LLMError, UselessReplyError
from prism.randomness import RandomStream
from prism.reasoner.asking import AskedOnce, AsksModel, Limits, all_of
from prism.reasoner.faults import OtherLoopError
from prism.reasoner.questions import FAILURES, SEEDS, Parts, hash_of, keys_of_cost, to_log
from prism.reasoner.requests import USUAL_TRIES, ChatReply, Cost, Request, known_of, prompted
from prism.statechart.names import agent_name
from prism.telemetry.events import TEXT_WRITTEN
from prism.telemetry.loggers import EventLogger, describe, report, synchronous

TextSource = Literal["model", "cache", "script", "template", "fallback", "failed"]

Effect = Callable[[], Awaitable[Any]]
"""Acts on the outside world, and returns a result as plain data."""

ReadText = Callable[[str], Any]
"""Returns the value of a text; raises ValueError if it cannot be used."""


@dataclass(frozen=True, slots=True)
class TextCall:
    """A prompt whose answer is a text, or JSON of a schema.

    Args:
        agent: The agent, or its name.
        key: Purpose of the text; together with the agent, the name of the call in a log.
        prompt: The prompt.
        schema: JSON Schema of the answer, for clients that accept one; None for a text.
        read: Reads the text and returns its value; after a ValueError the model is asked again.
        tries: How often the model is asked at most, whatever fails, and in other words if its text
            is useless. By default twice if texts are useless, beside retries of failures.
        fallback: The result if no usable text comes: a text, or data of the schema. None for
            nothing.
        variation: Added to the seed of the sampling, so that the same prompt can have another
            answer.
        reply_tokens: Tokens that the answer may have, unless the model's settings say; None for
            what its schema says, or a default.
        limit: Tokens that the answer may have in any case; None for no such limit.
        how: How to answer, in words, where the model is asked again; by its schema if empty.
    """

    agent: Any
    key: str
    prompt: str
    schema: Mapping[str, Any] | None = None
    read: ReadText = str
    tries: int | None = None
    fallback: Any = None
    variation: int = 0
    reply_tokens: int | None = None
    limit: int | None = None
    how: str = ""

    @property
    def agent_id(self) -> str:
        """Name of the agent, as in the log."""
        return self.agent if isinstance(self.agent, str) else agent_name(self.agent)

    @property
    def prompt_hash(self) -> str:
        """The first 16 hexadecimal digits of the prompt's SHA-256, as in the log."""
        return hash_of(self.prompt)


@dataclass(frozen=True, slots=True)
class Written:
    """The answer to a `TextCall`.

    Args:
        text: The last text of the model, or the ``template`` or ``fallback`` that was taken
            instead; None if there was none.
        source: What wrote it: a ``model``, a ``cache`` of one, or a ``script``; the
            ``template`` if no model was asked, the ``fallback`` if no usable text came, and
            ``failed`` if there was no fallback.
        value: The value that the call reads from the text; None if it failed.
        reason: Why it failed, or why the fallback was taken, in words.
        cost: Its cost, if a model was asked.
        failure: The name of the exception that it failed by, such as ``BudgetSpentError``.
        text_id: Its id in the journal of a kept run.
    """

    text: str | None
    source: TextSource
    value: Any = field(default=None, compare=False)
    reason: str | None = None
    cost: Cost | None = None
    failure: str | None = None
    text_id: str | None = field(default=None, compare=False)

    @property
    def has_failed(self) -> bool:
        """Whether no usable text came."""
        return self.source == "failed"


class BaseWriter(ABC):
    """Base class of writers: answers one text call or many, and logs every text.

    Args:
        logger: A structlog logger for the texts. None means structlog's own, once it is configured.

    Attributes:
        concurrency: Number of simultaneous calls; 0 if texts are immediate.
    """

    concurrency: int = 0

    def __init__(self, logger: EventLogger | None = None) -> None:
        self._logger = synchronous(logger)

    @property
    def sends_schemas(self) -> bool:
        """Whether the schema of a text goes to its server, which follows it."""
        return False

    @property
    def is_repeating(self) -> bool:
        """Whether the next answers come from a journal, as an earlier process had them."""
        return False

    async def window(self) -> int | None:
        """Return the smallest window of its servers, prompt and reply; None if unknown."""
        return None

    async def once(self, key: str, effect: Effect, interrupted: Any = None) -> Any:  # noqa: ARG002
        """Carry out an effect on the outside world, and return its result.

        A run that is resumed or replayed takes the result from its journal instead.

        Args:
            key: Names the effect; no other of the run has this name.
            effect: Carries it out.
            interrupted: The result if an earlier process was killed in the middle of it.
        """
        return await effect()

    def skip(self, call: TextCall, written: Written) -> None:
        """Note the answer to a call that was answered elsewhere."""
        del call, written  # nothing is kept

    @abstractmethod
    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Answer text calls, in order. A model's failure is an answer, not an exception."""

    async def write(self, call: TextCall, *, logger: EventLogger | None = None) -> Written:
        """Answer one text call, and log the text.

        Args:
            call: The call.
            logger: Logger for the text; by default this writer's own.
        """
        return (await self.write_many([call], logger=logger))[0]

    async def write_many(
        self, calls: Sequence[TextCall], *, logger: EventLogger | None = None
    ) -> list[Written]:
        """Answer several text calls at once, and log the texts in the same order.

        Args:
            calls: The calls; the answers come in the same order.
            logger: Logger for the texts; by default this writer's own.
        """
        answers = await self.answer(calls)
        self.announce(calls, answers, logger=logger)

        return answers

    def announce(
        self,
        calls: Sequence[TextCall],
        answers: Sequence[Written],
        *,
        logger: EventLogger | None = None,
    ) -> None:
        """Log the answers to some calls in order; `write_many` calls this.

        Args:
            calls: The calls.
            answers: The answers.
            logger: Logger for the texts; by default this writer's own.
        """
        logger = logger or self._logger
        for call, written in to_log(logger, calls, answers):
            _announce(logger, call, written)


class ForwardingWriter(BaseWriter):
    """A writer for which another one, its part, keeps what is not the answers themselves."""

    part: Any

    @property
    def sends_schemas(self) -> bool:
        """Whether the schema of a text goes to its server, which follows it."""
        return bool(self.part.sends_schemas)

    @property
    def is_repeating(self) -> bool:
        """Whether the next answers come from a journal, as an earlier process had them."""
        return bool(self.part.is_repeating)

    async def window(self) -> int | None:
        """Return the smallest window of its servers, prompt and reply; None if unknown."""
        window: int | None = await self.part.window()
        return window

    async def once(self, key: str, effect: Effect, interrupted: Any = None) -> Any:
        """Carry out an effect on the outside world, and return its result."""
        return await self.part.once(key, effect, interrupted)


class WriterRouter(Parts, ForwardingWriter):
    """Sends the text calls of a run to its writer.

    Args:
        parts: Writers by name.
    """

    def __init__(self, parts: Mapping[str, Any]) -> None:
        BaseWriter.__init__(self)
        Parts.__init__(self, parts)

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Answer text calls by the part."""
        written: list[Written] = await self.part.answer(calls)
        return written


def or_fallback(call: TextCall, written: Written) -> Written:
    """Return an answer, or the call's fallback instead of a failure."""
    if not written.has_failed or call.fallback is None:
        return written

    text, reason = fallback_text(call), written.reason or "no text"
    return replace(written, text=text, source="fallback", value=call.fallback, reason=reason)


def fallback_text(call: TextCall) -> str:
    """Return a call's fallback as in a log."""
    return call.fallback if isinstance(call.fallback, str) else json.dumps(call.fallback)


def read_as(call: TextCall, text: str, source: TextSource, cost: Cost | None = None) -> Written:
    """Return a text as the answer to a call, or a failure if the call cannot use it."""
    text = whole_characters(text)
    try:
        return Written(text, source, call.read(text), cost=cost)
    except ValueError as error:
        return replace(_useless(text, error), cost=cost)


def _useless(text: str, error: ValueError) -> Written:
    """Return the failure of a text that a call cannot use."""
    reason = f"the text cannot be used: {error}"
    return Written(text, "failed", reason=reason, failure=UselessReplyError.__name__)


def failed_by(error: Exception) -> Written:
    """Return the failure of a call that raised an exception."""
    return Written(None, "failed", reason=describe(error), failure=type(error).__name__)


def whole_characters(text: str) -> str:
    """Return a text without half surrogate pairs, which JSON allows but logs cannot hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _announce(logger: EventLogger | None, call: TextCall, written: Written) -> None:
    """Log one text; a failure is a warning, which is shown even without structlog."""
    keys: dict[str, Any] = {
        "agent_id": call.agent_id,
        "key": call.key,
        "prompt_hash": call.prompt_hash,
        "text": written.text,
        "source": written.source,
        "reason": written.reason,
        **({} if written.cost is None else keys_of_cost(written.cost)),
        **known_of(written, ("text_id",)),
    }
    report(logger, "warning" if written.source in FAILURES else "info", TEXT_WRITTEN, keys)


# Asking a model

_MOST_TOKENS = 4096
"""Tokens that a text may have, thoughts included, if nothing says how long it is."""

_LEAST_TOKENS = 512
_CUT = "it was cut off (reply_tokens): write a shorter one"


class Writer(AsksModel, BaseWriter):
    """Asks a language model for texts, or for JSON of a schema.

    A text call uses the same client, slots, retries and budget as a decision. If its answer cannot
    be used, the model is asked again, as often as the call allows. If the client's ``temperature``
    is 0, equal calls are asked once.

    Args:
        client: As for `Reasoner`.
        limits: ``model``, ``timeout``, ``concurrency``, ``attempts``, ``patience``, ``seed``,
            ``budget`` and ``logger``, as for `Reasoner`.

    Raises:
        ReasonerError: If the client has no known method, or a model is missing.
        FieldValueError: If a limit is not above 0.
    """

    def __init__(self, client: Any, **limits: Unpack[Limits]) -> None:
        AsksModel.__init__(self, client, **limits)
        self._texts: AskedOnce[Written] = AskedOnce(keeps=not self._samples)

    @property
    def sends_schemas(self) -> bool:
        """Whether the schema of a text goes to its server, which follows it."""
        return self.pool.sends_schemas

    async def window(self) -> int | None:
        """Return the smallest window of its servers, prompt and reply; None if unknown."""
        return await self.pool.smallest_window()

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Ask for every text, with as many simultaneous ones as the client allows."""
        return await all_of(map(self._written, calls))

    async def _written(self, call: TextCall) -> Written:
        if self._samples:
            return or_fallback(call, await self._ask_for(call, Cost()))

        key = _key_of(call)
        if (kept := self._texts.kept(key)) is not None:
            earlier = read_as(call, kept.text or "", "cache")
            if not earlier.has_failed:
                return earlier

        outcome = await self._texts.do(key, partial(self._ask_for, call))
        if isinstance(outcome.error, OtherLoopError):
            raise outcome.error
        written = outcome.result or failed_by(outcome.error or LLMError("no answer"))
        written = replace(written, cost=outcome.charge())
        if written.text is not None and not written.has_failed:
            self._texts.keep(key, written)
            # another call may read the same text in another way
            written = read_as(call, written.text, "model", written.cost)
        return or_fallback(call, written)

    def skip(self, call: TextCall, written: Written) -> None:
        """Note the answer to a call that was answered elsewhere, for equal calls."""
        if written.source == "model" and written.text is not None:
            self._texts.keep(_key_of(call), written)

    async def _ask_for(self, call: TextCall, cost: Cost) -> Written:
        """Return the text that a model writes, or the last one that could not be used."""
        last: list[Written] = []

        def read(reply: ChatReply) -> Written:
            text = whole_characters(reply.text)
            try:
                value = call.read(text)
                if cost.cut_short and isinstance(value, str) and text.rstrip().endswith(value):
                    # as every text that is cut
                    text = f"{text.rstrip()}…"
                return Written(text, "model", call.read(text))
            except ValueError as error:
                problem = ValueError(_CUT) if cost.cut_short else error
                last[:] = [_useless(text, problem)]
                raise UselessReplyError(str(problem), host=reply.host) from None

        try:
            written = await self.ask(self._request(call, read), cost, call.tries or USUAL_TRIES)
        except OtherLoopError:
            raise
        except Exception as error:  # of the client, which may be the user's own
            written = last[0] if last else failed_by(error)
        return replace(written, cost=cost)

    def _request(self, call: TextCall, read: Any) -> Request[Written]:
        schema, how = None, call.how or "Answer again, in another way."
        if call.schema is not None:
            schema = dict(call.schema)
            how = call.how or f"Respond with JSON only, of this schema:\n{json.dumps(schema)}"
        variation = call.variation + self._seed_of(call)
        more: Any = {"limit": call.limit, "attempts": call.tries, "most_tokens": _most_tokens(call)}
        return Request(prompted(call.prompt), schema, read, how, variation, **more)

    def _seed_of(self, call: TextCall) -> int:
        """Return the number added to the seed, so that a model that samples writes anew."""
        if not self._samples:
            return 0
        stream = RandomStream(self._seed, "text", call.agent_id, call.key, call.prompt_hash)
        return stream.index(SEEDS)


def _key_of(call: TextCall) -> str:
    return hash_of(json.dumps([call.prompt, call.schema, call.variation]))


def _most_tokens(call: TextCall) -> int:
    """Return the tokens that a reply may have: one for each character that is asked for."""
    if call.reply_tokens is not None:
        return call.reply_tokens
    members = (call.schema or {}).get("properties", {})
    length = members.get("text", {}).get("maxLength") if len(members) == 1 else None
    return _MOST_TOKENS if length is None else max(_LEAST_TOKENS, length)

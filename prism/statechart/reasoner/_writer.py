"""Having a language model write a text, through all that a decision goes through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from prism.errors import BudgetSpentError, CircuitOpenError, ModelMissingError
from prism.statechart.reasoner._bare_ollama import is_refused
from prism.statechart.reasoner._clients import (
    adapt,
    check_client,
    check_model,
    depends_on,
    has_slots,
    require_model,
)
from prism.statechart.reasoner._cost import Budget, Cost, require_positive
from prism.statechart.reasoner._dispatch import Dispatcher, TextRequest
from prism.statechart.reasoner._model_client import Reply, TextReply
from prism.statechart.reasoner._reasoner import (
    DEFAULT_ATTEMPTS,
    DEFAULT_CONCURRENCY,
    DEFAULT_TIMEOUT_SECONDS,
)
from prism.statechart.reasoner._recording import AnswerStore, PromptRecord, ReplyCache, record_text
from prism.statechart.reasoner._texts import BaseWriter, TextCall, Written, or_fallback, read_as
from prism.telemetry._loggers import EventLogger, describe

_USELESS_TO_REPEAT = (BudgetSpentError, CircuitOpenError, ModelMissingError)


class Writer(BaseWriter):
    """Has a language model write texts, or JSON of a schema.

    A text call goes through the same client, slots, retries, budget and cache as a decision. One
    whose answer cannot be used is asked again, as often as the call allows.

    Args:
        client: As for `Reasoner`.
        model: Model name, for clients that need it with every call.
        timeout: Seconds that one answer may take, retries included, from getting a slot.
        concurrency: Requests under way at once, for a client without a ``concurrency`` of its own;
            16 by default.
        attempts: Requests for one answer while its failures pass, for a client without retries of
            its own; 3 by default.
        seed: Seed of the sampling, where the client takes one.
        cache: Where to keep texts from one run to the next, by model, prompt and schema.
        budget: What the run may spend; a `Reasoner` may be given the same.
        record: Where to keep every prompt and reply, which may hold what is private.
        logger: A structlog logger for texts.

    Raises:
        ReasonerError: If the client has no method that is known, or a model is missing.
        FieldValueError: If a limit is not above 0.
    """

    def __init__(
        self,
        client: Any,
        *,
        model: str | None = None,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        concurrency: int | None = None,
        attempts: int | None = None,
        seed: int = 0,
        cache: AnswerStore | None = None,
        budget: Budget | None = None,
        record: PromptRecord | None = None,
        logger: EventLogger | None = None,
    ) -> None:
        require_positive(timeout=timeout, concurrency=concurrency, attempts=attempts)
        check_client(client)
        check_model(client, model)
        if cache is not None:
            require_model(client, model)

        super().__init__(logger)
        own = getattr(client, "concurrency", None)
        self.concurrency: int = own or concurrency or DEFAULT_CONCURRENCY
        self.budget: Budget = budget or Budget()
        self._client = client
        self._cache = cache
        self._replies = None if cache is None else ReplyCache(cache, logger)
        self._depends_on = ["text", *depends_on(client, model, seed)]
        known = model or getattr(client, "model", None)
        self._dispatcher = Dispatcher(
            adapt(client, model, seed, attempts or DEFAULT_ATTEMPTS),
            None if has_slots(client) else self.concurrency,
            timeout,
            self.budget,
            model=known if isinstance(known, str) else None,
        )
        self.record = record

    @property
    def client(self) -> Any:
        """The client that is asked."""
        return self._client

    @property
    def cache(self) -> AnswerStore | None:
        """Where texts are kept; it is not closed here."""
        return self._cache

    @property
    def record(self) -> PromptRecord | None:
        """Where every prompt and reply is kept; None where they are not."""
        return self._record

    @record.setter
    def record(self, record: PromptRecord | None) -> None:
        self._record = record
        self._dispatcher.is_recorded = record is not None

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Have the model write every text, as many at once as the client may be asked."""
        if len(calls) == 1:
            return [await self._written(calls[0])]

        # costs a third of importing the engine, and is loaded already where this runs
        import asyncio

        return list(await asyncio.gather(*(self._written(call) for call in calls)))

    async def close(self) -> None:
        """Close the client's connections, if it opens new ones later (``client.reopens``)."""
        if getattr(self._client, "reopens", False):
            await self._client.close()

    async def _written(self, call: TextCall) -> Written:
        record = self._record
        if record is None:
            return await self._found(call)

        text_id = record.new_id(call.agent_id)
        return record_text(record, text_id, call, await self._found(call))

    async def _found(self, call: TextCall) -> Written:
        key = self._key_of(call)
        stored = None if key is None or self._replies is None else self._replies.get(key)
        if stored is not None:
            found = read_as(call, stored.text, "cache")
            if not found.has_failed:
                return found

        found = await self._asked(call)
        if key is not None and self._replies is not None and not found.has_failed:
            self._replies.put(key, Reply(found.text or ""))

        return or_fallback(call, found)

    def _key_of(self, call: TextCall) -> str | None:
        if self._replies is None:
            return None
        return self._replies.key([*self._depends_on, call.schema], call.prompt)

    async def _asked(self, call: TextCall) -> Written:
        """Ask until there is a text that can be used, or no request is left."""
        request = TextRequest(
            call.prompt, None if call.schema is None else dict(call.schema), _lacking(call)
        )
        total, text = Cost(), None
        while True:
            cost = Cost()
            if call.most_requests is not None:
                cost.most_attempts = call.most_requests - total.attempts

            try:
                found = read_as(call, await self._dispatcher.ask(request, cost), "model")
                is_final = not found.has_failed
            except Exception as error:  # of the client, which may be anybody's
                found = Written(None, "failed", reason=describe(error))
                is_final = not cost.attempts or _is_useless_to_repeat(error)

            total = _sum(total, cost)
            text = text if found.text is None else found.text
            if is_final or total.attempts >= (call.most_requests or 1):
                return Written(text, found.source, found.value, found.reason, total)


def _is_useless_to_repeat(error: Exception) -> bool:
    """Return True if nothing better can come of the same prompt, as the server refuses it."""
    return isinstance(error, _USELESS_TO_REPEAT) or is_refused(error)


def _lacking(call: TextCall) -> Callable[[TextReply], int]:
    def lacks(said: TextReply) -> int:
        return int(read_as(call, said.text, "model").has_failed)

    return lacks


def _sum(total: Cost, last: Cost) -> Cost:
    """Return what all requests of a call cost; what describes one describes the last."""
    last.latency = round(total.latency + last.latency, 6)
    last.request_seconds = last.request_seconds or 0.0
    last.queue_seconds = round(last.latency - last.request_seconds, 6)
    last.model, last.host = last.model or total.model, last.host or total.host
    last.attempts += total.attempts
    if last.trail is not None:
        last.trail = [*(total.trail or ()), *last.trail]

    last.input_tokens = _both(total.input_tokens, last.input_tokens)
    last.output_tokens = _both(total.output_tokens, last.output_tokens)

    return last


def _both(first: int | None, second: int | None) -> int | None:
    return second if first is None else first + (second or 0)

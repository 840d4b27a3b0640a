"""Asking a language model for a text, in the same way as for a decision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from prism.errors import (
    BudgetSpentError,
    CircuitOpenError,
    LLMError,
    ModelMissingError,
    PromptTooLongError,
    UselessReplyError,
)
from prism.randomness import RandomStream
from prism.reasoner._asking import AsksModel, Limits
from prism.reasoner._faults import OtherLoopError, is_permanent_refusal
from prism.reasoner._messages import Reply
from prism.reasoner._policy import SEEDS
from prism.reasoner._questions import hash_of
from prism.reasoner._recording import record_of
from prism.reasoner._requests import TextRequest
from prism.reasoner._slots import SingleFlight
from prism.reasoner._spending import Cost, require_loop
from prism.reasoner._texts import (
    BaseWriter,
    TextCall,
    Written,
    failed_by,
    or_fallback,
    read_as,
)

_USELESS_TO_REPEAT = (BudgetSpentError, CircuitOpenError, ModelMissingError, PromptTooLongError)


class Writer(AsksModel, BaseWriter):
    """Asks a language model for texts, or for JSON of a schema.

    A text call uses the same client, slots, retries and budget as a decision. If its answer cannot
    be used, the model is asked again, as often as the call allows.

    Args:
        client: As for `Reasoner`.
        model: Model name, for clients that need it with every call.
        timeout: Seconds that one answer may take once it has a slot, including retries.
        concurrency: Simultaneous requests, for a client without its own ``concurrency``;
            16 by default.
        attempts: Requests for one answer in case of temporary failures, for a client without its
            own retries; 3 by default.
        patience: Seconds to wait for a failing client, if it has no slots of its own.
        seed: Seed of the sampling, if the client takes one.
        asks_once: Whether equal calls are asked once in the life of this writer, if the client's
            ``temperature`` is 0, as a run does.
        budget: Limits of the run; a `Reasoner` may share it.
        record: Keeps every prompt and reply, which may be private.
        logger: A structlog logger for texts.

    Raises:
        ReasonerError: If the client has no known method, or a model is missing.
        FieldValueError: If a limit is not above 0.
    """

    def __init__(self, client: Any, **limits: Unpack[Limits]) -> None:
        AsksModel.__init__(self, client, **limits)
        self._writing: SingleFlight[Written] = SingleFlight()

    @property
    def sends_schemas(self) -> bool:
        """Whether the schema of a text goes to its server, which follows it."""
        return bool(getattr(self.pool, "sends_schemas", False))

    async def window(self) -> int | None:
        """Return the smallest window of its servers, prompt and reply; None if unknown."""
        smallest = getattr(self.pool, "smallest_window", None)
        return None if smallest is None else await smallest()

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Ask for every text, with as many simultaneous ones as the client allows."""
        require_loop()
        if len(calls) == 1:
            return [await self._written(calls[0])]

        return list(await asyncio.gather(*(self._written(call) for call in calls)))

    async def _written(self, call: TextCall) -> Written:
        record = self.record
        if record is None:
            return await self._found(call)

        text_id = record.new_id(call.agent_id)
        written = await self._found(call)
        record.keep(record_of(text_id, call, written))
        return replace(written, text_id=text_id)

    async def _found(self, call: TextCall) -> Written:
        if self._replies is None:
            return or_fallback(call, await self._answered(call, Cost()))

        key = self._key_of(call)
        if (earlier := self._replies.get(key)) is not None:
            found = read_as(call, earlier.text, "cache")
            if not found.has_failed:
                return found

        outcome = await self._writing.do(key, partial(self._answered, call))
        if isinstance(outcome.error, OtherLoopError):
            raise outcome.error
        found = outcome.result or failed_by(outcome.error or LLMError("no answer"))
        found = replace(found, cost=outcome.charge())
        if found.text is not None and not found.has_failed:
            self._replies[key] = Reply(found.text)
            # another call may read the same text in another way
            found = read_as(call, found.text, "model", found.cost)
        return or_fallback(call, found)

    def skip(self, call: TextCall, written: Written) -> None:
        """Note the answer to a call that was answered elsewhere, for equal calls."""
        if self._replies is not None and written.source == "model" and written.text is not None:
            self._replies[self._key_of(call)] = Reply(written.text)

    def _key_of(self, call: TextCall) -> str:
        return hash_of(json.dumps([call.prompt, call.schema, call.variation]))

    def _variation_of(self, call: TextCall) -> int:
        """Return the number added to the seed, which for sampled texts depends on the occasion."""
        if not self._samples:
            return call.variation

        name = (call.agent_id, call.key, call.prompt_hash)
        own = RandomStream(self._seed, "text", *name, call.occasion)
        return call.variation + own.index(SEEDS)

    async def _answered(self, call: TextCall, total: Cost) -> Written:
        """Ask until there is a usable text, or no request is left.

        Args:
            call: The call.
            total: Collects the cost.
        """
        asked = request = TextRequest(
            call.prompt,
            None if call.schema is None else dict(call.schema),
            lambda said: int(read_as(call, said.text, "model").has_failed),
            most_tokens=_most_tokens(call),
        )
        text, seed = None, self._variation_of(call)
        while True:
            is_repaired = request is not asked
            cost = Cost(repaired=is_repaired or None)
            cost.most_attempts = _left_of(call, total)
            varied = replace(request, variation=seed + total.attempts)
            found, is_useless, is_final = await self._asked_once(call, varied, cost)
            total.follow(cost)
            text = text if found.text is None else found.text
            may_repair = is_useless and not is_repaired
            if is_final or not self._may_ask_again(call, total, may_repair=may_repair):
                return replace(found, text=text, cost=total)

            if is_useless:
                request = asked.reworded(found.reason or "")

    def _may_ask_again(self, call: TextCall, total: Cost, *, may_repair: bool) -> bool:
        left = _left_of(call, total)
        return (may_repair and self.budget.spent() is None) if left is None else left > 0

    async def _asked_once(
        self, call: TextCall, request: TextRequest, cost: Cost
    ) -> tuple[Written, bool, bool]:
        """Return the result of a request, whether it was useless, and whether it is final."""
        try:
            found = read_as(call, (await self._asked(request, cost)).text, "model")
        except OtherLoopError:
            raise
        except Exception as error:  # of the client, which may be the user's own
            failed = failed_by(error)
            # the same prompt would not help, for example because the server refuses it
            is_refused = isinstance(error, _USELESS_TO_REPEAT) or is_permanent_refusal(error)
            is_final = not cost.attempts or is_refused
            return failed, isinstance(error, UselessReplyError), is_final

        return found, found.has_failed, not found.has_failed


def _left_of(call: TextCall, total: Cost) -> int | None:
    """Return how many further requests a call allows; None leaves it to the client."""
    return None if call.most_requests is None else call.most_requests - total.attempts


_MOST_TOKENS = 4096
"""Tokens that a text may have, thoughts included, if nothing says how long it is."""

_LEAST_TOKENS = 512


def _most_tokens(call: TextCall) -> int:
    """Return the tokens that a reply may have: one for each character that is asked for."""
    if call.reply_tokens is not None:
        return call.reply_tokens
    members = (call.schema or {}).get("properties", {})
    length = members.get("text", {}).get("maxLength") if len(members) == 1 else None
    return _MOST_TOKENS if length is None else max(_LEAST_TOKENS, length)

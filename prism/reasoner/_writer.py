"""Asking a language model for a text, in the same way as for a decision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from prism.errors import LLMError, UselessReplyError
from prism.randomness import RandomStream
from prism.reasoner._asking import AsksModel, Limits, SingleFlight
from prism.reasoner._faults import OtherLoopError
from prism.reasoner._policy import SEEDS
from prism.reasoner._questions import hash_of
from prism.reasoner._replies import USUAL_TRIES, ChatReply, Request, prompted
from prism.reasoner._spending import Cost
from prism.reasoner._texts import (
    BaseWriter,
    TextCall,
    Written,
    failed_by,
    or_fallback,
    read_as,
)

_MOST_TOKENS = 4096
"""Tokens that a text may have, thoughts included, if nothing says how long it is."""

_LEAST_TOKENS = 512


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
        self._texts: dict[str, str] = {}
        self._writing: SingleFlight[Written] = SingleFlight()

    @property
    def sends_schemas(self) -> bool:
        """Whether the schema of a text goes to its server, which follows it."""
        return self.pool.sends_schemas

    async def window(self) -> int | None:
        """Return the smallest window of its servers, prompt and reply; None if unknown."""
        return await self.pool.smallest_window()

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Ask for every text, with as many simultaneous ones as the client allows."""
        return list(await asyncio.gather(*map(self._written, calls)))

    async def _written(self, call: TextCall) -> Written:
        if self._samples:
            return or_fallback(call, await self._asked_for(call, Cost()))

        key = _key_of(call)
        if (text := self._texts.get(key)) is not None:
            earlier = read_as(call, text, "cache")
            if not earlier.has_failed:
                return earlier

        outcome = await self._writing.do(key, partial(self._asked_for, call))
        if isinstance(outcome.error, OtherLoopError):
            raise outcome.error
        written = outcome.result or failed_by(outcome.error or LLMError("no answer"))
        written = replace(written, cost=outcome.charge())
        if written.text is not None and not written.has_failed:
            self._texts[key] = written.text
            # another call may read the same text in another way
            written = read_as(call, written.text, "model", written.cost)
        return or_fallback(call, written)

    def skip(self, call: TextCall, written: Written) -> None:
        """Note the answer to a call that was answered elsewhere, for equal calls."""
        if not self._samples and written.source == "model" and written.text is not None:
            self._texts[_key_of(call)] = written.text

    async def _asked_for(self, call: TextCall, cost: Cost) -> Written:
        """Return the text that a model writes, or the last one that could not be used."""
        last: list[Written] = []

        def read(reply: ChatReply) -> Written:
            last[:] = [read_as(call, reply.text, "model")]
            if last[0].has_failed:
                raise UselessReplyError(last[0].reason, host=reply.host)
            return last[0]

        try:
            written = await self.ask(self._request(call, read), cost, call.tries or USUAL_TRIES)
        except OtherLoopError:
            raise
        except Exception as error:  # of the client, which may be the user's own
            written = last[0] if last else failed_by(error)
        return replace(written, cost=cost)

    def _request(self, call: TextCall, read: Any) -> Request[Written]:
        how, schema = call.how or "Answer again, in another way.", None
        if call.schema is not None:
            schema = dict(call.schema)
            how = call.how or f"Respond with JSON only, of this schema:\n{json.dumps(schema)}"
        variation = call.variation + self._seed_of(call)
        most = _most_tokens(call)
        messages = prompted(call.prompt)
        return Request(messages, schema, read, how, variation, most, limit=call.limit)

    def _seed_of(self, call: TextCall) -> int:
        """Return the number added to the seed, so that a model that samples writes anew."""
        if not self._samples:
            return 0
        own = RandomStream(self._seed, "text", call.agent_id, call.key, call.prompt_hash)
        return own.index(SEEDS)


def _key_of(call: TextCall) -> str:
    return hash_of(json.dumps([call.prompt, call.schema, call.variation]))


def _most_tokens(call: TextCall) -> int:
    """Return the tokens that a reply may have: one for each character that is asked for."""
    if call.reply_tokens is not None:
        return call.reply_tokens
    members = (call.schema or {}).get("properties", {})
    length = members.get("text", {}).get("maxLength") if len(members) == 1 else None
    return _MOST_TOKENS if length is None else max(_LEAST_TOKENS, length)

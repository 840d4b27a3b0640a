"""Writers that need no model, and agents that have them."""

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from prism.programs import StepRun, Turn
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.reasoner import BaseWriter, TextCall, Written
from prism.reasoner.texts import or_fallback, read_as
from prism.testing import ScriptedWriter
from prism.testing._scripts import Text

Reply = str | Exception

ACT = '{"reasoning": "why not", "action": {"kind": "wait"}}'


def writer_of(replies: Sequence[Reply] | Callable[[TextCall], Text] = (ACT,)) -> ScriptedWriter:
    """Return a writer of replies in order, the last of them for ever; an exception is a failure.

    Args:
        replies: The replies, or a function of the call that gives one.
    """
    if callable(replies):
        return ScriptedWriter(replies)

    written = chain(replies, repeat(replies[-1]))

    return ScriptedWriter(lambda _call: _text_of(next(written)))


def _text_of(reply: Reply) -> Text:
    return reply if isinstance(reply, str) else Written(None, "failed", reason=str(reply))


def prompts_of(writer: ScriptedWriter) -> list[str]:
    """Return the prompts that a writer was asked."""
    return [call.prompt for call in writer.calls]


def agent_of(
    text: str,
    replies: Sequence[Reply] | Callable[[TextCall], Text] | BaseWriter = (ACT,),
    context: Mapping[str, Any] | None = None,
    **settings: Any,
) -> WorkflowAgent:
    """Return an agent of a workflow written out."""
    writer = replies if isinstance(replies, BaseWriter) else writer_of(replies)
    return WorkflowAgent(Workflow.from_text(text), writer, context, **settings)


async def turns_of(agent: WorkflowAgent, number: int) -> list[Turn]:
    """Carry out some turns."""
    return [await agent.turn() for _ in range(number)]


def names_of(runs: Sequence[StepRun]) -> list[str]:
    """Return the names of steps that ran."""
    return [run.step for run in runs]


def events_named(events: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """Return the logged events of a name."""
    return [event for event in events if event["event"] == name]


class LateWriter(BaseWriter):
    """Writes a text of the prompt's own, after a random number of turns of the event loop.

    Args:
        seed: Seed of the waits.
        share: The share of calls that fail, by their prompts.

    Attributes:
        calls: Everything it was asked, in order.
        most_at_once: Most calls that were under way at the same time.
    """

    concurrency = 4

    def __init__(self, seed: int = 0, share: float = 0.0) -> None:
        super().__init__()
        self.calls: list[TextCall] = []
        self.most_at_once = 0
        self._under_way = 0
        self._share = share
        self._waits = random.Random(seed)

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        return list(await asyncio.gather(*map(self._one, calls)))

    async def _one(self, call: TextCall) -> Written:
        self.calls.append(call)
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        for _ in range(self._waits.randrange(20)):
            await asyncio.sleep(0)
        self._under_way -= 1

        number = int(call.prompt_hash, 16)
        if number % 1000 < 1000 * self._share:
            return or_fallback(call, Written(None, "failed", reason="TimedOutError: late"))
        return or_fallback(call, read_as(call, json.dumps({"text": f"words {number}"}), "model"))

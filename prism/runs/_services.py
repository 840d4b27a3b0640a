"""What a run provides to an object of another class that takes part in it, and its writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import time
from typing import Any

from prism.llm import Model
from prism.reasoner._texts import BaseWriter, TextCall, Writer, Written, fallback_text
from prism.telemetry.loggers import EventLogger


@dataclass(frozen=True, slots=True)
class Services:
    """What a run provides to an object that takes part in it.

    Args:
        writer: Answers its text calls, together with all others of the tick.
        logger: Where the run's events go.
        clock: Returns the run's time, in seconds since the epoch.
        seed: Seed of the run's random numbers.
    """

    writer: BaseWriter
    logger: EventLogger | None = None
    clock: Callable[[], float] = time
    seed: int = 0


class TemplateWriter(BaseWriter):
    """The writer without a model, which returns the template of every text."""

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Return the templates, or a failure for a call without one."""
        return [
            Written(None, "failed", reason="there is no model")
            if call.fallback is None
            else Written(fallback_text(call), "template", call.fallback)
            for call in calls
        ]


def writer_of(client: Any) -> BaseWriter:
    """Return the writer that answers an agent's prompts.

    Args:
        client: A writer, a `prism.llm.Model` or the text of one, or any client that a `Writer`
            takes; None for no writer.
    """
    if isinstance(client, BaseWriter):
        return client
    if isinstance(client, str):
        return Writer(Model.of(client))
    return TemplateWriter() if client is None else Writer(client)

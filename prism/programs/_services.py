"""What a program needs from whoever runs it: a writer, a log, the time, and a record of effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import time
from typing import Any

from prism.llm import Model
from prism.reasoner._texts import BaseWriter, TextCall, Written
from prism.reasoner._writer import Writer
from prism.telemetry.loggers import EventLogger

Effect = Callable[[], Awaitable[Any]]


async def at_once(_key: str, effect: Effect) -> Any:
    """Carry out an effect on the outside world, and keep no record of it."""
    return await effect()


@dataclass(frozen=True, slots=True)
class Services:
    """What a program needs from whoever runs it.

    Args:
        writer: Answers its prompts.
        logger: Where its events go; None for structlog's own logger, once it is configured.
        clock: Returns the time in seconds since the epoch.
        seed: Seed of the run's random numbers.
        once: Carries out an effect on the outside world, named by a key that no other effect of the
            run has. A run that is resumed or replayed returns the recorded result instead.
        is_repeating: Whether the run repeats what an earlier process has done already.
    """

    writer: BaseWriter
    logger: EventLogger | None = None
    clock: Callable[[], float] = time
    seed: int = 0
    once: Callable[[str, Effect], Awaitable[Any]] = at_once
    is_repeating: Callable[[], bool] = lambda: False


class NobodyWriter(BaseWriter):
    """The writer without a model: every call fails."""

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Return failures that say that there is no model."""
        return [Written(None, "failed", reason="there is no model") for _ in calls]


def writer_of(client: Any) -> BaseWriter:
    """Return the writer that answers a program's prompts.

    Args:
        client: A writer, a `prism.llm.Model` or the text of one, or any client that a `Writer`
            takes; None for no model.
    """
    if isinstance(client, BaseWriter):
        return client
    if isinstance(client, str):
        return Writer(Model.of(client))
    return NobodyWriter() if client is None else Writer(client)

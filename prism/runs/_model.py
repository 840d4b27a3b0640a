"""The model of a run: loaded before the first round, its answers and its cost kept at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prism.errors import (
    InputError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
)
from prism.llm import AnswerCache, ModelPool
from prism.llm._doctor import try_out, try_text
from prism.llm._host import ModelHost
from prism.runs._event_loop import run_to_end
from prism.statechart import Reasoner
from prism.statechart.reasoner._writer import Writer

QUIET_SECONDS = 2.0
_SEE_DOCTOR = "(see: prism doctor)"
_WILL_FALL_BACK = (ModelMissingError, OverloadedError, TimedOutError, UnreachableError)

_ASKS_A_MODEL = (Reasoner, Writer)

Say = Callable[[str], None]
Look = Callable[[ModelHost], Awaitable[str]]
"""Asks a server for something of the kind that the run asks for."""


def load_model(
    reasoner: Any,
    deadline: float | None,
    note: Say,
    warn: Say,
    *,
    quiet_seconds: float = QUIET_SECONDS,
) -> None:
    """Load the model, on one server at least, and say at once what would make decisions fall back.

    Args:
        reasoner: Who decides; nothing happens unless it asks a pool of servers.
        deadline: Seconds that the run may ask for; it waits no longer for the model, either.
        note: Receives that loading takes its time.
        warn: Receives what is wrong with a server.
        quiet_seconds: How long loading may take without a note.
    """
    # a decision without an answer falls back; a text is missing
    writes = isinstance(reasoner, Writer)
    lost = "texts will be missing" if writes else "decisions will fall back"
    each = "text will be missing" if writes else "decision will fall back"
    pool = reasoner.client if isinstance(reasoner, _ASKS_A_MODEL) else None
    if not isinstance(pool, ModelPool):
        return

    found = run_to_end(
        _warm_up(pool, deadline, note, quiet_seconds, try_text if writes else try_out)
    )
    troubles = [" ".join(trouble.split()) for trouble in found]
    if len(troubles) < len(pool.hosts):
        for trouble in troubles:
            warn(f"{trouble}; its {lost} {_SEE_DOCTOR}")
        return

    *others, last = troubles
    for trouble in others:
        warn(trouble)

    warn(f"{last}; until that is mended every {each} {_SEE_DOCTOR}")


async def _warm_up(
    pool: ModelPool, deadline: float | None, note: Say, quiet_seconds: float, look: Look
) -> list[str]:
    async with pool:
        loading = asyncio.create_task(pool.warm_up(deadline))
        done, _ = await asyncio.wait({loading}, timeout=quiet_seconds)
        if not done:
            note(f"waiting for {pool.model} to be loaded at {', '.join(pool.hosts)}")

        errors = (await loading).values()
        judged = zip(pool.servers, errors, strict=True)
        found = await asyncio.gather(
            *(_judge(host, error, deadline, look) for host, error in judged)
        )

    return [str(trouble) for trouble in found if trouble is not None]


async def _judge(
    host: ModelHost, error: LLMError | None, limit: float | None, look: Look
) -> LLMError | None:
    """Return what keeps a server from answering questions, if anything does."""
    if error is None or isinstance(error, _WILL_FALL_BACK):
        return error

    # a server other than Ollama may refuse to load a model, and serve it all the same
    try:
        async with asyncio.timeout(limit):
            await look(host)
    except (LLMError, TimeoutError) as failure:
        return failure if isinstance(failure, LLMError) else error

    return None


@contextmanager
def closing_cache(reasoner: Any, warn: Say) -> Iterator[None]:
    """Write the last answers to the cache's file when the run ends, and say so where that fails."""
    cache = reasoner.cache if isinstance(reasoner, _ASKS_A_MODEL) else None
    try:
        yield
    finally:
        # answers wait in memory while another process has the file locked
        if isinstance(cache, AnswerCache):
            try:
                cache.close()
            except InputError as error:
                warn(f"{error}; the last answers are not in it")


def spent_by(reasoner: Any) -> dict[str, Any]:
    """Return what a model has cost, as ``run.json`` says it; nothing where none was asked."""
    if not isinstance(reasoner, _ASKS_A_MODEL):
        return {}

    return {"spent": {"calls": reasoner.budget.calls, "tokens": reasoner.budget.tokens}}

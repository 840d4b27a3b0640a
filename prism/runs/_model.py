"""The model of a run: loaded before the first round, its answers and its cost kept at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
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
from prism.statechart.reasoner._by_agent import ReasonerByAgent, WriterByAgent, costs_told
from prism.statechart.reasoner._recording import PromptRecord
from prism.statechart.reasoner._writer import Writer

QUIET_SECONDS = 2.0
_SEE_DOCTOR = "(see: prism doctor)"
_WILL_FALL_BACK = (ModelMissingError, OverloadedError, TimedOutError, UnreachableError)

Say = Callable[[str], None]
Look = Callable[[ModelHost], Awaitable[str]]
"""Asks a server for something of the kind that the run asks for."""


def askers_in(reasoner: Any) -> list[Reasoner | Writer]:
    """Return all that ask a model: a reasoner or writer, or the parts of one by agent."""
    # whoever is asked where a run parts from the one that it repeats
    reasoner = getattr(reasoner, "otherwise", None) or reasoner
    is_by_agent = isinstance(reasoner, (ReasonerByAgent, WriterByAgent))
    parts: Sequence[Any] = list(reasoner.parts.values()) if is_by_agent else [reasoner]
    return [part for part in parts if isinstance(part, (Reasoner, Writer))]


def load_model(
    reasoner: Any,
    deadline: float | None,
    note: Say,
    warn: Say,
    *,
    quiet_seconds: float = QUIET_SECONDS,
) -> None:
    """Load the model, on one server at least, and say at once what would make decisions fall back.

    Where agents have different models, all are loaded at the same time.

    Args:
        reasoner: Who decides or writes; nothing happens unless it asks a pool of servers.
        deadline: Seconds that the run may ask for; it waits no longer for the model, either.
        note: Receives that loading takes its time.
        warn: Receives what is wrong with a server.
        quiet_seconds: How long loading may take without a note.
    """
    asking = askers_in(reasoner)
    # several groups of agents may have the same model, at the same servers
    pools = {
        (pool.model, *pool.hosts): (pool, isinstance(asker, Writer))
        for asker in asking
        if isinstance(pool := asker.client, ModelPool)
    }
    if not pools:
        return

    found = run_to_end(_warm_up_all(pools.values(), deadline, note, quiet_seconds))
    for (pool, writes), troubles in zip(pools.values(), found, strict=True):
        # a decision without an answer falls back; a text is missing
        what, lost = ("text", "be missing") if writes else ("decision", "fall back")
        whose = f" of {pool.model}" if len(pools) > 1 else ""
        _tell(
            troubles, len(pool.hosts), (f"{what}s will {lost}", f"{what}{whose} will {lost}"), warn
        )


def _tell(troubles: Sequence[str], hosts: int, lost: tuple[str, str], warn: Say) -> None:
    """Say what is wrong with some servers of a pool, or with all of them."""
    if len(troubles) < hosts:
        for trouble in troubles:
            warn(f"{trouble}; its {lost[0]} {_SEE_DOCTOR}")
        return

    *others, last = troubles
    for trouble in others:
        warn(trouble)

    warn(f"{last}; until that is mended every {lost[1]} {_SEE_DOCTOR}")


async def _warm_up_all(
    pools: Collection[tuple[ModelPool, bool]],
    deadline: float | None,
    note: Say,
    quiet_seconds: float,
) -> list[list[str]]:
    found = await asyncio.gather(
        *(
            _warm_up(pool, deadline, note, quiet_seconds, try_text if writes else try_out)
            for pool, writes in pools
        )
    )
    return [[" ".join(trouble.split()) for trouble in troubles] for troubles in found]


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


def record_prompts(run: Any, record: PromptRecord) -> None:
    """Have those who ask a model in a run record what they ask."""
    for who in (run.reasoner, getattr(run, "writer", None)):
        for asker in askers_in(who):
            asker.record = record


@contextmanager
def closing_cache(reasoner: Any, warn: Say) -> Iterator[None]:
    """Write the last answers to the cache's file when the run ends, and say so where that fails."""
    caches = {id(asker.cache): asker.cache for asker in askers_in(reasoner)}
    try:
        yield
    finally:
        # answers wait in memory while another process has the file locked
        for cache in caches.values():
            if isinstance(cache, AnswerCache):
                try:
                    cache.close()
                except InputError as error:
                    warn(f"{error}; the last answers are not in it")


def spent_by(*reasoners: Any) -> dict[str, Any]:
    """Return what models have cost, as ``run.json`` says it; nothing where none was asked.

    Args:
        reasoners: Who decides and who writes.
    """
    asking = [each for reasoner in reasoners for each in askers_in(reasoner)]
    if not asking:
        return {}

    # all share one
    budget = asking[0].budget
    by_model = {"by_model": costs["costs"]} if (costs := costs_told(*reasoners)) else {}

    return {"spent": {"calls": budget.calls, "tokens": budget.tokens, **by_model}}

"""Loading the models of a run before its first round, and reporting problems at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from prism.errors import (
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
)
from prism.llm._doctor import try_out, try_text
from prism.llm._pool import ModelPool
from prism.llm._servers import ModelServer
from prism.reasoner._faults import is_permanent_refusal, is_refused
from prism.statechart import Cost, Reasoner, Writer

QUIET_SECONDS = 2.0
_TRIALS = 3
"""How often to try a server that may answer only some questions well."""

_SEE_DOCTOR = "(see: prism doctor)"
_WILL_FALL_BACK = (ModelMissingError, OverloadedError, TimedOutError, UnreachableError)

Say = Callable[[str], None]
Look = Callable[[ModelServer, Cost], Awaitable[str]]
"""Asks a server a trial question of the kind that the run asks."""


async def load_model(
    asking: Sequence[Reasoner | Writer],
    deadline: float | None,
    note: Say,
    warn: Say,
    *,
    may_end: bool = False,
    quiet_seconds: float = QUIET_SECONDS,
) -> None:
    """Load the model on at least one server, and report at once what would cause fallbacks.

    If agents have different models, all are loaded at the same time.

    Args:
        asking: The reasoners and writers; nothing happens unless they ask a pool of servers.
        deadline: Seconds for which the run may ask; it also waits no longer than that for the
            model.
        note: Receives a note if loading takes a while.
        warn: Receives problems of a server.
        may_end: Whether the run ends if too many decisions fall back.
        quiet_seconds: How long loading may take without a note.

    Raises:
        UnreachableError, ModelMissingError: If all servers of a model refuse connections or do not
            have it, and the run would also wait for a server that fails later, or end.
    """
    pools = _pools_of(asking)
    if not pools:
        return

    found = await _warm_up_all(pools, deadline, note, quiet_seconds)
    for (pool, asker), troubles in zip(pools, found, strict=True):
        is_fatal = may_end or any(host.settings["patience"] for host in pool.servers)
        if is_fatal and len(troubles) == len(pool.hosts) and all(map(_is_away, troubles)):
            kind = type(troubles[-1])
            raise kind(_line("; ".join(map(str, troubles))))

        # a decision without an answer falls back, whereas a text is missing
        what, lost = (
            ("text", "be missing") if isinstance(asker, Writer) else ("decision", "fall back")
        )
        whose = f" of {pool.model}" if len(pools) > 1 else ""
        _tell(troubles, len(pool.hosts), (what, whose, f"will {lost}"), warn)


def _pools_of(asking: Iterable[Reasoner | Writer]) -> list[tuple[ModelPool, Reasoner | Writer]]:
    """Return the pools of servers that are asked, each with one of those who ask it."""
    # several groups of agents may have the same model on the same servers
    pools = {
        (pool.model, *pool.hosts): (pool, asker)
        for asker in asking
        if isinstance(pool := asker.client, ModelPool)
    }
    return list(pools.values())


def _is_away(trouble: LLMError) -> bool:
    """Return whether there is no server, or no model on it, until somebody starts or pulls it."""
    return isinstance(trouble, ModelMissingError) or is_refused(trouble)


def _is_certain(trouble: LLMError) -> bool:
    """Return whether a server cannot answer any question until somebody fixes it."""
    return _is_away(trouble) or is_permanent_refusal(trouble)


def _tell(troubles: Sequence[LLMError], hosts: int, lost: tuple[str, str, str], warn: Say) -> None:
    """Report the problems of some servers of a pool, or of all of them."""
    what, whose, how = lost
    if len(troubles) < hosts:
        for trouble in troubles:
            warn(f"{_line(trouble)}; its {what}s {how} {_SEE_DOCTOR}")
        return

    *others, last = troubles
    for trouble in others:
        warn(_line(trouble))

    # temporary problems, or those of a few answers, need not affect all others
    which = (
        f"until that is fixed, every {what}{whose} {how}"
        if all(map(_is_certain, troubles))
        else f"while that lasts, {what}s{whose} {how}"
    )
    warn(f"{_line(last)}; {which} {_SEE_DOCTOR}")


def _line(said: object) -> str:
    return " ".join(str(said).split())


async def _warm_up_all(
    pools: Collection[tuple[ModelPool, Reasoner | Writer]],
    deadline: float | None,
    note: Say,
    quiet_seconds: float,
) -> list[list[LLMError]]:
    return await asyncio.gather(
        *(_warm_up(pool, asker, deadline, note, quiet_seconds) for pool, asker in pools)
    )


async def _warm_up(
    pool: ModelPool,
    asker: Reasoner | Writer,
    deadline: float | None,
    note: Say,
    quiet_seconds: float,
) -> list[LLMError]:
    look, cost = try_text if isinstance(asker, Writer) else try_out, asker.trial
    try:
        async with pool:
            loading = asyncio.create_task(pool.warm_up(deadline, cost))
            done, _ = await asyncio.wait({loading}, timeout=quiet_seconds)
            if not done:
                note(f"waiting for {pool.model} to be loaded at {', '.join(pool.hosts)}")

            errors = (await loading).values()
            judged = zip(pool.servers, errors, strict=True)
            found = await asyncio.gather(
                *(_judge(host, error, deadline, look, cost) for host, error in judged)
            )
    finally:
        asker.budget.add(retries=cost.attempts, tokens=cost.tokens)

    return [trouble for trouble in found if trouble is not None]


async def _judge(
    host: ModelServer, error: LLMError | None, limit: float | None, look: Look, cost: Cost
) -> LLMError | None:
    """Return what prevents a server from answering questions, if anything."""
    if error is None or isinstance(error, _WILL_FALL_BACK):
        return error

    # a server other than Ollama may refuse to load a model, but serve it nevertheless
    try:
        async with asyncio.timeout(limit):
            return await _tried(host, look, cost)
    except TimeoutError:
        return error


async def _tried(host: ModelServer, look: Look, cost: Cost) -> LLMError | None:
    """Return what prevents a server from answering after several tries, if anything."""
    trouble: LLMError | None = None
    for _ in range(_TRIALS):
        try:
            await look(host, cost)
        except LLMError as failure:
            trouble = failure
            if _is_certain(failure):
                break
        else:
            return None

    return trouble

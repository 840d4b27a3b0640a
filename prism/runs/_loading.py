"""Loading the models of a run before its first round, and reporting problems at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from prism.errors import LLMError, ModelMissingError
from prism.llm._pool import ModelPool
from prism.reasoner._faults import is_refused
from prism.statechart import Reasoner, Writer

QUIET_SECONDS = 2.0

Say = Callable[[str], None]


async def load_model(
    asking: Sequence[Reasoner | Writer],
    deadline: float | None,
    note: Say,
    warn: Say,
    *,
    may_end: bool = False,
    quiet_seconds: float = QUIET_SECONDS,
) -> None:
    """Load all models of a run at the same time, and report at once what would cause fallbacks.

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
    # several groups of agents may have the same model on the same servers
    pools = {
        (pool.model, *pool.hosts): (pool, asker)
        for asker in asking
        if isinstance(pool := asker.client, ModelPool)
    }.values()
    loading = (_load(pool, asker, deadline, note, quiet_seconds) for pool, asker in pools)
    found = await asyncio.gather(*loading)
    for (pool, asker), troubles in zip(pools, found, strict=True):
        is_fatal = may_end or any(host.settings["patience"] for host in pool.servers)
        if is_fatal and len(troubles) == len(pool.hosts) and all(map(_is_away, troubles)):
            raise type(troubles[-1])(_line("; ".join(map(str, troubles))))

        lost = "texts will be missing" if isinstance(asker, Writer) else "decisions will fall back"
        for trouble in troubles:
            warn(f"{_line(trouble)}; while that lasts, {lost} (see: prism doctor)")


async def _load(
    pool: ModelPool,
    asker: Reasoner | Writer,
    deadline: float | None,
    note: Say,
    quiet_seconds: float,
) -> list[LLMError]:
    """Load a model on all servers of a pool, and return what went wrong."""
    cost = asker.trial
    try:
        async with pool:
            loading = asyncio.create_task(pool.warm_up(deadline, cost))
            done, _ = await asyncio.wait({loading}, timeout=quiet_seconds)
            if not done:
                note(f"waiting for {pool.model} to be loaded at {', '.join(pool.hosts)}")
            errors = await loading
    finally:
        asker.budget.add(retries=cost.attempts, tokens=cost.tokens)
    return [error for error in errors.values() if error is not None]


def _is_away(trouble: LLMError) -> bool:
    """Return whether there is no server, or no model on it, until somebody starts or pulls it."""
    return isinstance(trouble, ModelMissingError) or is_refused(trouble)


def _line(said: object) -> str:
    return " ".join(str(said).split())

"""The models that a run asks: loaded before its first round, and what they have cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prism.errors import LLMError, ModelMissingError
from prism.llm import Model
from prism.reasoner._router import Router, costs_by_model
from prism.runs._journal import Wrapped
from prism.runs._loops import run_to_end

if TYPE_CHECKING:
    from prism.llm._pool import ModelPool
    from prism.runs._observing import Observer
    from prism.statechart import Reasoner, Writer

_QUIET_SECONDS = 2.0
"""How long loading may take without a note."""


def asking_in(askers: Iterable[Any]) -> list[Reasoner | Writer]:
    """Return everything in reasoners and writers that asks a model, such as parts of a router."""
    result: list[Reasoner | Writer] = []
    for asker in askers:
        if isinstance(asker, Router):
            result += asking_in(asker.parts.values())
            continue
        part = asker.part if isinstance(asker, Wrapped) else asker
        if hasattr(part, "client") and hasattr(part, "trial"):
            result.append(part)
    return result


# Loading


def load_models(askers: Sequence[Any], deadline: float | None, observer: Observer) -> None:
    """Load all models of a run at the same time, and report at once what would cause fallbacks.

    Args:
        askers: The reasoner and the writer; nothing happens unless they ask a pool of servers.
        deadline: Seconds for which the run may ask; it also waits no longer than that for the
            model.
        observer: Receives a note if loading takes a while, and the problems of servers.

    Raises:
        UnreachableError, ModelMissingError: If all servers of a model refuse connections or do not
            have it, and the run would also wait for a server that fails later, or end.
    """
    # a run without a model does not load the code that asks one
    from prism.llm._pool import ModelPool

    # a decider and a writer may have the same model on the same servers
    pools = {
        (pool.model, *pool.hosts): (pool, asker)
        for asker in asking_in(askers)
        if isinstance(pool := asker.client, ModelPool)
    }
    may_end = any(getattr(asker, "stop_at", None) is not None for asker in askers)

    async def load_all() -> None:
        loading = (_load(*each, deadline, observer) for each in pools.values())
        for (pool, _), errors in zip(pools.values(), await asyncio.gather(*loading), strict=True):
            is_fatal = may_end or any(server.settings["patience"] for server in pool.servers)
            if (
                is_fatal
                and errors
                and len(errors) == len(pool.hosts)
                and all(map(_is_away, errors))
            ):
                raise type(errors[-1])(_line("; ".join(map(str, errors))))
            for error in errors:
                lost = "decisions fall back and texts are missing (see: prism doctor)"
                observer.warn(f"{_line(error)}; while that lasts, {lost}")

    if pools:
        run_to_end(load_all())


async def _load(
    pool: ModelPool, asker: Reasoner | Writer, deadline: float | None, observer: Observer
) -> list[LLMError]:
    """Load a model on all servers of a pool, and return what went wrong."""
    cost = asker.trial
    try:
        async with pool:
            loading = asyncio.create_task(pool.warm_up(deadline, cost))
            done, _ = await asyncio.wait({loading}, timeout=_QUIET_SECONDS)
            if not done:
                observer.note(f"waiting for {pool.model} to be loaded at {', '.join(pool.hosts)}")
            errors = await loading
    finally:
        asker.budget.add(retries=cost.attempts, tokens=cost.tokens)
    return [error for error in errors.values() if error is not None]


def _is_away(error: LLMError) -> bool:
    """Return whether there is no server, or no model on it, until somebody starts or pulls it."""
    from prism.reasoner._faults import is_refused

    return isinstance(error, ModelMissingError) or is_refused(error)


def _line(text: object) -> str:
    return " ".join(str(text).split())


# Spending


def spent_by(askers: Sequence[Any], models: Iterable[Model]) -> dict[str, Any]:
    """Return the use of models for ``run.json``, or nothing if none is asked.

    Args:
        askers: The reasoner and the writer.
        models: All models that the run may ask, some with prices.
    """
    asking = asking_in(askers)
    if not asking:
        return {}
    # all share one
    budget = asking[0].budget
    spent: dict[str, Any] = {"calls": budget.calls, "tokens": budget.tokens}
    by_model: dict[str, dict[str, Any]] = {**costs_by_model(*askers)}
    for name, costs in by_model.items():
        if (money := _money(name, costs, models)) is not None:
            costs["money"] = round(money, 6)
            spent["money"] = round(spent.get("money", 0) + money, 6)
    # how often a model chose each place in its list of options
    counted = (getattr(each, "places", None) for each in askers)
    places = next((each.to_dict() for each in counted if each is not None), None)
    parts = {"by_model": by_model, "places": places}
    return {"spent": {**spent, **{name: part for name, part in parts.items() if part}}}


def _money(name: str, costs: Mapping[str, int], models: Iterable[Model]) -> float | None:
    """Return the money spent on a model; None if its prices differ, or tokens are unknown."""
    read, written = costs["input_tokens"], costs["output_tokens"]
    prices = {each.price_of(read, written) for each in models if each.model == name}
    # a server that does not report tokens is not free
    is_counted = read or written or not costs["calls"]
    return prices.pop() if len(prices) == 1 and is_counted else None

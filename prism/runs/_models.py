"""The models that a run asks: loaded before its first round, and what they have cost."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from prism.errors import LLMError
from prism.reasoner import Budget, Cost, Router
from prism.reasoner.questions import Parts
from prism.reasoner.requests import count_tokens

if TYPE_CHECKING:
    from prism.llm.pool import ModelPool
    from prism.reasoner import Reasoner, Writer
    from prism.runs.observing import Observer

_QUIET_SECONDS = 2.0
"""How long loading may take without a note."""


def asking_in(askers: Iterable[Any]) -> list[Reasoner | Writer]:
    """Return everything in reasoners and writers that asks a model, such as parts of a router."""
    groups = (asker.parts.values() if isinstance(asker, Parts) else [asker] for asker in askers)
    parts: Iterator[Any] = chain.from_iterable(groups)
    return [part for part in parts if hasattr(part, "client") and hasattr(part, "pool")]


# Loading


async def load_models(
    askers: Sequence[Any], deadline: float | None, observer: Observer
) -> list[Cost]:
    """Load all models of a run at the same time, and report at once what would cause fallbacks.

    Args:
        askers: The reasoner and the writer; nothing happens unless they ask a pool of servers.
        deadline: Seconds for which the run may ask; it also waits no longer than that for the
            model.
        observer: Receives a note if loading takes a while, and the problems of servers.

    Returns:
        What loading has cost.

    Raises:
        UnreachableError, ModelMissingError: If all servers of a model refuse connections or do not
            have it, and the run would also wait for a server that fails later, or end.
    """
    # a run without a model does not load the code that asks one
    from prism.llm.pool import ModelPool

    # a decider and a writer may have the same model on the same servers
    pools = {
        (pool.model, *pool.hosts): (pool, asker)
        for asker in asking_in(askers)
        if isinstance(pool := asker.client, ModelPool)
    }
    may_end = any(getattr(asker, "stop_at", None) is not None for asker in askers)

    # who has spent everything asks no more
    left = [each for each in pools.values() if each[1].budget.spent() is None]
    loading = (_load(pool, asker.budget, deadline, observer) for pool, asker in left)
    loaded = await asyncio.gather(*loading)
    for (pool, asker), (errors, cost) in zip(left, loaded, strict=True):
        cost.price(asker.prices)
        is_fatal = may_end or any(server.settings["patience"] for server in pool.servers)
        is_away = len(errors) == len(pool.hosts) and all(map(pool.is_away, errors))
        if is_fatal and errors and is_away:
            raise type(errors[-1])(_line("; ".join(map(str, errors))))
        for error in errors:
            lost = "decisions fall back and texts are missing (see: prism doctor)"
            observer.warn(f"{_line(error)}; while that lasts, {lost}")
    return [cost for _, cost in loaded if cost.attempts]


async def _load(
    pool: ModelPool, budget: Budget, deadline: float | None, observer: Observer
) -> tuple[list[LLMError], Cost]:
    """Load a model on all servers of a pool; return what went wrong, and the cost."""
    cost = Cost(budget=budget)
    limit = None if deadline is None else deadline - budget.seconds
    async with pool:
        loading = asyncio.create_task(pool.warm_up(limit, cost))
        done, _ = await asyncio.wait({loading}, timeout=_QUIET_SECONDS)
        if not done:
            observer.note(f"waiting for {pool.model} to be loaded at {', '.join(pool.hosts)}")
        errors = await loading
    return [error for error in errors.values() if error is not None], cost


def _line(text: object) -> str:
    return " ".join(str(text).split())


# Spending


CALL = "call"
"""The kind of a line in the journal of a run: a request is being sent."""

LOADED = "loaded"
"""The kind of one that says what loading a model has cost."""

FROM = "from"
"""The key of an answer that was taken from the journal of another run."""


@dataclass(slots=True)
class Spent:
    """What a run has paid for, by the lines of its journal.

    Args:
        calls: Requests that were sent, also those whose answers were lost when it was stopped.
        tokens: Tokens read and written.
        seconds: Seconds since its first question, if it has a deadline.
        by_model: Answers, calls, tokens, calls for loading, and money if it is known, by the names
            of models.
    """

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    by_model: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, line: Mapping[str, Any]) -> None:
        """Add what a line says, unless another run has paid for it."""
        if FROM in line:
            return
        self.seconds = max(self.seconds, line.get("seconds", 0.0))
        self.calls += line.get("kind") == CALL
        if (cost := line.get("cost")) is None:
            return
        read, written = cost.get("input_tokens"), cost.get("output_tokens", 0)
        if read is None and line.get("reply") is not None:
            read = count_tokens(f"{line['prompt']}{line['reply']}")
        self.tokens += (read or 0) + written
        if (model := cost.get("model")) is not None:
            counts = self.by_model[model]
            # a useless reply is not an answer, but costs
            counts["answers"] += line.get("source") in ("model", "cache")
            counts["calls"] += cost["attempts"]
            counts["input_tokens"] += cost.get("input_tokens", 0)
            counts["output_tokens"] += written
            counts["loading"] += cost["attempts"] if line.get("kind") == LOADED else 0
            if "money" in cost:
                counts["money"] += cost["money"]


def spent_by(askers: Sequence[Any], spent: Spent) -> dict[str, Any]:
    """Return the use of models for ``run.json``, and how their replies were sampled.

    It is empty if no model is asked.

    Args:
        askers: The reasoner and the writer.
        spent: What the run has paid for.
    """
    asking = asking_in(askers)
    if not asking:
        return {}
    # all share one budget, which also counts what no journal has
    budget = asking[0].budget
    total = priced(replace(spent, calls=budget.calls, tokens=budget.tokens))
    # how often a model chose each position in its list of options
    positions = next((each.positions for each in askers if isinstance(each, Router)), None)
    sampling = {each.pool.model: each.pool.sampling for each in asking if each.pool.sampling}
    return {
        "spent": {**total, **({"positions": positions} if positions else {})},
        **({"sampling": sampling} if sampling else {}),
    }


def priced(spent: Spent) -> dict[str, Any]:
    """Return calls and tokens, in total and by model, with the money where it is known."""
    total: dict[str, Any] = {"calls": spent.calls, "tokens": spent.tokens}
    by_model: dict[str, dict[str, Any]] = {}
    for name, costs in sorted(spent.by_model.items()):
        by_model[name] = {**costs}
        if "money" in costs:
            by_model[name]["money"] = round(costs["money"], 6)
            total["money"] = round(total.get("money", 0) + costs["money"], 6)
    return {**total, **({"by_model": by_model} if by_model else {})}

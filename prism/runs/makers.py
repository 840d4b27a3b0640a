"""Making the reasoner and the writer of a run from its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from prism.errors import InputError
from prism.llm import Model
from prism.llm.model import pool_of
from prism.llm.settings import OF_DECISIONS
from prism.reasoner import BaseReasoner, BaseWriter, Budget, PolicyReasoner, Reasoner, Router
from prism.reasoner.texts import Writer, WriterRouter
from prism.runs.options import ALL_OTHERS, Before, DeciderOptions, PolicyOptions, WriterOptions
from prism.runs.policy_file import Policy

BEFORE = "before"
"""The title of what decides first in a run that switches."""

PATIENCE_SECONDS = 60.0
"""The default seconds that a run waits for a failing server."""

DEFAULT_SHARE = 0.5
"""The default share of fallbacks that ends a run."""

_OF_A_CLIENT = ("concurrency", "attempts", "timeout", "patience")


def make_askers(
    decider: DeciderOptions,
    writer: WriterOptions | None,
    seed: int,
    fallback: Any,
    *,
    before: Before | None = None,
) -> tuple[BaseReasoner | None, BaseWriter | None]:
    """Make the reasoner and the writer of a run; a model that does both is one client.

    Args:
        decider: What decides; None for the default of the kind of run.
        writer: The options of the writer.
        seed: Seed of the run.
        fallback: The state to take when a model gives no valid answer.
        before: What decides until ``decider`` does, to which a run switches.

    Returns:
        The two; None for those without options.

    Raises:
        FieldValueError: If an option lies outside its range.
        InputError: If a policy cannot be read.
    """
    writes = writer.model if writer is not None else None
    first = None if before is None else before.decider
    models = [each for each in (decider, first, writes) if isinstance(each, Model)]
    # the limits of one are those of all
    budget = _budget_of(models[0]) if models else None

    def decider_of(options: DeciderOptions) -> BaseReasoner:
        if isinstance(options, Model):
            return _reasoner(options, seed, fallback, budget)
        if isinstance(options, PolicyOptions):
            return Policy.from_file(Path(options.policy)).reasoner(seed)
        return PolicyReasoner(seed)

    deciding = [each for each in (decider, first) if isinstance(each, Model)]
    decides = None if decider is None and before is None else decider_of(decider)
    if before is not None or deciding:
        parts = {} if before is None else {BEFORE: decider_of(first)}
        stopping = _stopping(deciding[0]) if deciding else {}
        decides = Router({**parts, ALL_OTHERS: decides}, **stopping)
    if writer is None:
        return decides, None
    if isinstance(writes, Model):
        return decides, make_writer(writes, seed, budget=budget)
    # a client of another library does not reveal its model
    part = cast(Router, decides).parts[ALL_OTHERS]
    asks: Any = Writer(part.client, model=part.model_name, seed=seed, budget=budget)
    asks.prices = part.prices
    return decides, WriterRouter({ALL_OTHERS: asks})


def make_writer(options: Model, seed: int, *, budget: Budget | None = None) -> BaseWriter:
    """Make the writer of a run, which asks a model for texts.

    Args:
        options: The model.
        seed: Seed of the run.
        budget: The budget that it shares with the run's reasoner.

    Raises:
        FieldValueError: If an option lies outside its range.
        InputError: If an option applies to decisions only.
    """
    for name in OF_DECISIONS:
        if getattr(options, name) is not None:
            problem = "applies to decisions, but in this run a model only writes"
            raise InputError(problem, field=name)
    shared = budget or _budget_of(options)
    writer = Writer(**_client_of(options, seed), seed=seed, budget=shared)
    writer.prices = options.prices
    return WriterRouter({ALL_OTHERS: writer})


def _reasoner(options: Model, seed: int, fallback: Any, budget: Budget | None) -> Reasoner:
    reasoner = Reasoner(
        **_client_of(options, seed),
        mode=options.mode or "auto",
        fallback=fallback,
        seed=seed,
        prompt=options.prompt,
        attributes=options.attributes or (),
        memory=options.remember,
        rotations=options.rotations or "drawn",
        budget=budget,
    )
    reasoner.prices = options.prices
    return reasoner


def _budget_of(options: Model) -> Budget:
    return Budget(
        max_calls=options.max_calls, max_tokens=options.max_tokens, deadline=options.deadline
    )


def _stopping(options: Model) -> dict[str, Any]:
    """Return the settings of a router that ends a run with too many fallbacks."""
    share = options.stop_at_fallbacks
    if share == "never":
        return {}
    if share is None:
        # a user who limits the spending wants the run to continue after that
        return {"stop_at": DEFAULT_SHARE, "counts_budget": False}
    return {"stop_at": share, "counts_budget": True}


def _client_of(model: Model, seed: int) -> dict[str, Any]:
    """Return the client that a `Reasoner` or `Writer` asks.

    Raises:
        InputError: If its key is not set.
    """
    if model.client is None:
        return {"client": pool_of(model, seed=seed, patience=PATIENCE_SECONDS)}
    limits = {name: limit for name in _OF_A_CLIENT if (limit := getattr(model, name)) is not None}
    limits = {"patience": PATIENCE_SECONDS, **limits}
    return {"client": model.client, "model": model.model or None, **limits}

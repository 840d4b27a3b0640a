"""Making the reasoner and the writer of a run from its options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from prism.errors import InputError
from prism.llm import Model
from prism.llm._model import pool_of
from prism.llm._settings import OF_DECISIONS
from prism.reasoner._router import Router
from prism.runs._dry_run import asked_in_a_dry_run, in_a_dry_run
from prism.runs._options import (
    ALL_OTHERS,
    NO_LATER,
    DeciderOptions,
    Later,
    PolicyOptions,
    WriterOptions,
)
from prism.runs._policy_file import Policy
from prism.statechart import (
    BaseReasoner,
    BaseWriter,
    Budget,
    PolicyReasoner,
    Reasoner,
    Writer,
)


def _budget_of(options: Model) -> Budget:
    return Budget(
        max_calls=options.max_calls,
        max_tokens=options.max_tokens,
        deadline=options.deadline,
    )


def make_reasoner(
    options: Model | PolicyOptions,
    seed: int,
    fallback: Any,
    *,
    budget: Budget | None = None,
    later: Later = NO_LATER,
) -> BaseReasoner:
    """Make the reasoner of a run: a `Router` of all its models, if it has any.

    Args:
        options: The options of the reasoner.
        seed: Seed of the run.
        fallback: The state to take when a model gives no valid answer.
        budget: The budget that it shares with the run's writer.
        later: Models to which the run switches later, by their names in the log.

    Raises:
        FieldValueError: If an option lies outside its range.
        InputError: If the policy cannot be read.
    """
    if isinstance(options, PolicyOptions):
        return _until_later(Policy.from_file(options.policy).reasoner(seed), seed, fallback, later)
    shared = budget or _budget_of(options)
    parts = {
        title: _reasoner(each, seed, fallback, shared) for title, each in _parts(options, later)
    }
    return Router(parts, **_stopping(options))


def _until_later(first: BaseReasoner, seed: int, fallback: Any, later: Later) -> BaseReasoner:
    """Return the reasoner of a run that begins without a model, with its later models, if any."""
    if not later:
        return first

    options = {title: Model.of(text) for title, text in later.items()}
    any_of_them = next(iter(options.values()))
    budget = _budget_of(any_of_them)
    models = {title: _reasoner(each, seed, fallback, budget) for title, each in options.items()}

    return Router({ALL_OTHERS: first, **models}, **_stopping(any_of_them))


def _reasoner(options: Model, seed: int, fallback: Any, budget: Budget) -> BaseReasoner:
    reasoner = Reasoner(
        **_asked(options, seed),
        mode=options.mode or "auto",
        fallback=fallback,
        seed=seed,
        prompt=options.prompt,
        attributes=options.attributes or (),
        memory=options.remember,
        rotations=options.rotations or "drawn",
        budget=budget,
    )
    return in_a_dry_run(reasoner, seed)


def _stopping(options: Model) -> dict[str, Any]:
    """Return the settings of a router that ends a run with too many fallbacks."""
    share = options.stop_at_fallbacks
    if share == "never":
        return {}

    # a user who limits the spending wants the run to continue after that
    stop_at = DEFAULT_SHARE if share is None else share
    return {"stop_at": stop_at, "counts_budget": share is not None}


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

    asked = _asked(options, seed, writes=True)
    shared = budget or _budget_of(options)
    return Router({ALL_OTHERS: Writer(**asked, seed=seed, budget=shared)})


def _parts(options: Model, later: Later) -> Iterator[tuple[str, Model]]:
    """Yield the run's own model, and those to which it switches, by their names in the log."""
    yield ALL_OTHERS, options
    for title, text in later.items():
        yield title, options.named(text)


def _asked(model: Model, seed: int, *, writes: bool = False) -> dict[str, Any]:
    """Return the client that a `Reasoner` or `Writer` asks.

    Raises:
        InputError: If its key is not set.
    """
    if (counting := asked_in_a_dry_run(model, writes=writes)) is not None:
        return counting
    if model.client is None:
        return {"client": pool_of(model, seed=seed, patience=PATIENCE_SECONDS)}

    limits = {name: getattr(model, name) for name in _OF_A_CLIENT}
    given = {"patience": PATIENCE_SECONDS}
    given |= {name: value for name, value in limits.items() if value is not None}
    return {"client": model.client, "model": model.model or None, **given}


_OF_A_CLIENT = ("concurrency", "attempts", "timeout", "patience")

PATIENCE_SECONDS = 60.0
"""The default seconds that a run waits for a failing server."""

DEFAULT_SHARE = 0.5
"""The default share of fallbacks that ends a run."""


def make_askers(
    reasoner: DeciderOptions,
    writer: WriterOptions | None,
    seed: int,
    fallback: Any,
    *,
    later: Later = NO_LATER,
) -> tuple[BaseReasoner | None, BaseWriter | None]:
    """Make the reasoner and the writer of a run; a model that does both is one client.

    Args:
        reasoner: The options of the reasoner; None for the default of the kind of run.
        writer: The options of the writer.
        seed: Seed of the run.
        fallback: The state to take when a model gives no valid answer.
        later: Models to which the run switches later, by their names in the log. If one model
            decides and writes, they also write.

    Returns:
        The two; None for those without options.

    Raises:
        FieldValueError: If an option lies outside its range.
        InputError: If the policy cannot be read.
    """
    budget = _budget_of(reasoner) if isinstance(reasoner, Model) else None
    decides = _decider(reasoner, seed, fallback, budget, later)
    if writer is None:
        return decides, None
    if not isinstance(reasoner, Model):
        assert isinstance(writer.model, Model)
        return decides, make_writer(writer.model, seed)
    if writer.model is not None:
        options = _own_model(reasoner, writer.model)
        return decides, make_writer(options, seed, budget=budget)

    return decides, _written_by(decides, seed)


def _decider(
    reasoner: Model | PolicyOptions | None,
    seed: int,
    fallback: Any,
    budget: Budget | None,
    later: Later,
) -> BaseReasoner | None:
    if reasoner is None:
        return _until_later(PolicyReasoner(seed), seed, fallback, later) if later else None

    return make_reasoner(reasoner, seed, fallback, budget=budget, later=later)


def _written_by(decides: Any, seed: int) -> BaseWriter:
    """Return a writer that shares the clients of the reasoner, for the same agents."""
    writers = {
        # a client of another library does not reveal its model
        name: Writer(part.client, model=part.named, seed=seed, budget=part.budget)
        for name, part in decides.parts.items()
    }
    return Router(writers)


def _own_model(reasoner: Model, model: str | Model) -> Model:
    """Return the options of another model, given by name or with its own options."""
    if isinstance(model, Model):
        return model
    unwanted: dict[str, Any] = dict.fromkeys(OF_DECISIONS)
    return replace(reasoner.named(model), **unwanted)

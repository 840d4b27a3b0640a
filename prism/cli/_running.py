"""Carrying out a run: from its plan to what is printed in the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from shlex import quote
from typing import Any

import typer

from prism.cli._results import RoundProgress, print_results
from prism.errors import (
    InputError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
)
from prism.llm import AnswerCache, OllamaPool
from prism.runlog import SimulatedClock
from prism.runs._folder import RunFolder, describe_run
from prism.runs._plan import RunPlan
from prism.social import Results, RoundSummary, Simulation
from prism.statechart import Reasoner

_QUIET_SECONDS = 2.0
_WILL_FALL_BACK = (ModelMissingError, OverloadedError, TimedOutError, UnreachableError)


def carry_out(
    plan: RunPlan, folder: RunFolder | None, *, checkpoint_every: float, as_json: bool
) -> None:
    """Run a simulation to its end, from the beginning or from where it was stopped, and print the results.

    Args:
        plan: The run.
        folder: Where to keep it, if anywhere.
        checkpoint_every: Seconds between two checkpoints, at least.
        as_json: Print the summary as JSON instead of tables.

    Raises:
        PrismError: If the run turns out to be impossible.
        OSError: If it cannot be written down; the message says how to go on.
    """
    clock = SimulatedClock()
    begin = plan.prepare(clock)
    config = plan.to_config()
    with ExitStack() as stack:
        logger = None
        if folder is not None:
            stack.enter_context(_telling_how_to_go_on(folder))
            logger = stack.enter_context(
                folder.writing(config, clock, is_repeatable=plan.is_repeatable)
            )

        simulation = begin(logger)
        stack.enter_context(_closing_cache(simulation.reasoner))
        if folder is not None:
            _restore(folder, simulation)

        _warn_of_trouble(simulation.reasoner, plan.options.deadline)
        results = _run(simulation, plan.rounds, folder, checkpoint_every)
        outcome = _outcome(results, simulation.reasoner)
        if folder is not None:
            folder.complete(outcome)

    if as_json:
        typer.echo(json.dumps(describe_run(config, outcome), indent=2))
    else:
        print_results(results, None if folder is None else folder.path)


def _restore(folder: RunFolder, simulation: Simulation) -> None:
    folder.restore(simulation)
    for fault in folder.faults:
        typer.echo(f"prism: {fault}", err=True)

    if not folder.is_new:
        finished = len(simulation.finished)
        place = (
            f"going on after round {finished}"
            if finished
            else "beginning again, as there is no checkpoint"
        )
        typer.echo(f"prism: {folder.path}: {place}", err=True)


def _run(
    simulation: Simulation, rounds: int, folder: RunFolder | None, checkpoint_every: float
) -> Results:
    with RoundProgress(rounds, done=len(simulation.finished)) as progress:

        def after_round(summary: RoundSummary) -> None:
            progress.round_ended(summary)
            if folder is not None:
                folder.keep(simulation, seconds_between=checkpoint_every)

        return simulation.run(after_round)


@contextmanager
def _telling_how_to_go_on(folder: RunFolder) -> Iterator[None]:
    """Add to a failed write, or to an interruption, how the run can be gone on with."""
    hint = f"go on with: prism simulate --resume {quote(str(folder.path))}"
    try:
        yield
    except KeyboardInterrupt:
        if folder.is_begun:
            typer.echo(f"prism: {hint}", err=True)
        raise
    except OSError as error:
        problem = f"{error.strerror or error}; when that is mended, {hint}"
        raise OSError(error.errno, problem, error.filename or str(folder.path)) from error


@contextmanager
def _closing_cache(reasoner: Any) -> Iterator[None]:
    """Write down in the end the answers for which the cache's file was locked, and say so where that fails."""
    cache = reasoner.cache if isinstance(reasoner, Reasoner) else None
    try:
        yield
    finally:
        if isinstance(cache, AnswerCache):
            try:
                cache.close()
            except InputError as error:
                typer.echo(f"prism: {error}; the last answers are not in it", err=True)


def _warn_of_trouble(reasoner: Any, deadline: float | None) -> None:
    """Load the model, on one server at least, and say at once what would make decisions fall back.

    Args:
        reasoner: Who decides.
        deadline: Seconds that the run may ask for; it waits no longer for the model, either.
    """
    pool = reasoner.client if isinstance(reasoner, Reasoner) else None
    if not isinstance(pool, OllamaPool):
        return

    async def warm_up() -> list[str]:
        async with pool:
            loading = asyncio.create_task(pool.warm_up(deadline))
            if not (await asyncio.wait({loading}, timeout=_QUIET_SECONDS))[0]:
                typer.echo(
                    f"prism: waiting for {pool.model} to be loaded at {', '.join(pool.hosts)}",
                    err=True,
                )

            return [
                str(trouble)
                for trouble in (await loading).values()
                if isinstance(trouble, _WILL_FALL_BACK)
            ]

    for trouble in asyncio.run(warm_up()):
        typer.echo(
            f"prism: {' '.join(trouble.split())}; its decisions will fall back (see: prism doctor)",
            err=True,
        )


def _outcome(results: Results, reasoner: Any) -> dict[str, Any]:
    outcome: dict[str, Any] = {"results": results.to_dict()}
    if isinstance(reasoner, Reasoner):
        outcome["spent"] = {"calls": reasoner.budget.calls, "tokens": reasoner.budget.tokens}
    return outcome

"""Carrying out a run: from its beginning, again from its journal, or as a replay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from prism.llm.model import LostClient
from prism.runs._journal import Journal, take_from
from prism.runs._models import load_models, spent_by
from prism.runs.documents import BEFORE, Documents, documents
from prism.runs.folder import RunFolder, describe_run
from prism.runs.observing import Observer
from prism.runs.options import Repeats, models_of
from prism.telemetry.loggers import LateLogger

ResultsT = TypeVar("ResultsT")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[ResultsT]):
    """A finished run.

    Args:
        results: Its results.
        summary: The contents of ``run.json``: the version, the run's configuration, and the
            results.
        folder: Its folder, if it is kept.
    """

    results: ResultsT = field(repr=False)
    summary: dict[str, Any] = field(repr=False)
    folder: Path | None


def carry_out(
    options: Any,
    folder: RunFolder | None,
    *,
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
    with_config: bool = True,
) -> Outcome[Any]:
    """Carry out a run.

    Args:
        options: The run.
        folder: Where to keep it; nothing is written without one.
        on_round: Called with every round when it ends, after it was kept.
        observer: What to notify about the run. By default, it is logged to ``prism.runs``.
        with_config: Whether the outcome includes the run's configuration.
    """
    observer = observer or Observer()
    logger = None if folder is None else LateLogger()
    repeats: Repeats | None = options.repeats
    # a run without a model, or a replay, asks nobody
    asks = repeats is None or repeats.asks
    models = list(models_of(options)) if asks else []
    for model in models:
        if isinstance(model.client, LostClient):
            raise model.client.error()
    with ExitStack() as stack:
        held = stack.enter_context(_documents_of(folder, repeats))
        run = options.prepare(logger)
        askers: list[Any] = [run.reasoner, getattr(run, "writer", None)]
        # before a round has changed anything
        about = {"config": options.to_config() if with_config else {}}
        for name in ("charts", "titles") if with_config else ():
            if value := getattr(options, name, None):
                about[name] = value
        if folder is not None and logger is not None:
            writing = folder.writing(about, run.clock, repeats=repeats, at_once=bool(models))
            logger.opened = stack.enter_context(writing)
            logger.is_silent = folder.skipped > 0
            assert folder.journal is not None
            journal = folder.journal
            if folder.is_new:
                held.keep(BEFORE)
            else:
                number = len(journal.earlier)
                observer.note(f"{folder.path}: repeating it with {number:,} answers, then going on")
        else:
            journal = Journal(repeats=repeats)
        take_from(journal, askers)
        # who repeats another run may ask nobody
        if models and repeats is None:
            for cost in run_to_end(load_models(askers, options.deadline, observer)):
                journal.add_loading(cost)
        observer.started(run)
        results = run.run(partial(_end_round, run, folder, on_round, logger))
        outcome = {"results": results.to_dict(), **spent_by(askers, journal.spent)}
        if folder is not None:
            held.keep()
            folder.complete(outcome)

    return Outcome(results, describe_run(about, outcome), getattr(folder, "path", None))


def _documents_of(
    folder: RunFolder | None, repeats: Repeats | None
) -> AbstractContextManager[Documents]:
    """Collect the documents of a run's agents; one that repeats another changes no other file."""
    path = None if folder is None else folder.path
    if path is None and repeats is None:
        return nullcontext(Documents())
    is_resumed = folder is not None and not folder.is_new
    before = repeats.run if repeats is not None else path if is_resumed else None
    return documents(path, before, is_trial=repeats is not None)


def _end_round(
    run: Any,
    folder: RunFolder | None,
    on_round: Callable[[Any], object] | None,
    logger: LateLogger | None,
    summary: Any,
) -> None:
    """Keep and report a round."""
    if folder is not None and logger is not None:
        folder.round_ended()
        logger.is_silent = len(run.finished) < folder.skipped
    if on_round is not None:
        on_round(summary)


def run_to_end(main: Coroutine[Any, Any, ResultsT]) -> ResultsT:
    """Run a coroutine to its end, and return its result.

    A notebook runs its cells in an event loop, and no other loop may run in the same thread. There,
    the coroutine gets its own thread, for which this one waits.
    """
    tasks: list[asyncio.Task[ResultsT]] = []

    async def keep() -> None:
        tasks.append(asyncio.ensure_future(main))
        # asyncio formats the result of its main coroutine, which takes long for many rounds
        await tasks[0]

    is_in_loop = False
    with suppress(RuntimeError):
        is_in_loop = asyncio.get_running_loop().is_running()
    if not is_in_loop:
        asyncio.run(keep())
        return tasks[0].result()

    with ThreadPoolExecutor(1, "prism-run") as pool:
        done = pool.submit(copy_context().run, asyncio.run, keep())
        try:
            done.result()
        except KeyboardInterrupt:
            # only this thread receives an interruption
            if tasks and not done.done():
                tasks[0].get_loop().call_soon_threadsafe(tasks[0].cancel)
            wait([done])
            raise
    return tasks[0].result()

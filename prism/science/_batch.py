"""Carry out a plan: several runs at a time, a folder for each, and one table of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import polars as pl

from prism._version import __version__
from prism.errors import InputError
from prism.runs._checkpoints import DEFAULT_SECONDS_BETWEEN
from prism.runs._config import require_unchanged
from prism.runs._dry_run import Estimate, estimate_all
from prism.runs._ledger import Ledger
from prism.science._batch_child import COMPLETE, FAILED
from prism.science._batch_door import BatchObserver, BatchRun, Door
from prism.science._batch_folder import LEDGER_NAME, LOGS, PLAN_NAME, TABLES, BatchFolder, Keep
from prism.science._batch_tables import (
    all_results,
    round_rows,
    run_row,
    table_of,
    write_tables,
)
from prism.science._plan import Configuration, Plan, asks_a_model, feed_parameters, inputs_of
from prism.science._plan import is_of_feed as is_of_feed_plan
from prism.social._presets import DEFAULT_PRESET

_Part = tuple[BatchRun, dict[str, Any], Mapping[str, Any], Mapping[str, Any]]
"""A run, its identifying columns, its parameters, and its results."""


_MOST_WORKERS = 256
"""Most processes of a batch, and most runs that an executor gets at a time."""

Grow = Callable[["Batch"], Mapping[str, Any]]
"""Returns a new ``plan.json`` with more samples once all runs are over, or nothing."""


@dataclass(frozen=True, slots=True)
class Carrying:
    """How the runs of a batch are carried out; this does not change their results.

    Args:
        workers: Number of processes. Defaults to the number of processors.
        executor: Carries out the runs instead of processes on this machine.
        checkpoint_every: Seconds between checkpoints of a run.
        observer: Receives the progress of the batch.
        hosts: Addresses of its servers with user names and passwords, which a batch does not keep.
        grow: Draws more samples from the results so far.

    Raises:
        InputError: If the number of workers is out of range, or given together with an executor.
    """

    workers: int | None = None
    executor: Executor | None = None
    checkpoint_every: float = DEFAULT_SECONDS_BETWEEN
    observer: BatchObserver | None = None
    hosts: Sequence[str] = ()
    grow: Grow | None = None

    def __post_init__(self) -> None:
        """Refuse an invalid number of processes."""
        if self.workers is not None and not 1 <= self.workers <= _MOST_WORKERS:
            problem = f"must be from 1 to {_MOST_WORKERS}, got {self.workers}"
            raise InputError(problem, field="workers")
        if self.workers is not None and self.executor is not None:
            raise InputError("belongs to the executor: leave it out", field="workers")

    @contextmanager
    def opened(self) -> Iterator[tuple[Executor, int]]:
        """Yield the executor, and the number of runs to submit at a time."""
        if self.executor is not None:
            yield self.executor, _MOST_WORKERS
            return

        known = getattr(os, "sched_getaffinity", None)
        processors = len(known(0)) if known is not None else os.cpu_count() or 1
        number = self.workers or processors
        # each thread watches a process
        with ThreadPoolExecutor(number, "prism-batch") as threads:
            yield threads, number


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch in its folder.

    Args:
        folder: Its folder.
        plan: Its plan.
        runs: Its runs, in the order of the plan.
        spent: What its models used: ``calls`` and ``tokens``. Empty if no model was asked.
    """

    folder: Path
    plan: Plan
    runs: tuple[BatchRun, ...]
    spent: Mapping[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[BatchRun, ...]:
        """The runs that failed."""
        return tuple(each for each in self.runs if each.status == FAILED)

    @property
    def is_complete(self) -> bool:
        """Whether every run is complete."""
        return all(each.status == COMPLETE for each in self.runs)

    def results(self) -> pl.DataFrame:
        """Return one row per run: parameters, status, totals, and final measures.

        Measures are those of the world in the last round, and for the feed also those of
        the table ``run_measures``.

        Raises:
            MissingExtraError: If polars is not installed.
            InputError: If the results of a run are damaged.
        """
        return _results_of(self._parts())

    def rounds(self) -> pl.DataFrame:
        """Return one row per run and round: parameters, states, counts and measures.

        Raises:
            MissingExtraError: If polars is not installed.
            InputError: If the results of a run are damaged.
        """
        return _rounds_of(self._parts())

    def measures(self) -> list[str]:
        """Return the columns of ``results`` that are measures of the world.

        Raises:
            InputError: If the results of a run are damaged.
        """
        return self._outcomes()[0]

    def outcomes(self) -> list[str]:
        """Return the columns of ``results`` that are outcomes: measures, then totals.

        Raises:
            InputError: If the results of a run are damaged.
        """
        measures, totals = self._outcomes()
        return [*measures, *totals]

    def write(self) -> None:
        """Write both tables into the folder, as CSV and as Parquet.

        Raises:
            OSError: If it cannot be written.
        """
        # the runs' results are read once for both
        parts = list(self._parts())
        write_tables(self.folder, {"results": _results_of(parts), "rounds": _rounds_of(parts)})

    def _outcomes(self) -> tuple[list[str], list[str]]:
        measures: dict[str, None] = {}
        totals: dict[str, None] = {}
        for _, _, parameters, results in self._parts():
            own = set(run_row({}, parameters, {}))
            without = {**results, "rounds": (), "measures": {}}
            totals |= dict.fromkeys(_numbers(run_row({}, parameters, without), own))
            measures |= dict.fromkeys(_numbers(run_row({}, parameters, results), own))

        return [name for name in measures if name not in totals], list(totals)

    def _parts(self) -> Iterator[_Part]:
        """Yield each run, its identifying columns, its parameters, and its results."""
        of_feed = self._of_feed() if is_of_feed_plan(self.plan) else {}
        summaries = BatchFolder(self.folder).summaries([each.name for each in self.runs])
        for run, summary in zip(self.runs, summaries, strict=True):
            head = {
                "run": run.name,
                "configuration": run.configuration.name,
                "arm": run.configuration.arm,
                "seed": run.seed,
            }
            # a run that has not begun gets a row from the plan
            kept = summary or {}
            config, results = kept.get("config", {}), kept.get("results", {})
            sizes = {key: config[key] for key in ("agents", "rounds", "ticks_per_round") if config}
            parameters = of_feed.get(run.configuration.name) or {
                **run.configuration.parameters,
                **config.get("parameters", {}),
            }
            yield run, {**head, **sizes}, parameters, all_results(self.folder, run.name, results)

    def _of_feed(self) -> dict[str, dict[str, Any]]:
        """Return each configuration's preset, and the parameters that any configuration changes."""
        configurations = {run.configuration.name: run.configuration for run in self.runs}
        found = {name: feed_parameters(each) for name, each in configurations.items()}
        names = dict.fromkeys(
            name
            for key, each in configurations.items()
            for name in (*each.parameters, *found[key].changes())
        )

        presets = {key: each.settings.get("preset") for key, each in configurations.items()}
        told = any(presets.values())

        return {
            key: {
                **({"preset": presets[key] or DEFAULT_PRESET} if told else {}),
                **{name: getattr(each, name) for name in names},
            }
            for key, each in found.items()
        }


def batch(
    plan: Plan | Path | str,
    folder: Path | str,
    *,
    keep: Keep = LOGS,
    workers: int | None = None,
    executor: Executor | None = None,
    checkpoint_every: float = DEFAULT_SECONDS_BETWEEN,
    observer: BatchObserver | None = None,
) -> Batch:
    """Carry out a plan: run every configuration with every seed, several at a time.

    The folder then holds ``plan.json``, a folder for each run (``CONFIGURATION/seed-N``), and the
    tables ``results`` (one row a run) and ``rounds`` (one row a run and round), as CSV and Parquet.
    A run that fails has a row that says so, and its traceback is in its folder.

    Args:
        plan: The plan, or its file.
        folder: Where to keep it. A folder that holds a batch is refused.
        keep: What to keep of each run: ``logs`` for a folder with everything, or ``tables`` for
            only its part of both tables, which takes less time. A run without a folder starts over
            if the batch is stopped while it is running.
        workers: Number of processes. Defaults to the number of processors.
        executor: Carries out the runs instead of local processes, on this machine or on others,
            which must all see the folder. Every run has the same bytes as one made here.
        checkpoint_every: Seconds between checkpoints of a run, written when a round ends; 0 for a
            checkpoint after every round.
        observer: Receives the progress of the batch.

    Raises:
        InputError: If a run of the plan is impossible. This is checked before any run begins.
        KeyboardInterrupt: After an interruption, once the current rounds have ended. The batch can
            then be resumed. A second interruption stops it at once.
    """
    given = plan if isinstance(plan, Plan) else Plan.from_file(plan)
    how = Carrying(workers, executor, checkpoint_every, observer)
    return begin_batch(given, Path(folder), how, keep=keep)


def estimate_batch(plan: Plan | Path | str) -> Estimate:
    """Estimate how often the runs of a plan will ask their models and what that costs.

    No model is asked. A policy runs a few rounds of each configuration with its first seed.

    Args:
        plan: The plan, or its file.

    Raises:
        InputError: If no run asks a model, or a run is impossible.
    """
    given = plan if isinstance(plan, Plan) else Plan.from_file(plan)
    seeds = given.seeds
    return estimate_all(
        (given.options(each, seeds[0]), len(seeds)) for each in given.configurations()
    )


def begin_batch(
    plan: Plan,
    path: Path,
    how: Carrying,
    *,
    keep: Keep = LOGS,
    samples: Sequence[Mapping[str, Any]] | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Batch:
    """Carry out a plan, or samples of its parameters.

    Args:
        plan: The plan.
        path: The folder.
        how: How to carry out its runs.
        keep: What to keep of each run.
        samples: Parameters, instead of all combinations of what the plan varies.
        more: Further entries of ``plan.json``.
    """
    if keep not in get_args(Keep):
        raise InputError(f"must be {LOGS} or {TABLES}, got {keep!r}", field="keep")

    folder = BatchFolder(path)
    folder.require_free()
    told = {"plan": plan.data, **more}
    told |= {"keep": keep} if keep != LOGS else {}
    told |= {} if samples is None else {"samples": list(samples)}
    plan.check(() if samples is None else planned(told)[1])
    with folder.locked() as session:
        folder.begin(plan.to_dict(), inputs_of(plan), told)
        # user names and passwords of servers stay in the plan and are not written to the folder
        return _carried_out(folder, {**folder.read(), "plan": plan.data}, session, how)


def resume_batch(
    folder: Path | str,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    hosts: Sequence[str] = (),
    checkpoint_every: float = DEFAULT_SECONDS_BETWEEN,
    observer: BatchObserver | None = None,
) -> Batch:
    """Resume a batch that was stopped, however it was stopped, and complete it.

    Complete runs stay as they are, others continue from their checkpoints, and failed runs are
    tried again. Unless a model decides, tables and logs are the same, to the byte, as those of a
    batch that was never stopped.

    Args:
        folder: The folder of the batch.
        workers: Number of processes. Defaults to the number of processors.
        executor: As for `batch`; it may differ from the one that began the batch.
        hosts: Addresses of its servers with user names and passwords, which a batch does not keep.
        checkpoint_every: Seconds between checkpoints of a run.
        observer: Receives the progress of the batch.

    Raises:
        InputError: If the folder holds no batch, another version of prism began it, another process
            is carrying it out, or one of its files has changed.
    """
    return go_on(Path(folder), Carrying(workers, executor, checkpoint_every, observer, hosts))


def go_on(folder: Path, how: Carrying) -> Batch:
    """Continue a batch; see `resume_batch`."""
    kept = BatchFolder(folder)
    told = kept.read()
    plan, _ = planned(told)
    if told["prism"] != __version__:
        problem = f"was begun by prism {told['prism']}, and this is {__version__}: resume it there"
        raise InputError(problem, path=kept.path)

    # all runs of a batch must read the same files
    require_unchanged(told["inputs"], inputs_of(plan), kept.path / PLAN_NAME)
    with kept.locked() as session:
        return _carried_out(kept, told, session, how)


def read_batch(folder: Path | str) -> Batch:
    """Return the batch in a folder, complete or not.

    Args:
        folder: The folder of the batch.

    Raises:
        InputError: If the folder holds no batch.
    """
    kept = BatchFolder(Path(folder))

    return _as_it_stands(kept, kept.read())


def planned(told: Mapping[str, Any]) -> tuple[Plan, tuple[Configuration, ...]]:
    """Return the plan and the configurations in a batch's ``plan.json``."""
    plan = Plan(told["plan"])
    samples = told.get("samples")
    if samples is None:
        return plan, plan.configurations()

    return plan, plan.samples(samples, with_seeds=bool(told.get("seeds_by_sample")))


def _as_it_stands(folder: BatchFolder, told: Mapping[str, Any]) -> Batch:
    plan, configurations = planned(told)
    runs = [
        BatchRun(f"{each.name}/seed-{seed}", each, seed)
        for each in configurations
        for seed in each.seeds or plan.seeds
    ]
    summaries = folder.summaries([each.name for each in runs])
    failures = folder.failures()
    found = tuple(
        _judged(run, summary, failures.get(run.name))
        for run, summary in zip(runs, summaries, strict=True)
    )
    ledger = folder.path / LEDGER_NAME
    spent = Ledger(ledger).look() if ledger.exists() else None

    return Batch(
        folder.path,
        plan,
        found,
        {} if spent is None else {"calls": spent.calls, "tokens": spent.tokens},
    )


def _numbers(row: Mapping[str, Any], others: set[str]) -> Iterator[str]:
    """Yield the columns of a row that hold no text, except some."""
    for name, value in row.items():
        if name not in others and not isinstance(value, str):
            yield name


def _judged(run: BatchRun, summary: Mapping[str, Any] | None, failure: str | None) -> BatchRun:
    if summary is not None and "results" in summary:
        return replace(run, status="complete")
    if failure is not None:
        return replace(run, status="failed", error=failure)

    return run if summary is None else replace(run, status="stopped")


def _results_of(parts: Iterable[_Part]) -> pl.DataFrame:
    return table_of(
        [
            run_row({**head, "status": run.status, "error": run.error}, parameters, results)
            for run, head, parameters, results in parts
        ]
    )


def _rounds_of(parts: Iterable[_Part]) -> pl.DataFrame:
    return table_of(
        [
            row
            for _, head, parameters, results in parts
            for row in round_rows(head, parameters, results)
        ]
    )


def _carried_out(
    folder: BatchFolder, told: Mapping[str, Any], session: str, how: Carrying
) -> Batch:
    """Carry out the rest of a batch, and write its tables, even after an interruption."""
    folder.cut_rows()
    # failed runs are tried again
    folder.note_failures({})
    observer = how.observer or BatchObserver()
    done = _as_it_stands(folder, told)
    observer.started(done.runs)
    ledger = _ledger(folder, done.plan, told)
    try:
        with (
            how.opened() as (executor, at_a_time),
            Door(
                folder, session, _for_all(told, how, ledger), executor, at_a_time, observer
            ) as door,
        ):
            while True:
                _carry_out_rest(door, done)
                if how.grow is None:
                    break
                more = how.grow(_as_it_stands(folder, told))
                if not more:
                    break
                told = {**told, **more}
                folder.write({**told, "plan": done.plan.to_dict()})
                done = _as_it_stands(folder, told)
                observer.started(done.runs)
    finally:
        done = _as_it_stands(folder, told)
        done.write()

    return done


def _for_all(told: Mapping[str, Any], how: Carrying, ledger: Ledger | None) -> dict[str, Any]:
    """Return the settings that all runs share, for the processes that carry them out."""
    return {
        "keep": told.get("keep", LOGS),
        "checkpoint_every": how.checkpoint_every,
        "hosts": list(how.hosts),
        "budget": None if ledger is None else told["plan"].get("budget", {}),
    }


def _carry_out_rest(door: Door, batch: Batch) -> None:
    left = [each for each in batch.runs if each.status not in (COMPLETE, FAILED)]
    plan = batch.plan
    door.carry_out(
        left,
        {each.name: plan.options(each.configuration, each.seed).to_config() for each in left},
    )


def _ledger(folder: BatchFolder, plan: Plan, told: Mapping[str, Any]) -> Ledger | None:
    if not asks_a_model(plan):
        return None

    ledger = Ledger(folder.path / LEDGER_NAME, **told["plan"].get("budget", {}))
    ledger.take_up()

    return ledger

"""Carrying out a plan: a folder for every run, several at a time, and one table of all."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import polars as pl

from prism import __version__
from prism.errors import InputError
from prism.runs._checkpoints import DEFAULT_SECONDS_BETWEEN
from prism.runs._config import require_unchanged
from prism.runs._ledger import MOST_SHARERS, Ledger
from prism.science._batch_crew import COMPLETE, FAILED, Crew, Watcher
from prism.science._batch_folder import LEDGER_NAME, PLAN_NAME, BatchFolder
from prism.science._batch_tables import (
    is_of_feed,
    measure_run,
    round_rows,
    run_row,
    table_of,
    with_measures,
    write_tables,
)
from prism.science._plan import Configuration, Plan
from prism.social._presets import DEFAULT_PRESET

BatchStatus = Literal["complete", "failed", "stopped", "not begun"]

_logger = logging.getLogger("prism.science")


@dataclass(frozen=True, slots=True)
class BatchRun:
    """One run of a batch.

    Args:
        name: What it is called: its configuration and seed, which is its folder, too.
        configuration: Its configuration.
        seed: Seed of every random number.
        status: How far it is: ``complete``, ``failed``, ``stopped`` if it can be resumed, or
            ``not begun``.
        error: Why it failed, if it did.
    """

    name: str
    configuration: Configuration
    seed: int
    status: BatchStatus = "not begun"
    error: str | None = None


class BatchObserver:
    """What a batch says while it goes on. This one logs it to ``prism.science``."""

    def started(self, runs: Sequence[BatchRun]) -> None:
        """Receive all runs, with how far each is, before the first one begins or is resumed."""

    def round_ended(self, run: BatchRun, rounds: int) -> None:
        """Receive a run and how many rounds it has made."""

    def run_ended(self, run: BatchRun) -> None:
        """Receive a run that has ended, or was stopped."""
        level = logging.WARNING if run.status == FAILED else logging.INFO
        _logger.log(level, "%s: %s", run.name, run.error or run.status)

    def note(self, message: str) -> None:
        """Receive what is good to know."""
        _logger.info(message)

    def warn(self, run: BatchRun, message: str) -> None:
        """Receive what went wrong in a run and was dealt with."""
        _logger.warning("%s: %s", run.name, message)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch in its folder.

    Args:
        folder: Its folder.
        plan: Its plan.
        runs: Its runs, in the order of the plan.
        spent: What its models have cost: ``calls`` and ``tokens``; empty where none was asked.
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
        """Whether every run has come to its end."""
        return all(each.status == COMPLETE for each in self.runs)

    def results(self) -> pl.DataFrame:
        """Return one row a run: parameters, status, totals, and measures in the end.

        Measures are those of the world in the last round; for runs of the feed those of
        `prism.analysis.run_measures` besides.

        Raises:
            MissingExtraError: If polars is not installed.
            InputError: If what a run left is damaged.
        """
        return table_of(
            [
                run_row({**head, "status": run.status, "error": run.error}, parameters, results)
                for run, head, parameters, results in self._parts()
            ]
        )

    def rounds(self) -> pl.DataFrame:
        """Return one row a run and round: parameters, states, counts and measures.

        Raises:
            MissingExtraError: If polars is not installed.
            InputError: If what a run left is damaged.
        """
        return table_of(
            [
                row
                for _, head, parameters, results in self._parts()
                for row in round_rows(head, parameters, results)
            ]
        )

    def measures(self) -> list[str]:
        """Return the columns of ``results`` that are measures of the world.

        Raises:
            InputError: If what a run left is damaged.
        """
        return self._outcomes()[0]

    def outcomes(self) -> list[str]:
        """Return the columns of ``results`` that tell what came of the runs: measures, then totals.

        Raises:
            InputError: If what a run left is damaged.
        """
        measures, totals = self._outcomes()
        return [*measures, *totals]

    def write(self) -> None:
        """Write both tables into the folder, as CSV and as Parquet.

        Raises:
            OSError: If that fails.
        """
        write_tables(self.folder, {"results": self.results(), "rounds": self.rounds()})

    def _outcomes(self) -> tuple[list[str], list[str]]:
        measures: dict[str, None] = {}
        totals: dict[str, None] = {}
        for _, _, parameters, results in self._parts():
            own = set(run_row({}, parameters, {}))
            without = {**results, "rounds": (), "measures": {}}
            totals |= dict.fromkeys(_numbers(run_row({}, parameters, without), own))
            measures |= dict.fromkeys(_numbers(run_row({}, parameters, results), own))

        return [name for name in measures if name not in totals], list(totals)

    def _parts(
        self,
    ) -> Iterator[tuple[BatchRun, dict[str, Any], Mapping[str, Any], Mapping[str, Any]]]:
        """Yield each run, what identifies it, its parameters, and what came of it."""
        of_feed = self._of_feed() if self.plan.is_of_feed else {}
        summaries = BatchFolder(self.folder).summaries([each.name for each in self.runs])
        for run, summary in zip(self.runs, summaries, strict=True):
            head = {
                "run": run.name,
                "configuration": run.configuration.name,
                "arm": run.configuration.arm,
                "seed": run.seed,
            }
            config = {} if summary is None else summary["config"]
            sizes = {key: config[key] for key in ("agents", "rounds", "ticks_per_round") if config}
            parameters = of_feed.get(run.configuration.name) or {
                **run.configuration.parameters,
                **config.get("parameters", {}),
            }
            results = {} if summary is None else summary.get("results", {})
            if is_of_feed(results):
                results = with_measures(results, measure_run(self.folder, run.name))
            yield run, {**head, **sizes}, parameters, results

    def _of_feed(self) -> dict[str, dict[str, Any]]:
        """Return the feed's preset and parameters by configuration: what any configuration says."""
        configurations = {run.configuration.name: run.configuration for run in self.runs}
        found = {name: self.plan.feed_parameters(each) for name, each in configurations.items()}
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
    workers: int | None = None,
    checkpoint_every: float = DEFAULT_SECONDS_BETWEEN,
    observer: BatchObserver | None = None,
) -> Batch:
    """Carry out a plan: every configuration with every seed, each in a process that is free.

    The folder then holds ``plan.json``, a folder for each run (``CONFIGURATION/seed-N``), and the
    tables ``results`` (one row a run) and ``rounds`` (one row a run and round), as CSV and Parquet.
    A run that fails is a row that says so.

    Args:
        plan: The plan, or its file.
        folder: Where to keep it. A folder that holds a batch is refused.
        workers: How many processes; by default as many as there are processors.
        checkpoint_every: A round that ends so many seconds after the last checkpoint of its run
            gets one; 0 for every round.
        observer: What to tell of the batch.

    Raises:
        InputError: If a run of the plan is impossible; before any has begun.
        KeyboardInterrupt: After an interruption, once the rounds under way have ended; it can be
            resumed. A second interruption ends it at once.
    """
    given = plan if isinstance(plan, Plan) else Plan.from_file(plan)
    return begin_batch(given, None, {}, Path(folder), workers, checkpoint_every, observer)


def begin_batch(
    plan: Plan,
    configurations: Sequence[Configuration] | None,
    more: Mapping[str, Any],
    path: Path,
    workers: int | None,
    checkpoint_every: float,
    observer: BatchObserver | None,
) -> Batch:
    """Carry out a plan, or configurations of it that are sampled.

    Args:
        plan: The plan.
        configurations: Its configurations; None for all combinations.
        more: What else ``plan.json`` is to hold.
        path: The folder.
        workers: How many processes.
        checkpoint_every: Seconds between checkpoints of a run.
        observer: What to tell of the batch.
    """
    number = _number_of(workers)
    folder = BatchFolder(path)
    folder.require_free()
    plan.check(configurations or ())
    found = plan.configurations() if configurations is None else configurations
    with folder.locked() as lock:
        folder.begin(plan.to_dict(), plan.inputs(), more)
        work = _Work(folder, plan, found, lock, number, checkpoint_every, observer)
        return work.carry_out()


def resume_batch(
    folder: Path | str,
    *,
    workers: int | None = None,
    hosts: Sequence[str] = (),
    checkpoint_every: float = DEFAULT_SECONDS_BETWEEN,
    observer: BatchObserver | None = None,
) -> Batch:
    """Go on with a batch that was stopped, in whatever way, to its end.

    Runs that are complete stay as they are, others go on from their checkpoints, and those that
    failed are tried again. Tables and logs are the same, to the byte, as those of a batch that was
    never stopped; unless a model decides.

    Args:
        folder: Where it is kept.
        workers: How many processes; by default as many as there are processors.
        hosts: Addresses of its servers with names and passwords, which no batch keeps.
        checkpoint_every: Seconds between checkpoints of a run.
        observer: What to tell of the batch.

    Raises:
        InputError: If the folder holds no batch, another version of prism began it, another process
            carries it out, or a file that it reads has changed.
    """
    kept = BatchFolder(Path(folder))
    told = kept.read()
    plan, configurations = planned(told)
    if told["prism"] != __version__:
        problem = f"was begun by prism {told['prism']}, and this is {__version__}: resume it there"
        raise InputError(problem, path=kept.path)

    number = _number_of(workers)
    require_unchanged(told["inputs"], plan.inputs(), kept.path / PLAN_NAME)
    with kept.locked() as lock:
        work = _Work(
            kept, plan, configurations, lock, number, checkpoint_every, observer, tuple(hosts)
        )
        return work.carry_out()


def read_batch(folder: Path | str) -> Batch:
    """Return a batch as it stands in its folder, complete or not.

    Args:
        folder: Where it is kept.

    Raises:
        InputError: If the folder holds no batch.
    """
    kept = BatchFolder(Path(folder))
    plan, configurations = planned(kept.read())

    return _as_it_stands(kept, plan, configurations)


def planned(told: Mapping[str, Any]) -> tuple[Plan, tuple[Configuration, ...]]:
    """Return the plan and the configurations of a batch, as its ``plan.json`` has them."""
    plan = Plan(told["plan"])
    samples = told.get("samples")
    if samples is None:
        return plan, plan.configurations()

    return plan, plan.samples(samples)


def _as_it_stands(
    folder: BatchFolder, plan: Plan, configurations: Sequence[Configuration]
) -> Batch:
    runs = [
        BatchRun(f"{each.name}/seed-{seed}", each, seed)
        for each in configurations
        for seed in plan.seeds
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
    """Yield the columns of a row that hold no text, but for some."""
    for name, value in row.items():
        if name not in others and not isinstance(value, str):
            yield name


def _judged(run: BatchRun, summary: Mapping[str, Any] | None, failure: str | None) -> BatchRun:
    if summary is not None and "results" in summary:
        return replace(run, status="complete")
    if failure is not None:
        return replace(run, status="failed", error=failure)

    return run if summary is None else replace(run, status="stopped")


@dataclass(slots=True)
class _Work:
    """A batch that is being carried out."""

    folder: BatchFolder
    plan: Plan
    configurations: Sequence[Configuration]
    lock: int
    workers: int
    checkpoint_every: float
    observer: BatchObserver | None
    hosts: tuple[str, ...] = ()

    def carry_out(self) -> Batch:
        """Carry out what is left of it, and write its tables, also after an interruption."""
        # those that failed are tried again
        self.folder.note_failures({})
        runs = {each.name: each for each in self._stand().runs}
        observer = self.observer or BatchObserver()
        observer.started(tuple(runs.values()))
        left = [each for each in runs.values() if each.status != COMPLETE]
        try:
            self._crew(runs, observer).carry_out({each.name: self._job(each) for each in left})
        finally:
            self._stand().write()

        return self._stand()

    def _stand(self) -> Batch:
        return _as_it_stands(self.folder, self.plan, self.configurations)

    def _crew(self, runs: Mapping[str, BatchRun], observer: BatchObserver) -> Crew:
        failures: dict[str, str] = {}

        def run_ended(name: str, status: str, error: str | None) -> None:
            if status == FAILED:
                failures[name] = error or ""
                self.folder.note_failures(failures)
            known = cast(BatchStatus, status)
            observer.run_ended(replace(runs[name], status=known, error=error))

        watcher = Watcher(
            lambda name, rounds: observer.round_ended(runs[name], rounds),
            run_ended,
            lambda name, message: observer.warn(runs[name], message),
            observer.note,
        )
        ledger = self._ledger()
        how = {
            "plan": str(self.folder.path / PLAN_NAME),
            "checkpoint_every": self.checkpoint_every,
            "hosts": list(self.hosts),
            "ledger": None if ledger is None else str(ledger.path),
            "budget": dict(self.plan.budget),
        }

        return Crew(how, self.workers, watcher, ledger, self.lock)

    def _ledger(self) -> Ledger | None:
        if not self.plan.asks_a_model:
            return None

        ledger = Ledger(self.folder.path / LEDGER_NAME, **self.plan.budget)
        ledger.take_up()

        return ledger

    def _job(self, run: BatchRun) -> dict[str, Any]:
        config = self.plan.options(run.configuration, run.seed).to_config()
        path = self.folder.path / run.name
        return {"run": {"folder": str(path), "name": run.name, "config": config}}


def _number_of(workers: int | None) -> int:
    if workers is None:
        known = getattr(os, "sched_getaffinity", None)
        return len(known(0)) if known is not None else os.cpu_count() or 1
    if not 1 <= workers <= MOST_SHARERS:
        raise InputError(f"must be from 1 to {MOST_SHARERS}, got {workers}", field="workers")

    return workers

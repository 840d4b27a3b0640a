"""Carry out a plan: several runs at a time, a folder for each, and one table of all."""

from __future__ import annotations

import logging
import os
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from loky import get_reusable_executor

from prism.errors import InputError
from prism.runs import Observer
from prism.runs.dry_run import Estimate, estimate
from prism.science._batch_folder import BatchFolder, Keep, Row
from prism.science._carry import carry, prepare_worker, task_of, without_folder
from prism.science._plan import Configuration, Plan, inputs_of
from prism.science.batch_tables import Batch, BatchRun, final_measures, flat, run_row

_MOST_AT_A_TIME = 256
"""Most runs that an executor gets at a time."""

_COMPUTED_LATER = ("share_", "model_")
"""Beginnings of measures that a run of one round need not have."""

_MOST_DEATHS = 2
"""How often a run is resumed after its process has died, before it counts as failed."""

_logger = logging.getLogger("prism.science")


class BatchObserver:
    """What a batch reports while it runs. This one logs it to ``prism.science``."""

    def started(self, runs: Sequence[BatchRun]) -> None:
        """Receive all runs with their status, before the first one begins or resumes."""

    def run_ended(self, run: BatchRun) -> None:
        """Receive a run that has ended."""
        level = logging.WARNING if run.status == "failed" else logging.INFO
        _logger.log(level, "%s: %s", run.name, run.error or run.status)

    def note(self, message: str) -> None:
        """Receive a remark."""
        _logger.info(message)

    def warn(self, run: BatchRun, message: str) -> None:
        """Receive a problem that was dealt with."""
        _logger.warning("%s: %s", run.name, message)


@dataclass(frozen=True, slots=True)
class Carrying:
    """How the runs of a batch are carried out; this does not change their results.

    Args:
        workers: Number of processes. Defaults to the number of processors.
        executor: Carries out the runs instead of processes on this machine.
        observer: Receives the progress of the batch.

    Raises:
        InputError: If there are workers beside an executor.
    """

    workers: int | None = None
    executor: Executor | None = None
    observer: BatchObserver = field(default_factory=BatchObserver)

    def __post_init__(self) -> None:
        """Refuse a number of processes that nothing would heed."""
        if self.workers is not None and self.executor is not None:
            raise InputError("belongs to the executor: leave it out", field="workers")

    @property
    def at_a_time(self) -> int:
        """The number of runs to submit at a time."""
        if self.executor is not None:
            return _MOST_AT_A_TIME
        affinity = getattr(os, "sched_getaffinity", None)
        return self.workers or (len(affinity(0)) if affinity is not None else os.cpu_count() or 1)

    def pool(self) -> Executor:
        """Return the executor: that of the caller, or processes, new ones if some have died."""
        if self.executor is not None:
            return self.executor
        # unlike those of multiprocessing, its processes do not run the user's script again
        pool: Executor = get_reusable_executor(
            self.at_a_time, initializer=prepare_worker, initargs=(os.getpid(),)
        )
        return pool

    def close(self, *, at_once: bool = False) -> None:
        """End the processes."""
        if self.executor is None:
            self.pool().shutdown(kill_workers=at_once)  # type: ignore[call-arg]


def batch(
    plan: Plan | Path | str,
    folder: Path | str,
    *,
    keep: Keep = "logs",
    workers: int | None = None,
    executor: Executor | None = None,
    observer: BatchObserver | None = None,
) -> Batch:
    """Carry out a plan: run every configuration with every seed, several at a time.

    The folder then holds ``plan.json``, a folder for each run (``CONFIGURATION/seed-N``),
    ``runs.jsonl`` with what each of them came to, and the tables ``results`` (one row a run) and
    ``rounds`` (one row a run and round), as CSV and Parquet. A run that fails has a row that says
    so, and its traceback is in its folder.

    Args:
        plan: The plan, or its file.
        folder: Where to keep it. A folder that holds a batch is refused.
        keep: What to keep of each run: ``logs`` for a folder with everything, or ``tables`` for
            only its part of both tables, which takes less time. A run without a folder starts over
            if the batch is stopped while it is running.
        workers: Number of processes. Defaults to the number of processors.
        executor: Carries out the runs instead of local processes, on this machine or on others,
            which must all see the folder. Every run has the same bytes as one made here.
        observer: Receives the progress of the batch.

    Raises:
        InputError: If a run of the plan is impossible. This is checked before any run begins.
        KeyboardInterrupt: After an interruption, which ends the processes at once; with an executor
            of yours, once the runs under way have ended. The batch can then be resumed.
    """
    how = Carrying(workers, executor, observer or BatchObserver())
    return begin_batch(Plan.of(plan), Path(folder), how, keep=keep)


def estimate_batch(plan: Plan | Path | str) -> Estimate:
    """Estimate how often the runs of a plan will ask their models and what that costs.

    No model is asked. A policy runs a few rounds of each configuration with its first seed.

    Args:
        plan: The plan, or its file.

    Raises:
        InputError: If no run asks a model, or a run is impossible.
    """
    plan = Plan.of(plan)
    seeds = plan.seeds
    runs = [plan.options(each, seeds[0]) for each in plan.configurations()]
    return estimate(*runs, times=[len(seeds)] * len(runs))


def begin_batch(
    plan: Plan,
    path: Path,
    how: Carrying,
    *,
    keep: Keep = "logs",
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
    folder = BatchFolder(path)
    folder.require_free()
    described = {"keep": keep, **more} | ({} if samples is None else {"samples": list(samples)})
    configurations = _configurations(plan, described)
    plan.check(configurations)
    _require_measures(plan, configurations[0])
    folder.begin({"plan": dict(plan.data), "inputs": inputs_of(plan), **described})
    return _carried_out(folder, plan, how)


def _require_measures(plan: Plan, configuration: Configuration) -> None:
    """Refuse names of measures that one round of a run without a model does not have.

    States, fallbacks and what models cost are only known at a run's end.
    """
    targets = [each["measure"] for each in plan.data.get("target", ())]
    wanted = {"measures": plan.data.get("measures", ()), "target": targets}
    if not any(wanted.values()):
        return
    run = plan.options(configuration, plan.seeds[0])
    tried = run.replace(rounds=1, reasoner=None, writer=None, treatments=())
    try:
        done = without_folder(tried, Observer())
    except Exception:  # of the world's own code, which the row of each run will tell
        return
    results = done["results"]
    row = run_row({}, done["config"]["parameters"], results)
    measured = {*row, *flat(results["rounds"][0]), *(f"{name}_mean" for name in row)}
    for key, names in wanted.items():
        for name in names:
            if name not in measured and "." not in name and not name.startswith(_COMPUTED_LATER):
                measures = ", ".join(final_measures(results) or row)
                raise plan.error(f"has no measure {name!r}; there are {measures}", key)


def resume_batch(
    folder: Path | str,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    observer: BatchObserver | None = None,
) -> Batch:
    """Resume a batch, an analysis or a fit that was stopped, however it was stopped.

    Complete runs stay as they are, others continue, and failed runs are tried again. Tables and
    logs are the same, to the byte, as those of a batch that was never stopped.

    Args:
        folder: The folder of the batch.
        workers: Number of processes. Defaults to the number of processors.
        executor: As for `batch`; it may differ from the one that began the batch.
        observer: Receives the progress of the batch.

    Raises:
        InputError: If the folder holds no batch, or another process is carrying it out.
    """
    kept = BatchFolder(Path(folder))
    described = kept.read()
    plan = Plan(described["plan"])
    how = Carrying(workers, executor, observer or BatchObserver())
    for name, now in inputs_of(plan).items():
        if described["inputs"].get(name) != now:
            how.observer.note(f"{name}: has changed since the batch began")

    return _carried_out(kept, plan, how)


def read_batch(folder: Path | str) -> Batch:
    """Return the batch in a folder, complete or not.

    Args:
        folder: The folder of the batch.

    Raises:
        InputError: If the folder holds no batch.
    """
    kept = BatchFolder(Path(folder))
    return _state(kept, Plan(kept.read()["plan"]))


def _configurations(plan: Plan, described: Mapping[str, Any]) -> tuple[Configuration, ...]:
    samples = described.get("samples")
    if samples is None:
        return plan.configurations()
    return plan.samples(samples, with_seeds=bool(described.get("seeds_by_sample")))


def _state(folder: BatchFolder, plan: Plan) -> Batch:
    """Return a batch with the state of each of its runs."""
    rows = folder.rows()
    runs = (
        BatchRun(f"{each.name}/seed-{seed}", each, seed)
        for each in _configurations(plan, folder.read())
        for seed in each.seeds or plan.seeds
    )
    return Batch(folder.path, plan, tuple(_ended(run, rows.get(run.name)) for run in runs))


def _ended(run: BatchRun, row: Row | None) -> BatchRun:
    """Return a run with its status."""
    if row is None:
        return run
    if "error" in row:
        return replace(run, status="failed", error=row["error"], row=row)
    return replace(run, status="complete", row=row)


def _carried_out(folder: BatchFolder, plan: Plan, how: Carrying) -> Batch:
    """Carry out the rest of a batch, and write its tables, even after an interruption."""
    with folder.held():
        # failed runs are tried again, and a row that a killed process left incomplete is cut off
        folder.replace_rows([row for row in folder.rows().values() if "results" in row])
        batch = _state(folder, plan)
        how.observer.started(batch.runs)
        try:
            _Driver(folder, batch, how).carry_out()
        finally:
            how.close()
            batch = _state(folder, plan)
            # in the order of the plan, whichever ended first
            folder.replace_rows([run.row for run in batch.runs if run.row])
            batch.write()

    return batch


class _Driver:
    """Submits the runs of a batch to an executor, and receives what they come to.

    Args:
        folder: The folder of the batch.
        batch: The batch.
        how: How it is carried out.
    """

    def __init__(self, folder: BatchFolder, batch: Batch, how: Carrying) -> None:
        self._folder, self._batch, self._how = folder, batch, how
        keep = folder.read().get("keep", "logs")
        self._task = task_of(folder.path, keep)
        self._waiting = deque(run for run in batch.runs if not run.row)
        self._under_way: dict[Future[dict[str, Any]], BatchRun] = {}
        self._deaths = Counter[str]()

    def carry_out(self) -> None:
        """Carry out all runs to their ends.

        Raises:
            InputError: If the executor broke.
            KeyboardInterrupt: After an interruption.
        """
        while self._waiting or self._under_way:
            try:
                self._submit()
                self._receive()
            except BrokenExecutor as error:
                self._lose(str(error).partition("\n")[0])
            except KeyboardInterrupt:
                self._stop()
                raise

    def _submit(self) -> None:
        """Submit as many runs as go on at a time."""
        pool, plan = self._how.pool(), self._batch.plan
        while self._waiting and len(self._under_way) < self._at_a_time:
            run = self._waiting[0]
            options = plan.options(run.configuration, run.seed, of=len(self._batch.runs))
            future = pool.submit(carry, self._task, run.name, options.to_config())
            self._under_way[future] = self._waiting.popleft()

    @property
    def _at_a_time(self) -> int:
        # a run whose process has died goes alone, so that it takes no other with it
        near = (*self._under_way.values(), self._waiting[0])
        return 1 if any(self._deaths[run.name] for run in near) else self._how.at_a_time

    def _receive(self) -> None:
        """Wait until a run has ended, and keep what it came to."""
        ended, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
        for future in ended:
            try:
                row = future.result()
            except BrokenExecutor:
                raise
            except Exception as error:  # whatever an executor raises if it has lost a worker
                run = self._under_way.pop(future)
                self._die(run, f"was lost ({type(error).__name__}: {error})")
            else:
                self._keep(self._under_way.pop(future), row)

    def _keep(self, run: BatchRun, row: dict[str, Any]) -> None:
        for warning in row.pop("warnings"):
            self._how.observer.warn(run, warning)
        self._folder.add_row(row)
        self._how.observer.run_ended(_ended(run, row))

    def _lose(self, problem: str) -> None:
        """Take back the runs of an executor that broke."""
        if self._how.executor is not None:
            problem = f"the executor broke ({problem}): resume the batch"
            raise InputError(problem, path=self._folder.path) from None
        under_way = [*self._under_way.values()]
        self._under_way.clear()
        for run in under_way:
            self._die(run, "died or was killed")

    def _die(self, run: BatchRun, how: str) -> None:
        """Let another process resume a run whose process died, or count it as failed."""
        self._deaths[run.name] += 1
        if self._deaths[run.name] > _MOST_DEATHS:
            problem = f"its process {how}, like the {_MOST_DEATHS} before it that resumed the run"
            self._keep(run, {"run": run.name, "error": problem, "warnings": []})
        else:
            self._how.observer.warn(run, f"its process {how}: the run is resumed")
            self._waiting.append(run)

    def _stop(self) -> None:
        """End the processes; an executor of the caller ends what it has begun."""
        if self._how.executor is None:
            self._how.close(at_once=True)
        else:
            wait([future for future in self._under_way if not future.cancel()])

"""Batches on executors: the same bytes, whoever carries them out, and what becomes of lost work."""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.science import (
    BatchObserver,
    BatchRun,
    Plan,
    batch,
    resume_batch,
)
from tests.kit.kept import tree
from tests.kit.waiting import wait_until

SMALL: dict[str, Any] = {"world": "rumour", "agents": 20, "rounds": 3, "seeds": 3}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a batch that processes of this one have carried out."""
    return batch(Plan(SMALL), tmp_path_factory.mktemp("whole") / "out", workers=1).folder


class Later(Executor):
    """Runs its tasks one by one when the last has come, in the order opposite to theirs.

    Args:
        spoil: Does something instead of a task, by its number from 0; or returns whether it has.
    """

    def __init__(self, tasks: int, spoil: Callable[[int, Any], bool] = lambda *_: False) -> None:
        self._left, self._spoil = tasks, spoil
        self._tasks: list[tuple[Future[Any], Any]] = []
        self.count = 0

    def submit(self, task: Any, /, *args: Any, **more: Any) -> Any:
        future: Future[Any] = Future()
        self._tasks.append((future, lambda: task(*args, **more)))
        if len(self._tasks) >= self._left:
            self._left = 0
            threading.Thread(target=self._run, args=(self._tasks[::-1],)).start()
            self._tasks = []
        return future

    def _run(self, tasks: list[tuple[Future[Any], Any]]) -> None:
        for future, task in tasks:
            self.count += 1
            if not self._spoil(self.count - 1, future):
                future.set_result(task())


class Heard(BatchObserver):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, run: BatchRun, message: str) -> None:
        self.warnings.append(f"{run.name}: {message}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "executor", [ThreadPoolExecutor, partial(ProcessPoolExecutor, mp_context=get_context("spawn"))]
)
def test_threads_and_processes_write_the_same_bytes(
    whole: Path, tmp_path: Path, executor: Callable[[int], Executor]
) -> None:
    """What is sent to other processes is a function of prism with plain data."""
    with executor(2) as pool:
        found = batch(Plan(SMALL), tmp_path / "out", executor=pool)
    assert tree(found.folder) == tree(whole)


@pytest.mark.slow
def test_a_task_that_is_lost_is_sent_again(whole: Path, tmp_path: Path) -> None:
    """In whatever order tasks come back: one whose worker was lost is resumed by another."""

    def lose_the_first(number: int, future: Future[Any]) -> bool:
        if number == 0:
            future.set_exception(ConnectionError("worker is gone"))
        return number == 0

    heard = Heard()
    found = batch(Plan(SMALL), tmp_path / "out", executor=Later(3, lose_the_first), observer=heard)
    assert tree(found.folder) == tree(whole)
    told = "all/seed-2: its process was lost (ConnectionError: worker is gone)"
    assert heard.warnings == [f"{told}: the run is resumed"]


@pytest.mark.slow
def test_an_executor_that_breaks_stops_the_batch(whole: Path, tmp_path: Path) -> None:
    """What it has done is kept, and another one goes on to the same bytes."""

    def break_after_one(number: int, future: Future[Any]) -> bool:
        if number:
            future.set_exception(BrokenExecutor("all died"))
        return bool(number)

    with pytest.raises(InputError, match=r"the executor broke \(all died\): resume the batch"):
        batch(Plan(SMALL), tmp_path / "out", executor=Later(3, break_after_one))
    with ThreadPoolExecutor(1) as threads:
        found = resume_batch(tmp_path / "out", executor=threads)
    assert tree(found.folder) == tree(whole)


def test_the_executor_brings_its_own_workers(tmp_path: Path) -> None:
    """A number of workers beside it is refused before anything is written."""
    with ThreadPoolExecutor(1) as threads, pytest.raises(InputError, match="leave it out"):
        batch(Plan(SMALL), tmp_path / "out", executor=threads, workers=2)
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_dask_cluster_that_loses_a_worker_writes_the_same_bytes(tmp_path: Path) -> None:
    """Of two real workers one is killed once runs have begun; another resumes its run."""
    from distributed import Client, LocalCluster

    plan = Plan({"world": "rumour", "agents": 300, "rounds": 30, "seeds": 6})
    alone = batch(plan, tmp_path / "alone", workers=1)

    def kill(process: int) -> None:
        wait_until(lambda: bool(list((tmp_path / "out").glob("*/seed-*"))))
        os.kill(process, signal.SIGKILL)

    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        first = next(iter(cluster.workers.values()))
        killer = threading.Thread(target=kill, args=(first.pid,))
        killer.start()
        found = batch(plan, tmp_path / "out", executor=client.get_executor(pure=False))
        killer.join()
    assert found.is_complete
    assert tree(found.folder) == tree(alone.folder)

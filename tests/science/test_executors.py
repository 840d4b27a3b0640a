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
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("polars")

from prism.errors import InputError
from prism.science import (
    BatchObserver,
    BatchRun,
    Plan,
    batch,
    fit,
    merge_batches,
    resume_batch,
)
from prism.science._batch_parts import Part
from tests.kit.commands import Prism
from tests.kit.dice import tree

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
def test_threads_write_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    """Any executor of this process may carry the runs out, each in a process of its own."""
    with ThreadPoolExecutor(2) as threads:
        found = batch(Plan(SMALL), tmp_path / "out", executor=threads)
    assert tree(found.folder) == tree(whole)


@pytest.mark.slow
def test_processes_write_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    """What is sent to other processes is a function of prism with plain data."""
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        found = batch(Plan(SMALL), tmp_path / "out", executor=processes)
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


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"prism": "0.0"}, "has prism .*, not 0.0: install the same version"),
        ({"folder": "nowhere"}, "cannot see the batch's folder"),
        ({"session": "of another batch"}, "held by nobody"),
    ],
)
@pytest.mark.sampled(3)
def test_a_machine_that_cannot_carry_the_batch_out_says_why(
    tmp_path: Path, changed: dict[str, str], problem: str
) -> None:
    """Another version, a folder that is not seen, a lock that does not reach it."""

    class Elsewhere(ThreadPoolExecutor):
        def submit(self, task: Any, /, how: Any, run: Any) -> Any:
            return super().submit(task, {**how, **changed}, run)

    with Elsewhere(1) as machine, pytest.raises(InputError, match=problem):
        batch(Plan(SMALL), tmp_path / "out", executor=machine)


def test_the_executor_brings_its_own_workers(tmp_path: Path) -> None:
    """A number of workers beside it is refused before anything is written."""
    with ThreadPoolExecutor(1) as threads, pytest.raises(InputError, match="leave it out"):
        batch(Plan(SMALL), tmp_path / "out", executor=threads, workers=2)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_process_without_work_ends_and_is_replaced(tmp_path: Path) -> None:
    """A worker does not keep a process for ever; a run that finds it ended gets another one."""

    class Impatient(ThreadPoolExecutor):
        def submit(self, task: Any, /, how: Any, run: Any) -> Any:
            return super().submit(task, {**how, "seconds_idle": 0.0}, run)

    with Impatient(1) as threads:
        found = batch(Plan({**SMALL, "seeds": 2}), tmp_path / "out", executor=threads)
    assert found.is_complete


@pytest.mark.slow
def test_a_fit_goes_through_the_same_door(tmp_path: Path) -> None:
    """An executor carries out each generation of a fit."""
    plan = Plan(
        {
            **SMALL,
            "seeds": 1,
            "bounds": {"tiring": [0.1, 0.9]},
            "target": [{"measure": "reached", "value": 0.3, "spread": 0.05}],
        }
    )
    with ThreadPoolExecutor(2) as threads:
        found = fit(plan, tmp_path / "out", samples=20, generations=2, executor=threads)
    assert found.is_complete
    assert len(found.points) == 30


def parts_of(plan: Plan, folder: Path, count: int, **options: Any) -> list[Path]:
    """Carry out each part of a batch by itself, in the wrong order."""
    return [
        batch(plan, folder / f"{number}", part=f"{number}/{count}", workers=1, **options).folder
        for number in range(count, 0, -1)
    ]


@pytest.mark.slow
def test_parts_come_to_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    """Two parts, carried out apart and merged in any order, are the batch as a whole."""
    parts = parts_of(Plan(SMALL), tmp_path, 2)
    assert [len(list(each.glob("*/seed-*"))) for each in parts] == [1, 2]
    merged = merge_batches(parts, tmp_path / "merged")
    assert merged.is_complete
    assert tree(merged.folder) == tree(whole)


@pytest.mark.slow
def test_parts_without_logs_come_to_the_same_tables(whole: Path, tmp_path: Path) -> None:
    """Rows of parts are merged, too."""
    merged = merge_batches(parts_of(Plan(SMALL), tmp_path, 2, keep="tables"), tmp_path / "merged")
    for name in ("results.csv", "rounds.csv"):
        assert (merged.folder / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.slow
def test_parts_that_do_not_fit_are_refused(whole: Path, tmp_path: Path) -> None:
    """A batch that is no part, a part that is missing or twice there, and one of another batch."""
    one, two = parts_of(Plan(SMALL), tmp_path, 2)[::-1]
    other = batch(Plan({**SMALL, "rounds": 2}), tmp_path / "other", part="2/2", workers=1).folder
    for parts, problem in (
        ([whole], "is not part of a batch"),
        ([two], "needs all parts: 1 missing"),
        ([one, one], "is part 1 of 2, which does not match"),
        ([one, other], "belongs to another batch"),
        ([], "needs all parts"),
    ):
        with pytest.raises(InputError, match=problem):
            merge_batches(parts, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("part", ["3/2", "0/2", "2", "a/b", "1/2/3"])
def test_a_part_is_one_of_several(part: str, tmp_path: Path) -> None:
    """Anything else is refused before anything is written."""
    with pytest.raises(InputError, match="must be K/N, such as 1/4"):
        batch(Plan(SMALL), tmp_path / "out", part=part)
    assert not (tmp_path / "out").exists()


def test_each_part_has_a_fixed_share_of_the_budget() -> None:
    """Shares add up to the whole, and one of nothing is refused."""
    shares = [Part(number, 4).budget({"max_calls": 10, "deadline": 3.0}) for number in (1, 2, 3, 4)]
    assert [each["max_calls"] for each in shares] == [3, 3, 2, 2]
    assert {each["deadline"] for each in shares} == {3.0}
    with pytest.raises(InputError, match="is 3, too few for 4 parts"):
        Part(1, 4).budget({"max_tokens": 3})


CLUSTER = """\
from concurrent.futures import ThreadPoolExecutor


def threads():
    return ThreadPoolExecutor(1)


def nothing():
    return None
"""


@pytest.mark.slow
def test_a_function_names_the_executor(whole: Path, prism: Prism) -> None:
    """``--on FILE.py:FUNCTION`` carries the batch out; what returns no executor is refused."""
    file = Path("cluster_of_mine.py")
    file.write_text(CLUSTER)
    Path("plan.toml").write_text('world = "rumour"\nagents = 20\nrounds = 3\nseeds = 3\n')
    done = prism("batch", "plan.toml", "--on", f"{file}:threads", "--out", "out")
    assert done.status == 0, done.err
    assert tree(Path("out", "all")) == tree(whole / "all")

    for named, said in (
        (f"{file}:nothing", "must return a concurrent.futures.Executor, got NoneType"),
        (f"{file}:missing", "has no attribute 'missing'"),
        ("nowhere.py:make", "--on names nowhere.py, but there is no such file"),
        ("mars", "--on must be one of dask:ADDRESS, ray:ADDRESS, FILE.py:FUNCTION, got 'mars'"),
    ):
        refused = prism("batch", "plan.toml", "--on", named, "--out", "o")
        assert refused.status == 2
        assert said in refused.err
    both = prism("batch", "plan.toml", "--on", "dask:x", "--workers", 2, "--out", "o")
    assert "--workers has no effect with --on" in both.err


@pytest.mark.slow
def test_parts_are_merged_by_a_command(prism: Prism) -> None:
    """``--part`` and ``prism merge`` come to the batch as a whole."""
    Path("plan.toml").write_text('world = "rumour"\nagents = 20\nrounds = 3\nseeds = 2\n')
    for number in (1, 2):
        assert (
            prism("batch", "plan.toml", "--part", f"{number}/2", "--out", f"p{number}").status == 0
        )
    merged = prism("merge", "p1", "p2", "--out", "all")
    assert merged.status == 0, merged.err
    assert "2 of 2 runs are complete" in merged.err + merged.out


@pytest.mark.slow
def test_dask_writes_the_same_bytes_though_a_worker_is_killed(tmp_path: Path) -> None:
    """A cluster of Dask loses a worker in the middle, and comes to the same folders."""
    distributed = pytest.importorskip("distributed")
    plan = Plan({"agents": 60, "rounds": 6, "seeds": 4})
    whole = batch(plan, tmp_path / "whole", workers=2).folder
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        killed: list[int] = []

        class Killer(BatchObserver):
            def run_ended(self, run: BatchRun) -> None:
                if not killed:
                    killed.extend(client.run(os.getpid).values())
                    os.kill(killed[0], signal.SIGKILL)

        executor = client.get_executor(pure=False)
        found = batch(plan, tmp_path / "out", executor=executor, observer=Killer())

    assert killed
    assert found.is_complete
    assert tree(found.folder) == tree(whole)

"""Batches: every run as it would be alone, in processes that may die, within one budget."""

import json
import os
import random
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import (
    Executor,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import nullcontext, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from subprocess import TimeoutExpired, run
from typing import Any

import duckdb
import pytest

from prism.errors import InputError
from prism.science import (
    Batch,
    BatchObserver,
    Plan,
    batch,
    read_batch,
    read_fit,
    read_sensitivity,
    resume_batch,
)
from prism.testing import Asked, FakeOllama
from tests.kit.commands import Prism
from tests.kit.kept import tree
from tests.kit.waiting import has_ended, wait_until

SMALL: dict[str, Any] = {
    "world": "rumour",
    "agents": 20,
    "rounds": 3,
    "seeds": 2,
    "vary": {"friends": [4, 6]},
}

PLAN: dict[str, Any] = {"prism": "0.1.0", "plan": SMALL, "inputs": {}}


@pytest.mark.parametrize(
    ("world", "wanted", "problem"),
    [
        ("rumour", {"measures": ["reahced"]}, "'measures': has no measure 'reahced'; .* reached"),
        ("feed", {"measures": ["views", "gini", "x"]}, "has no measure 'x'; there are .*gini"),
        ("rumour", {"target": ["reached", "much"]}, "'target': has no measure 'much'"),
        ("rumour", {"measures": ["reached_mean", "transitions", "friends", "share_spreader"]}, ""),
        ("broken.py:Broken", {"measures": ["x"]}, ""),
    ],
)
def test_an_unknown_measure_is_refused_before_the_first_run(
    world: str, wanted: dict[str, Any], problem: str, tmp_path: Path, monkeypatch: Any
) -> None:
    """The message names the measures; one of a world that fails, or of its end, is not refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text(
        "from prism.examples.rumour import Rumour\n\n"
        "class Broken(Rumour):\n    def round_begins(self):\n        1 / 0\n"
    )
    targets = [{"measure": name, "value": 1, "spread": 1} for name in wanted.get("target", ())]
    data = {"world": world, "agents": 20, "rounds": 2, **wanted}
    plan = Plan({**data, "target": targets} if targets else data)
    refused = pytest.raises(InputError, match=problem) if problem else nullcontext()
    with ThreadPoolExecutor(1) as threads, refused:
        batch(plan, "out", executor=threads)
    assert (tmp_path / "out").exists() is not bool(problem)


@pytest.mark.parametrize("content", [b"{]}\n", b"null\n", b"\xff\n"])
@pytest.mark.parametrize("name", ["plan.json", "runs.jsonl"])
def test_a_damaged_batch_is_refused_with_its_file(
    tmp_path: Path, name: str, content: bytes
) -> None:
    """What prism cannot have written is refused before a run begins."""
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}.*: is (not|damaged)"):
        resume_batch(tmp_path)


def test_a_batch_needs_an_empty_folder_or_one_of_its_kind(tmp_path: Path) -> None:
    """A file, and folders that hold anything else, are refused by name, and stay as they were."""
    (tmp_path / "thesis.tex").write_bytes(b"precious")
    with pytest.raises(InputError, match="tex: is a file, not a folder: choose another folder"):
        batch(Plan(SMALL), tmp_path / "thesis.tex")
    with pytest.raises(InputError, match=r"holds other files \(thesis.tex\)"):
        batch(Plan(SMALL), tmp_path)
    assert tree(tmp_path) == {"thesis.tex": b"precious"}
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    for read, what in ((read_fit, "a fit"), (read_sensitivity, "a sensitivity analysis")):
        with pytest.raises(InputError, match=f"holds a batch that is not {what}: use prism batch"):
            read(tmp_path)


FRAGILE = """\
import os
from pathlib import Path
from prism.worlds import measure
from prism.examples.rumour import Rumour


class Fragile(Rumour):
    fault: str = "none"

    def round_begins(self) -> None:
        if self.fault == "raises":
            raise ValueError("out of order")
        if self.fault == "dies":
            os.kill(os.getpid(), 9)
        if self.fault == "dies once" and self.round == 2 and not Path("died").exists():
            Path("died").touch()
            os.kill(os.getpid(), 9)
        print("said by a world")
"""


def fragile(folder: Path) -> str:
    """Write a world into a file, whose name is that of no other test's module."""
    path = Path(f"{folder.name}.py")
    path.write_text(FRAGILE)
    return f"{path}:Fragile"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """Return a small batch that has been carried out."""
    with ThreadPoolExecutor(1) as threads:
        return batch(Plan(SMALL), tmp_path_factory.mktemp("batch") / "out", executor=threads)


@pytest.mark.slow
def test_every_run_is_as_it_would_be_alone(done: Batch, tmp_path: Path) -> None:
    """The folder of each run holds the files that the same run writes by itself."""
    assert done.is_complete
    assert [each.name for each in done.runs] == [
        *("friends=4/seed-0", "friends=4/seed-1", "friends=6/seed-0", "friends=6/seed-1"),
    ]
    for each in done.runs[1:3]:
        done.plan.options(each.configuration, each.seed).keep(tmp_path / each.name)
        assert tree(done.folder / each.name) == tree(tmp_path / each.name)


def test_the_tables_have_a_row_a_run_and_a_row_a_round(done: Batch) -> None:
    """Parameters, those with defaults too, totals and measures are columns of both tables."""
    results, rounds = done.results().df(), done.rounds().df()
    assert (len(results), len(rounds)) == (4, 12)
    row = results.iloc[3]
    assert (row["configuration"], row["seed"], row["status"]) == ("friends=6", 1, "complete")
    assert (row["friends"], row["tiring"], row["agent_ticks"]) == (6, 0.3, 60)

    mine = rounds[rounds["run"] == "friends=6/seed-1"]
    assert mine["reached"].iloc[-1] == row["reached"]
    assert mine["transitions"].sum() == row["transitions"]
    assert set(mine["states.ignorant"] + mine["states.spreader"] + mine["states.stifler"]) == {20}
    assert done.outcomes() == ["reached"]


def test_the_tables_are_written_as_csv_and_parquet(done: Batch) -> None:
    """What is read from the files is what the batch returns."""
    for name, table in (("results", done.results()), ("rounds", done.rounds())):
        read = duckdb.read_parquet(str(done.folder / f"{name}.parquet"))
        assert (read.columns, read.fetchall()) == (table.columns, table.fetchall())
        assert len(duckdb.read_csv(str(done.folder / f"{name}.csv"))) == len(table)


def test_a_batch_is_found_again_and_not_overwritten(done: Batch) -> None:
    """A folder tells all of its batch, and takes no other one."""
    again = read_batch(done.folder)
    assert again.runs == done.runs
    assert again.results().fetchall() == done.results().fetchall()
    with pytest.raises(InputError, match="already holds a batch"):
        batch(Plan(SMALL), done.folder)
    before = tree(done.folder)
    assert resume_batch(done.folder).is_complete
    assert tree(done.folder) == before


@pytest.mark.slow
def test_a_run_that_fails_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others go on; one that failed says why in the table, and is tried again on resuming."""
    monkeypatch.chdir(tmp_path)
    world = fragile(tmp_path)
    plan = Plan({**SMALL, "world": world, "seeds": 1, "vary": {"fault": ["none", "raises"]}})
    found = batch(plan, "out", workers=1)

    assert found.results().project("fault, status, error").fetchall() == [
        ("none", "complete", None),
        ("raises", "failed", found.failed[0].error),
    ]
    assert "out of order" in str(found.failed[0].error)
    assert read_batch("out").failed == found.failed
    trace = Path("out", found.failed[0].name, "traceback.txt").read_text()
    assert trace.startswith("Traceback")
    assert 'raise ValueError("out of order")' in trace

    file = world.partition(":")[0]
    Path(file).write_text(FRAGILE.replace("out of order", "worse"))
    # as in another process, which imports the file anew
    del sys.modules[Path(file).stem]
    noted: list[str] = []

    class Notes(BatchObserver):
        def note(self, message: str) -> None:
            noted.append(message)

    again = resume_batch("out", observer=Notes())
    assert "worse" in str(again.failed[0].error)
    assert noted == [f"{file}: has changed since the batch began"]


def test_a_row_has_the_number_of_agents_there_were(tmp_path: Path) -> None:
    """Beside the number that was asked for stands that at the end, when some have come or gone."""
    plan = Plan({"world": "meadow", "agents": 30, "rounds": 9, "seeds": 2})
    with ThreadPoolExecutor(1) as threads:
        done = batch(plan, tmp_path / "out", executor=threads)
    rows = done.results().project("agents, agents_at_end, flock").fetchall()
    assert [(asked, end == flock != asked) for asked, end, flock in rows] == [(30, True)] * 2


@pytest.mark.slow
def test_tables_alone_are_the_same_tables(done: Batch, tmp_path: Path) -> None:
    """Without logs there is no folder for a run, and every table is what it is with them."""
    found = batch(done.plan, tmp_path / "out", keep="tables", workers=1)
    assert {path.name for path in found.folder.iterdir()} == {
        *("plan.json", "runs.jsonl"),
        *(f"{name}.{kind}" for name in ("results", "rounds") for kind in ("csv", "parquet")),
    }
    for name in ("results.csv", "results.parquet", "rounds.csv", "rounds.parquet"):
        assert (found.folder / name).read_bytes() == (done.folder / name).read_bytes()
    assert [each.status for each in read_batch(found.folder).runs] == ["complete"] * 4


@pytest.mark.slow
def test_half_a_row_is_run_again(tmp_path: Path) -> None:
    """A process that is killed may leave half a line; what is damaged is told."""
    whole = batch(Plan({**SMALL, "vary": {}}), tmp_path / "out", keep="tables", workers=1)
    rows = whole.folder / "runs.jsonl"
    text = rows.read_bytes()
    rows.write_bytes(text[:-9])
    assert [each.status for each in read_batch(whole.folder).runs] == ["complete", "open"]
    assert resume_batch(whole.folder, workers=1).is_complete
    assert rows.read_bytes() == text


@pytest.mark.slow
def test_tables_of_the_feed_are_the_same(tmp_path: Path) -> None:
    """Its measures come from a log, which is not kept."""
    plan = Plan({"agents": 20, "rounds": 2, "seeds": 2})
    logs, tables = (batch(plan, tmp_path / keep, keep=keep) for keep in ("logs", "tables"))
    assert tables.results().fetchall() == logs.results().fetchall()
    assert tables.rounds().fetchall() == logs.rounds().fetchall()


@pytest.mark.slow
def test_a_process_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run is resumed by another; a run that ends every process has failed."""
    monkeypatch.chdir(tmp_path)
    world = fragile(tmp_path)
    faults = ["dies", "dies once", "none"]
    plan = Plan({**SMALL, "world": world, "seeds": 1, "vary": {"fault": faults}})
    found = batch(plan, "out", workers=2)

    assert [each.status for each in found.runs] == ["failed", "complete", "complete"]
    assert "its process died or was killed" in str(found.failed[0].error)
    once, none = (tmp_path / "out" / f"fault={name}/seed-0" for name in ("dies-once", "none"))
    logs = [(each / "events.jsonl").read_bytes() for each in (once, none)]
    assert logs[0].replace(b"dies once", b"none") == logs[1]


@pytest.mark.parametrize(
    ("how", "keep"),
    [
        pytest.param(signal.SIGKILL, "logs", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "tables", marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, "tables", marks=pytest.mark.long),
        pytest.param(signal.SIGINT, "logs", marks=pytest.mark.long),
    ],
)
def test_a_batch_is_resumed_to_the_same_bytes(prism: Prism, how: signal.Signals, keep: str) -> None:
    """Killed or interrupted at any time, again and again, it comes to the same files."""
    Path("plan.toml").write_text("agents = 80\nrounds = 8\nseeds = 3\n")
    whole = ("batch", "plan.toml", "--out", "whole", "--keep", keep)
    assert prism.run(*whole, "--workers", 2).status == 0
    dice = random.Random(how)
    begin: tuple[Any, ...] = ("batch", "plan.toml", "--out", "out", "--keep", keep)
    stops = 0
    while stops < 3:
        arguments = ("resume", "out") if stops else begin
        with prism.start(*arguments, "--workers", 2) as process:
            wait_until(lambda p=process: Path("out/plan.json").exists() or has_ended(p))  # type: ignore[misc]
            with suppress(TimeoutExpired):
                process.communicate(timeout=dice.uniform(0.0, 0.6))
            stops += 1
            if has_ended(process):
                # it was quicker than its end, so it begins anew
                assert process.returncode == 0
                shutil.rmtree("out")
                stops = 0
            process.send_signal(how)
            process.communicate()

    assert prism.run("resume", "out").status == 0
    assert tree(Path("out")) == tree(Path("whole"))


def limited(server: FakeOllama, most: int) -> Plan:
    """Return a plan of four runs whose model may be asked so often."""
    reasoner = {"model": "llama3.2", "host": server.host}
    budget = {"max_calls": most}
    return Plan({"agents": 20, "rounds": 3, "seeds": 4, "reasoner": reasoner, "budget": budget})


@pytest.mark.slow
def test_a_budget_holds_for_all_runs_together(tmp_path: Path) -> None:
    """The server counts exactly as many questions as all runs may ask."""
    with FakeOllama(latency=0.01) as server:
        found = batch(limited(server, 60), tmp_path / "out", workers=2)

    assert found.is_complete
    assert server.asked == found.spent["calls"] == 60
    table = found.results().df()
    assert table["decisions_answered"].sum() == 60 < table["decisions_asked"].sum()


@pytest.mark.slow
def test_a_budget_outlives_the_processes_that_spend_it(tmp_path: Path) -> None:
    """What a process had asked when it was killed stays counted."""

    # the server of test processes may be among them
    others = set(processes_below())
    # several questions that are under way see the same count: each death is asked for once
    due = [15, 30]

    def choose(asked: Asked) -> str:
        if due and server.asked >= due[0]:
            due.pop(0)
            os.kill(min(set(processes_below()) - others), signal.SIGKILL)
        return asked.options[0]

    with FakeOllama(latency=0.01, choose=choose) as server:
        found = batch(limited(server, 60), tmp_path / "out", workers=2)

    assert found.is_complete
    assert not due
    assert found.spent["calls"] == 60
    # a process that dies takes the other with it, and of each run four questions may have been
    # under way: counted and not asked yet, or asked, without an answer that anybody has
    assert abs(server.asked - 60) <= 2 * 2 * 4


def processes_below() -> list[int]:
    """Return the workers that this process has started."""
    command = ["pgrep", "-P", str(os.getpid()), "-f", "popen_loky"]
    said = run(command, capture_output=True, check=False).stdout
    return [int(each) for each in said.split()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "executor", [ThreadPoolExecutor, partial(ProcessPoolExecutor, mp_context=get_context("spawn"))]
)
def test_threads_and_processes_write_the_same_bytes(
    done: Batch, tmp_path: Path, executor: Callable[[int], Executor]
) -> None:
    """What is sent to other processes is a function of prism with plain data."""
    with executor(2) as pool:
        found = batch(Plan(SMALL), tmp_path / "out", executor=pool)
    assert tree(found.folder) == tree(done.folder)


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

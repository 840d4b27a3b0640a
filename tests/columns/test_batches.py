"""Batches and comparisons in columns, and runs of columns that are killed."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.science import Plan, batch, compare
from prism.worlds import resume
from tests.columns.same import assert_same_lines

pytest.importorskip("polars")

PLAN: dict[str, Any] = {
    "world": "rumour",
    "agents": 60,
    "rounds": 5,
    "seeds": 3,
    "vary": {"friends": [4, 6]},
}


@pytest.mark.slow
def test_a_batch_in_columns_has_the_tables_of_objects(tmp_path: Path) -> None:
    """Logs, results and rounds of a batch are the same, and so is what a comparison finds."""
    objects = batch(Plan(PLAN), tmp_path / "objects", workers=2)
    columns = batch(Plan({**PLAN, "columns": True}), tmp_path / "columns", workers=2)
    assert columns.is_complete
    assert objects.results().equals(columns.results())
    assert objects.rounds().equals(columns.rounds())
    for one, other in zip(objects.runs, columns.runs, strict=True):
        logs = [
            (each.folder / run.name / "events.jsonl").read_bytes()
            for each, run in ((objects, one), (columns, other))
        ]
        assert_same_lines(*logs)
    found = [compare(each.folder, by="friends") for each in (objects, columns)]
    assert found[0].table().equals(found[1].table())


def test_a_plan_of_a_world_that_has_no_columns_is_refused(tmp_path: Path) -> None:
    """The feed stays with objects, and a plan says so before any run begins."""
    with pytest.raises(InputError, match="social feed, which columns do not support"):
        batch(Plan({"agents": 20, "columns": True}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


KILLED = """
import os, signal
from prism import Run

def kill(each):
    if each.number == {round}:
        os.kill(os.getpid(), signal.SIGKILL)

Run("rumour", 400, rounds=5, seed=2, columns=True, log={log!r}).keep(
    {folder!r}, checkpoint_every=0, on_round=kill
)
"""


def spoil(cache: Path, how: str) -> None:
    """Bring the cache of compiled worlds into another condition."""
    if how == "gone":
        shutil.rmtree(cache)
    for path in cache.rglob("*") if how == "damaged" else ():
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.long
@pytest.mark.parametrize("log", ["plain", "zstd"])
def test_a_killed_run_goes_on_whatever_the_cache_is_like(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after each round, with the cache whole, damaged or gone, it writes the same bytes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    name = "events.jsonl" if log == "plain" else "events.jsonl.zst"
    logs = []
    for number, cache in ((0, "whole"), (1, "whole"), (2, "gone"), (3, "damaged"), (4, "whole")):
        folder = tmp_path / str(number)
        code = KILLED.format(round=number, log=log, folder=str(folder))
        ended = subprocess.run([sys.executable, "-c", code], timeout=100, check=False)
        assert ended.returncode == (-signal.SIGKILL if number else 0)
        spoil(tmp_path / "cache" / "prism" / "columns", cache)
        if number:
            assert resume(folder) is not None
        logs.append((folder / name).read_bytes())

    assert all(each == logs[0] for each in logs)

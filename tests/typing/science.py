"""Types of an experiment; checked by test_typing.py, never run."""

from pathlib import Path
from typing import assert_type

from duckdb import DuckDBPyRelation

from prism.science import (
    Batch,
    BatchObserver,
    BatchRun,
    BatchStatus,
    Configuration,
    Plan,
    Sensitivity,
    batch,
    read_batch,
    resume_batch,
    sensitivity,
)


class Counting(BatchObserver):
    """Counts the runs that ended."""

    ended: int = 0

    def run_ended(self, run: BatchRun) -> None:
        """Count it."""
        self.ended += 1
        assert_type(run.status, BatchStatus)


plan = Plan.from_file("plan.toml").with_seeds([1, 2]).with_budget(max_calls=100)
assert_type(plan.configurations(), tuple[Configuration, ...])
done = batch(plan, Path("out"), workers=2, observer=Counting())
assert_type(done, Batch)
assert_type(done.results(), DuckDBPyRelation)
assert_type(resume_batch("out").failed, tuple[BatchRun, ...])
assert_type(read_batch("out").outcomes(), list[str])

found = sensitivity(plan, "screened", method="sobol", samples=64)
assert_type(found, Sensitivity)

batch(plan, "out", workers="two")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
sensitivity(plan, "out", method="fast")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

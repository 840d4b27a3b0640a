"""Time of ``prism batch`` for runs of the feed in two processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.benchmarks.harness import Claim, Effort, Measurement, Table

MOST_SECONDS = 180.0
_FULL_AGENTS = 1_000
_ROUNDS, _TICKS, _WORKERS = 20, 12, 2


def run(effort: Effort) -> Sequence[Table]:
    """Carry out a plan once, in processes of its own: 20 seeds, reduced to two in a quick run."""
    seeds = 20 if effort.agents >= _FULL_AGENTS else 2
    name = f"{_FULL_AGENTS:,} agents, {_ROUNDS} rounds of {_TICKS} ticks, {seeds} seeds"
    with TemporaryDirectory() as directory:
        plan = Path(directory) / "plan.toml"
        plan.write_text(
            f"agents = {_FULL_AGENTS}\nrounds = {_ROUNDS}\nticks = {_TICKS}\nseeds = {seeds}\n"
        )
        taken = Measurement(name, (_carry_out(plan),))

    claim = Claim(f"batch of {name}", taken.best, taken.median, "s", at_most=MOST_SECONDS)
    title = f"batch: prism batch in {_WORKERS} processes, logs and tables written"

    return [Table(title, "s", name, [taken], [claim])]


def _carry_out(plan: Path) -> float:
    code = "from prism.cli import main; main()"
    out = ["--workers", str(_WORKERS), "--out", str(plan.with_name("out"))]
    begin = perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, "batch", str(plan), *out], check=True, capture_output=True
    )
    return perf_counter() - begin

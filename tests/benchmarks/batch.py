"""Time of ``prism batch`` in two processes: long runs of the feed, and many short ones."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from prism import Run
from prism.examples.rumour import Rumour
from prism.science import Plan, batch
from tests.benchmarks.harness import Claim, Effort, Measurement, Table

MOST_SECONDS = 180.0
_FULL_AGENTS = 1_000
_ROUNDS, _TICKS, _WORKERS = 20, 12, 2

MOST_OF_ONE_PROCESS = 0.75
_MANY, _REPETITIONS = 256, 3
_SHORT = {"world": "rumour", "agents": 100, "rounds": 40}


def run(effort: Effort) -> Sequence[Table]:
    """Time a few long runs, and many short ones, fewer of both in a quick run."""
    is_whole = effort.agents >= _FULL_AGENTS
    return [_long_runs(20 if is_whole else 2), _short_runs(_MANY if is_whole else 16)]


def _long_runs(seeds: int) -> Table:
    """Carry out a plan once, in processes of its own."""
    name = f"{_FULL_AGENTS:,} agents, {_ROUNDS} rounds of {_TICKS} ticks, {seeds} seeds"
    with TemporaryDirectory() as directory:
        plan = Path(directory) / "plan.toml"
        plan.write_text(
            f"agents = {_FULL_AGENTS}\nrounds = {_ROUNDS}\nticks = {_TICKS}\nseeds = {seeds}\n"
        )
        taken = Measurement(name, (_carry_out(plan),))

    claim = Claim(f"batch of {name}", taken.best, taken.median, "s", at_most=MOST_SECONDS)
    title = f"batch: prism batch in {_WORKERS} processes, logs and tables written"

    return Table(title, "s", name, [taken], [claim])


def _short_runs(seeds: int) -> Table:
    """Hold a batch without logs against the same runs, one after the other in this process."""
    ours, other = [], []
    for _ in range(_REPETITIONS):
        begin = perf_counter()
        for seed in range(seeds):
            Run(Rumour, _SHORT["agents"], rounds=_SHORT["rounds"], seed=seed).run()
        middle = perf_counter()
        with TemporaryDirectory() as directory:
            plan = Plan({**_SHORT, "seeds": seeds})
            batch(plan, Path(directory) / "out", keep="tables", workers=_WORKERS)
        other.append(middle - begin)
        ours.append(perf_counter() - middle)

    name = f"{seeds} rumours in two processes"
    one, two = Measurement("one process", tuple(other)), Measurement(name, tuple(ours))
    shares = Measurement(name, tuple(a / b for a, b in zip(ours, other, strict=True)))
    claim = Claim(
        f"batch of {seeds} rumours of 100 agents and 40 rounds, against one process",
        two.best / one.best,
        shares.median,
        "x",
        at_most=MOST_OF_ONE_PROCESS,
    )
    title = "batch: many short runs, tables alone"

    return Table(title, "s", name, [one, two], [claim])


def _carry_out(plan: Path) -> float:
    code = "from prism.cli import main; main()"
    out = ["--workers", str(_WORKERS), "--out", str(plan.with_name("out"))]
    begin = perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, "batch", str(plan), *out], check=True, capture_output=True
    )
    return perf_counter() - begin

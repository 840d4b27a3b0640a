"""Time of a batch in two processes: many short runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from prism import Run
from prism.examples.rumour import Rumour
from prism.science import Plan, batch
from tests.benchmarks.harness import FULL, Claim, Effort, Measurement, Table

_WORKERS = 2
MOST_OF_ONE_PROCESS = 0.75
_MANY, _REPETITIONS = 256, 3
_SHORT = {"world": "rumour", "agents": 100, "rounds": 40}


def run(effort: Effort) -> Sequence[Table]:
    """Time many short runs, fewer in a quick run."""
    return [_short_runs(_MANY if effort == FULL else 16)]


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

"""What ``import prism.statechart`` adds to the start of an interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.benchmarks.harness import Claim, Effort, Measurement, Table

BARE, PRISM = "bare interpreter", "import prism.statechart"
STATEMENTS = {BARE: "pass", "import transitions": "import transitions", PRISM: PRISM}
_ROOT = Path(__file__).parents[2]


def run(effort: Effort) -> Sequence[Table]:
    """Start interpreters in turns; each column has run once before, so all byte code is cached."""
    samples: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    with TemporaryDirectory() as cache:
        environment = _environment(cache)
        for statement in STATEMENTS.values():
            _start(statement, environment)
        for _ in range(effort.starts):
            for name, statement in STATEMENTS.items():
                samples[name].append(_start(statement, environment))
    found = [Measurement(name, tuple(taken)) for name, taken in samples.items()]
    return [Table("import", "ms", BARE, found, [_claim(found[-1], found[0])])]


def _claim(prism: Measurement, bare: Measurement) -> Claim:
    added = median(one - other for one, other in zip(prism.samples, bare.samples, strict=True))
    return Claim(f"what {PRISM!r} adds", prism.best - bare.best, added, "ms", at_most=80.0)


def _environment(cache: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": cache}


def _start(statement: str, environment: dict[str, str]) -> float:
    """Return the milliseconds from start to end of an interpreter."""
    start = perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True, cwd=_ROOT, env=environment)
    return (perf_counter() - start) * 1e3

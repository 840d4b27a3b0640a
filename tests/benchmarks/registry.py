"""The benchmarks by name; each is a module with ``run(effort) -> Sequence[Table]``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from tests.benchmarks.harness import Effort, Table

MODULES = {
    "fire": "tests.benchmarks.fire",
    "nested": "tests.benchmarks.nested",
    "import": "tests.benchmarks.imports",
    "memory": "tests.benchmarks.memory",
    "simulation": "tests.benchmarks.simulation",
    "batch": "tests.benchmarks.batch",
    "reasoner": "tests.benchmarks.reasoner",
    "report": "tests.benchmarks.report",
    "log_tables": "tests.benchmarks.log_tables",
    "worlds": "tests.benchmarks.worlds",
    "wordings": "tests.benchmarks.wordings",
    "arrays": "tests.benchmarks.arrays",
}

Run = Callable[[Effort], Sequence[Table]]


def load(name: str) -> Run:
    """Import one benchmark and return its function."""
    # imported only now, so that no benchmark pays for the imports of another
    run: Run = import_module(MODULES[name]).run
    return run

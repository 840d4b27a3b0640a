"""The command ``python -m tests.benchmarks``."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from importlib import import_module

from rich import box
from rich import table as rich_table
from rich.console import Console

from tests.benchmarks.harness import FULL, QUICK, Claim, Effort, Table

NAMES = (
    *("fire", "imports", "memory", "simulation"),
    *("reasoner", "worlds", "wolves", "wordings", "arrays"),
)
"""The benchmarks: modules with ``run(effort) -> Sequence[Table]``."""

_LEAST_WIDTH = 140
_STYLES = {"met": "green", "short": "bold red"}


def main() -> None:
    """Run benchmarks and show their tables; ends with status 0 unless a benchmark crashes."""
    options = _parser().parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=_LEAST_WIDTH)
    machine = f"{platform.python_implementation()} {platform.python_version()}"
    console.print(f"{os.cpu_count()} cores, {machine}; {'quick' if options.quick else 'full'} run")

    for name in options.only:
        _run(console, name, QUICK if options.quick else FULL)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description="Measure what prism costs."
    )
    parser.add_argument(
        "--quick", action="store_true", help="reduced size, for continuous integration"
    )
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    return parser


def _run(console: Console, name: str, effort: Effort) -> None:
    with console.status(f"{name} ..."):
        # imported only now, so that no benchmark pays for the imports of another
        tables: Sequence[Table] = import_module(f"tests.benchmarks.{name}").run(effort)

    for table in tables:
        console.print(f"\n[bold]{table.title}[/bold]\n", _measurements(table))
        if table.claims:
            console.print("", _claims(table.claims), sep="\n")


def _measurements(table: Table) -> rich_table.Table:
    headings = (f"best, {table.unit}", f"median, {table.unit}", f"ratio to {table.reference}")
    shown = _grid("column", *headings)
    reference = next(found for found in table.measurements if found.name == table.reference)
    for found in table.measurements:
        multiple = f"{found.best / reference.best:.2f}"
        shown.add_row(found.name, _figure(found.best), _figure(found.median), multiple)
    return shown


def _claims(claims: Sequence[Claim]) -> rich_table.Table:
    shown = _grid("figure", "best", "median of turns", "target", "result")
    for claim in claims:
        best, middle = (f"{_figure(value)} {claim.unit}" for value in (claim.best, claim.median))
        style = _STYLES[claim.result]
        shown.add_row(claim.text, best, middle, claim.target, claim.result, style=style)
    return shown


def _grid(first: str, *others: str) -> rich_table.Table:
    """Make a table that is also Markdown."""
    grid = rich_table.Table(first, box=box.MARKDOWN)
    for heading in others:
        grid.add_column(heading, justify="right")
    return grid


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


if __name__ == "__main__":
    main()

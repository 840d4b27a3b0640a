"""Tables on the screen and as JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence

from rich import box
from rich import table as rich_table
from rich.console import Console

from tests.benchmarks.harness import Claim, Table

_STYLES = {"met": "green", "short": "bold red", "-": ""}


def machine() -> str:
    """Return a description of the machine."""
    return f"{os.cpu_count()} cores, {platform.python_implementation()} {platform.python_version()}"


def show(console: Console, table: Table) -> None:
    """Print one comparison and its claims."""
    console.print(f"\n[bold]{table.title}[/bold]\n")
    console.print(_measurements(table))
    if table.claims:
        console.print()
        console.print(_claims(table.claims))


def _measurements(table: Table) -> rich_table.Table:
    shown = _grid(
        "column", f"best, {table.unit}", f"median, {table.unit}", f"ratio to {table.reference}"
    )
    reference = next(found for found in table.measurements if found.name == table.reference)
    for found in table.measurements:
        if found.samples:
            multiple = f"{found.best / reference.best:.2f}"
            shown.add_row(found.name, _figure(found.best), _figure(found.median), multiple)
        else:
            shown.add_row(found.name, "not installed", "", "")
    return shown


def _claims(claims: Sequence[Claim]) -> rich_table.Table:
    shown = _grid("figure", "best", "median of turns", "target", "result")
    for claim in claims:
        best, middle = (f"{_figure(value)} {claim.unit}" for value in (claim.best, claim.median))
        shown.add_row(
            claim.text, best, middle, claim.target, claim.result, style=_STYLES[claim.result]
        )
    return shown


def _grid(first: str, *others: str) -> rich_table.Table:
    """Make a table that is also Markdown."""
    grid = rich_table.Table(first, box=box.MARKDOWN)
    for heading in others:
        grid.add_column(heading, justify="right")
    return grid


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"

"""The command ``python -m tests.benchmarks``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tests.benchmarks import display
from tests.benchmarks.harness import FULL, QUICK, Effort, Table
from tests.benchmarks.registry import MODULES, load

_LEAST_WIDTH = 140


def main(arguments: Sequence[str] | None = None) -> None:
    """Run benchmarks and show their tables; ends with status 0 unless a benchmark crashes."""
    options = _parser().parse_args(arguments)
    effort = QUICK if options.quick else FULL
    console = _console()
    console.print(f"{display.machine()}; {'quick' if options.quick else 'full'} run")
    found = {name: _run(console, name, effort) for name in options.only}
    if options.json is not None:
        _save(options.json, found, quick=options.quick)


def _run(console: Console, name: str, effort: Effort) -> Sequence[Table]:
    with console.status(f"{name} ..."):
        tables = load(name)(effort)
    for table in tables:
        display.show(console, table)
    return tables


def _save(path: Path, found: dict[str, Sequence[Table]], *, quick: bool) -> None:
    benchmarks = {
        name: [display.as_data(table) for table in tables] for name, tables in found.items()
    }
    document = {"machine": display.machine(), "quick": quick, "benchmarks": benchmarks}
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=_LEAST_WIDTH)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description="Measure what prism costs."
    )
    parser.add_argument(
        "--quick", action="store_true", help="reduced size, for continuous integration"
    )
    parser.add_argument(
        "--only", type=_names, default=list(MODULES), metavar="NAME[,NAME]", help=", ".join(MODULES)
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also save all figures")
    return parser


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in MODULES]
    if unknown or not names:
        raise argparse.ArgumentTypeError(
            f"no benchmark {', '.join(unknown)!r}: choose from {', '.join(MODULES)}"
        )
    return names


if __name__ == "__main__":
    main()

"""The command ``python -m tests.benchmarks``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

from rich.console import Console

from tests.benchmarks import display
from tests.benchmarks.harness import FULL, QUICK, Effort

NAMES = (
    "fire",
    "nested",
    "imports",
    "memory",
    "simulation",
    "batch",
    "reasoner",
    "report",
    "log_tables",
    "worlds",
    "wordings",
    "arrays",
)
"""The benchmarks: modules with ``run(effort) -> Sequence[Table]``."""

_LEAST_WIDTH = 140


def main(arguments: Sequence[str] | None = None) -> None:
    """Run benchmarks and show their tables; ends with status 0 unless a benchmark crashes."""
    options = _parser().parse_args(arguments)
    effort = QUICK if options.quick else FULL
    console = _console()
    console.print(f"{display.machine()}; {'quick' if options.quick else 'full'} run")
    for name in options.only:
        _run(console, name, effort)


def _run(console: Console, name: str, effort: Effort) -> None:
    with console.status(f"{name} ..."):
        # imported only now, so that no benchmark pays for the imports of another
        tables = import_module(f"tests.benchmarks.{name}").run(effort)
    for table in tables:
        display.show(console, table)


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
        "--only", type=_names, default=list(NAMES), metavar="NAME[,NAME]", help=", ".join(NAMES)
    )
    return parser


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names:
        raise argparse.ArgumentTypeError(
            f"no benchmark {', '.join(unknown)!r}: choose from {', '.join(NAMES)}"
        )
    return names


if __name__ == "__main__":
    main()

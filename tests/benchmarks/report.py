"""Time and size of ``prism report`` for a whole run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.benchmarks.harness import Claim, Effort, Measurement, Table
from tests.benchmarks.log_tables import write_feed
from tests.kit.commands import MAIN

MOST_SECONDS, MOST_MEGABYTES = 10.0, 15.0
_ROUNDS_PER_AGENT = 0.1
_TURNS_SAVED = 8


def run(effort: Effort) -> Sequence[Table]:
    """Simulate once, then make the page in processes of its own."""
    rounds = round(effort.agents * _ROUNDS_PER_AGENT)
    name = f"{effort.agents:,} agents, {rounds} rounds"
    with TemporaryDirectory() as directory:
        log, page = Path(directory) / "events.jsonl", Path(directory) / "report.html"
        write_feed(log, effort.agents, rounds)
        turns = max(1, effort.repeats // _TURNS_SAVED)
        taken = Measurement(name, tuple(_make_page(log, page) for _ in range(turns)))
        sizes = {"log": log.stat().st_size / 1e6, "page": page.stat().st_size / 1e6}
    seconds = Claim(f"a page of {name}", taken.best, taken.median, "s", at_most=MOST_SECONDS)
    size = Claim(
        f"its size, from a log of {sizes['log']:,.0f} MB",
        *[sizes["page"]] * 2,
        "MB",
        at_most=MOST_MEGABYTES,
    )
    found = [Measurement(f"{name}, {what}", (megabytes,)) for what, megabytes in sizes.items()]
    return [
        Table("report: prism report, with the start of Python", "s", name, [taken], [seconds]),
        Table("report: bytes", "MB", found[0].name, found, [size]),
    ]


def _make_page(log: Path, page: Path) -> float:
    line = [sys.executable, "-c", MAIN, "report", str(log), "-o", str(page)]
    begin = perf_counter()
    subprocess.run(line, check=True, capture_output=True)
    return perf_counter() - begin

"""Time and memory of every ``prism log`` and of ``prism report``, for the log of a real run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.benchmarks.harness import FULL, Claim, Effort, Measurement, Table
from tests.kit.commands import MAIN

AGENTS, TICKS, SEED = 10_000, 12, 1
FULL_ROUNDS, QUICK_ROUNDS = 83, 1
MOST_SECONDS, MOST_MEGABYTES, MOST_OF_A_PAGE = 60.0, 2_000.0, 15.0
COMMANDS = (
    *(f"log {table}" for table in ("states", "transitions", "dwell", "decisions")),
    *("log participation", "log cascades", "log agent agent_00001"),
    *("log check --chart social_feed", "report -o page.html"),
)


def run(effort: Effort) -> Sequence[Table]:
    """Make a log, and run each command in a process of its own."""
    rounds = FULL_ROUNDS if effort == FULL else QUICK_ROUNDS
    with TemporaryDirectory() as directory:
        folder = Path(directory, "run")
        size = f"--agents {AGENTS} --ticks {TICKS} --rounds {rounds}"
        words = f"simulate --seed {SEED} {size} --out {folder}".split()
        line = [sys.executable, "-c", MAIN, *words]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        size = f"{(folder / 'events.jsonl').stat().st_size / 1e9:.2f} GB"

        figures = {command: _ran(command.split(), folder) for command in COMMANDS}
        page = (folder / "page.html").stat().st_size / 1e6

    seconds, megabytes = (
        [Measurement(command, (pair[number],)) for command, pair in figures.items()]
        for number in (0, 1)
    )
    return [
        Table(
            f"every command, {size}",
            "s",
            COMMANDS[0],
            seconds,
            [_most("slowest", seconds, "s", MOST_SECONDS)],
        ),
        Table(
            *(f"peak RSS of each, {size}", "MB", COMMANDS[0], megabytes),
            [
                _most("largest", megabytes, "MB", MOST_MEGABYTES),
                Claim("the page of the report", page, page, "MB", at_most=MOST_OF_A_PAGE),
            ],
        ),
    ]


def _most(what: str, found: Sequence[Measurement], unit: str, at_most: float) -> Claim:
    worst = max(found, key=lambda each: each.best)
    return Claim(f"{what} ({worst.name})", worst.best, worst.best, unit, at_most=at_most)


def _ran(words: Sequence[str], folder: Path) -> tuple[float, float]:
    """Run a command to its end; return its seconds, and the most megabytes that it had.

    Raises:
        RuntimeError: If it fails.
    """
    name, *others = words
    line = [sys.executable, "-c", MAIN, name, *others, str(folder)]
    began = perf_counter()
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, cwd=folder) as process:
        _, process.returncode, usage = os.wait4(process.pid, 0)

    if process.returncode:
        raise RuntimeError(f"prism {' '.join(words)} ended with status {process.returncode}")
    return perf_counter() - began, usage.ru_maxrss / 1024

"""Time and memory of every ``prism log`` and of ``prism report``, for the log of a real run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from prism import Run
from prism.agents import opening_posts, synthetic_population
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
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
        folder = Path(directory)
        log = folder / "events.jsonl"
        # in a process of its own, whose memory is not counted as its children's
        line = f"from {__name__} import write_feed; write_feed({str(log)!r}, {rounds})"
        subprocess.run([sys.executable, "-c", line], check=True)
        size = f"{log.stat().st_size / 1e9:.2f} GB"

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


def write_feed(path: str, rounds: int) -> None:
    """Write the log of a real run of the feed."""
    population, clock = synthetic_population(AGENTS, seed=SEED), SimulatedClock()
    feed = Feed(first_posts=opening_posts(population.agents, seed=SEED))
    with RunLog(path, clock) as log:
        options: Any = {"rounds": rounds, "ticks": TICKS, "seed": SEED, "clock": clock}
        Run(feed, population.agents, logger=log.logger, **options).run()


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

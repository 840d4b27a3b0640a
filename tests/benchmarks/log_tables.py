"""Time and memory of every ``prism log`` of a long log, and reading next to json.loads.

The log is that of a real run of the feed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import prism
from prism import Run
from prism.agents import opening_posts, synthetic_population
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
from tests.benchmarks.harness import FULL, Claim, Effort, Measurement, Table, ratio
from tests.kit.commands import MAIN

AGENTS = 10_000
TICKS = 12
SEED = 1
FULL_ROUNDS, QUICK_ROUNDS = 83, 1
MOST_SECONDS = 60.0
MOST_MEGABYTES = 2_000.0
LEAST_RATIO = 5.0

COMMANDS = (
    ("states",),
    ("transitions",),
    ("dwell",),
    ("decisions",),
    ("participation",),
    ("cascades",),
    ("agent", "agent_00001"),
    ("check", "--chart", "social_feed"),
)

_MOST_KEPT = 1000

_WRITE = """
from pathlib import Path
from sys import argv
from tests.benchmarks.log_tables import AGENTS, write_feed
write_feed(Path(argv[1]), AGENTS, int(argv[2]))
"""
_SCAN = """
from sys import argv
from time import perf_counter
from prism.analysis import read_log
began = perf_counter()
rows = read_log(argv[1]).rows("transitions")
print(sum(row["count"] for row in rows), perf_counter() - began)
"""
_JSON = """
from json import loads
from sys import argv
from time import perf_counter
began = perf_counter()
with open(argv[1], "rb") as lines:
    count = sum(loads(line)["event"] == "statechart.transition" for line in lines)
    print(count, perf_counter() - began)
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a process took.

    Args:
        seconds: From start to end.
        megabytes: The most memory it had at any time.
        out: The beginning of what it wrote.
    """

    seconds: float
    megabytes: float
    out: str


def run(effort: Effort) -> Sequence[Table]:
    """Make a log, time every table of it, and read it by json.loads in turns with prism."""
    rounds, turns = (FULL_ROUNDS, 3) if effort == FULL else (QUICK_ROUNDS, 1)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "events.jsonl"
        # in a process of its own, whose memory is not counted as its children's
        _ran("-c", _WRITE, log, str(rounds))
        reading, moves = _reading(log, turns)
        size = f"{moves / 1e6:.3g} million transitions, {log.stat().st_size / 1e9:.2f} GB"
        tables = {
            " ".join(command): _ran("-c", MAIN, "log", *command, folder) for command in COMMANDS
        }
        seconds = {name: each.seconds for name, each in tables.items()}
        memory = {name: each.megabytes for name, each in tables.items()}
        return [
            reading,
            _compared(seconds, f"every table, {size}", "slowest table", "s", MOST_SECONDS),
            _compared(memory, f"peak RSS of each, {size}", "largest table", "MB", MOST_MEGABYTES),
        ]


def _reading(log: Path, turns: int) -> tuple[Table, int]:
    """Count transitions by json.loads and by prism in turns, each in a process, without imports."""
    # DuckDB may show its progress first
    pairs = [
        (_ran("-c", _JSON, log).out.split(), _ran("-c", _SCAN, log).out.split()[-2:])
        for _ in range(turns)
    ]
    if len({count for pair in pairs for count, _ in pair}) != 1:
        raise RuntimeError("the two ways of reading did not find the same number of transitions")
    plain = Measurement(
        "json.loads line by line", tuple(float(seconds) for (_, seconds), _ in pairs)
    )
    read = Measurement("prism.analysis", tuple(float(seconds) for _, (_, seconds) in pairs))
    claims = ratio("reading, times as fast as json.loads", plain, read, at_least=LEAST_RATIO)
    return Table(
        "reading and counting all transitions", "s", read.name, [read, plain], claims
    ), int(pairs[0][0][0])


def _compared(figures: dict[str, float], title: str, what: str, unit: str, at_most: float) -> Table:
    found = [Measurement(f"prism log {name}", (figure,)) for name, figure in figures.items()]
    worst = max(figures, key=lambda name: figures[name])
    claim = Claim(
        f"{what} ({worst.split()[0]})", figures[worst], figures[worst], unit, at_most=at_most
    )
    return Table(title, unit, found[0].name, found, [claim])


def _ran(*arguments: str | Path) -> Ran:
    """Run Python to its end; its output goes to a file.

    Raises:
        RuntimeError: If it fails.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(prism.__file__).parents[1]),
        "COLUMNS": "80",
    }
    with tempfile.TemporaryFile() as out:
        began = perf_counter()
        child = os.posix_spawn(
            sys.executable,
            [sys.executable, *map(str, arguments)],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, out.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, out.fileno(), 2),
            ],
        )
        _, status, usage = os.wait4(child, 0)
        seconds = perf_counter() - began
        out.seek(0)
        said = out.read(_MOST_KEPT).decode(errors="replace")
        if status:
            raise RuntimeError(
                f"{' '.join(map(str, arguments[1:]))} ended with status {status}: {said}"
            )
        return Ran(seconds, usage.ru_maxrss / 1024, said)


def write_feed(path: Path, agents: int, rounds: int, seed: int = SEED) -> None:
    """Write the log of a real run of the feed."""
    population, clock = synthetic_population(agents, seed=seed), SimulatedClock()
    with RunLog(path, clock) as log:
        Run(
            Feed(first_posts=opening_posts(population.agents, seed=seed)),
            population.agents,
            rounds=rounds,
            ticks=TICKS,
            seed=seed,
            logger=log.logger,
            clock=clock,
        ).run()

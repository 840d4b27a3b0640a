"""Time and memory of every ``prism log`` of a long log, and reading next to json.loads.

The log is made from a real round of a simulation, whose lines are copied for every further round
with their round, times and post ids changed. So every line is as the writer writes it, and every
agent's moves follow from one another.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import perf_counter

import prism
from prism import Run
from prism.agents import opening_posts, synthetic_population
from prism.runlog import RunLog, SimulatedClock
from prism.runlog._writer import DEFAULT_START
from prism.social import Feed
from prism.telemetry.events import AGENT_JOINED, RUN_ENDED, RUN_STARTED
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
from tests.benchmarks.log_tables import write_log
write_log(Path(argv[1]), int(argv[2]))
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


def write_log(path: Path, rounds: int, agents: int = AGENTS) -> None:
    """Write a log of so many rounds, each with about 12 transitions of each agent.

    Args:
        path: The log.
        rounds: Its rounds.
        agents: Its agents.
    """
    with tempfile.TemporaryDirectory() as folder:
        once_played = Path(folder) / "events.jsonl"
        write_feed(once_played, agents, rounds=1)
        lines = once_played.read_bytes().splitlines(keepends=True)
    once = [line for line in lines if _event(line) in (RUN_STARTED, AGENT_JOINED)]
    again = b"".join(
        line for line in lines if _event(line) not in (RUN_STARTED, AGENT_JOINED, RUN_ENDED)
    )
    with path.open("wb") as log:
        log.writelines(line.replace(b'"rounds":1,', b'"rounds":%d,' % rounds) for line in once)
        log.writelines(_as_round(again, number) for number in range(1, rounds + 1))
        log.write(lines[-1])


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


def _as_round(lines: bytes, number: int) -> bytes:
    """Return the lines of the first round as those of another, its earlier posts again."""
    changed = lines.replace(b'"post_0', b'"post_%d_' % number)
    for old in (0, 1):
        changed = changed.replace(b'"round":%d,' % old, b'"round":%d,' % number)
    for old, new in _times(number):
        changed = changed.replace(old, new)
    return changed.replace(b'"timestamp":"@', b'"timestamp":"')


def _times(number: int) -> Iterator[tuple[bytes, bytes]]:
    """Return the times of the first round with those of another, marked against a second change."""
    for tick in range(TICKS + 1):
        old, new = (
            DEFAULT_START + timedelta(minutes=minutes)
            for minutes in (tick, (number - 1) * TICKS + tick)
        )
        yield b'"timestamp":"%s' % _iso(old), b'"timestamp":"@%s' % _iso(new)


def _iso(time: object) -> bytes:
    return str(time).replace(" ", "T").replace("+00:00", "Z").encode()


def _event(line: bytes) -> str:
    return str(json.loads(line)["event"])

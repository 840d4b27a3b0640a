"""Logs to read: a real run, and logs made line by line."""

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from prism import Run
from prism.agents import opening_posts, synthetic_population
from prism.analysis import Log, read_log
from prism.llm import OllamaChatClient
from prism.reasoner import Reasoner
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
from prism.statechart import AgentState
from prism.testing import Asked, FakeOllama
from prism.worlds import WorldResults

AGENTS = 50

WriteLog = Callable[..., Path]
LogOf = Callable[..., Log]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, WorldResults]:
    """Return the folder of a real run and what the simulation says came of it."""
    folder = tmp_path_factory.mktemp("runs") / "real"
    made = Run(Feed, AGENTS, rounds=4, ticks=12, seed=3, parameters={"preset": "classic"})
    return folder, made.keep(folder).results


@pytest.fixture
def folder(run: tuple[Path, WorldResults]) -> Path:
    """Return the folder of the real run."""
    return run[0]


@pytest.fixture(scope="session")
def model_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a run decided by a model server, of whose answers some are of no use."""
    path = tmp_path_factory.mktemp("model") / "model.jsonl"
    population, clock = synthetic_population(16, seed=5), SimulatedClock()
    with FakeOllama() as server, RunLog(path, clock) as log:
        server.choose = _answer
        client = OllamaChatClient(server.host, "llama3.2")
        Run(
            Feed(first_posts=opening_posts(population.agents, seed=5)),
            population.agents,
            reasoner=Reasoner(client, fallback=AgentState.SCROLLING, seed=5),
            rounds=2,
            seed=5,
            logger=log.logger,
            clock=clock,
        ).run()
    return path


def _answer(asked: Asked) -> str:
    """Choose by the agent and its post, so that a question in other words fails again."""
    situation = (
        asked.body["messages"][0]["content"].partition("You are ")[2].partition("Respond")[0]
    )
    number = crc32(situation.encode())
    if number % 9 == 8:
        return "</script><script>window.hacked = 1</script>"
    return asked.options[number % len(asked.options)]


@pytest.fixture
def events(folder: Path) -> list[dict[str, Any]]:
    """Return the events of the real run, read the plain way."""
    return events_in(folder)


def events_in(run: Path) -> list[dict[str, Any]]:
    """Return the events of a log, or of that in a folder, read the plain way."""
    path = run if run.is_file() else run / "events.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def write_log(tmp_path: Path) -> WriteLog:
    """Return a function that writes a log of events, or of raw lines, and gives its path."""

    def write(lines: Iterable[dict[str, Any] | bytes], name: str = "events.jsonl") -> Path:
        raw = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
        data = b"".join(line + b"\n" for line in raw)
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


@pytest.fixture
def log_of(write_log: WriteLog) -> LogOf:
    """Return a function that opens a log of some events."""
    return lambda lines, **options: read_log(write_log(lines), **options)

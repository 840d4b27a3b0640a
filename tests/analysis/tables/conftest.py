"""A run decided by a model that fails."""

from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.agents import opening_posts, synthetic_population
from prism.llm import OllamaChatClient
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
from prism.statechart import AgentState, Reasoner
from prism.testing import FakeOllama, Fault
from tests.kit.worlds import Leaving


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a run decided by a model, of whose answers many are of no use."""
    path = tmp_path_factory.mktemp("model") / "model.jsonl"
    population, clock = synthetic_population(12, seed=5), SimulatedClock()
    with FakeOllama() as server, RunLog(path, clock) as log:

        def choose(asked: Any) -> str:
            if len(server.questions) % 3 == 1:
                server.fail(Fault.body(b"nothing of use"))
            return str(asked.options[len(server.questions) % len(asked.options)])

        server.choose = choose
        Run(
            Feed(first_posts=opening_posts(population.agents, seed=5)),
            population.agents,
            reasoner=Reasoner(
                OllamaChatClient(server.host, "llama3.2"), fallback=AgentState.SCROLLING, seed=5
            ),
            rounds=2,
            seed=5,
            logger=log.logger,
            clock=clock,
        ).run()
    return path


@pytest.fixture(scope="session")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run whose rounds carry open decisions over, and that some leave."""
    folder = tmp_path_factory.mktemp("carried") / "run"
    values = {"preset": "twitter", "up_treated": 0.4}
    Run(Leaving, 30, rounds=3, seed=3, treatments=["leave@2"], parameters=values).keep(folder)
    return folder

"""Microsoft's agent-framework as a client, the real package in an environment of its own.

It pins an ollama that prism's own client is not made for, so the two cannot share one.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prism.testing import FakeOllama, Fault
from tests.kit.modules import environment

pytestmark = pytest.mark.long

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ["agent-framework-ollama==1.0.0b261022", "transitions", "structlog", "orjson"]

SCRIPT = """
import asyncio, json, sys
from types import SimpleNamespace

from agent_framework.ollama import OllamaChatClient
from prism.statechart import AgentState, Question, Reasoner

host, kind, mode = sys.argv[1:]
client = OllamaChatClient(host=host, model="llama3.2")
asked = client if kind == "client" else client.as_agent(name="Ada", instructions="You are Ada.")
options = (AgentState.COMPOSING, AgentState.SCROLLING)
agents = [SimpleNamespace(agent_id=f"a{n}") for n in range(3)]
questions = [Question(agent, AgentState.EVALUATING, "decides", options) for agent in agents]
decisions = asyncio.run(Reasoner(asked, mode=mode, seed=7, concurrency=1).decide_many(questions))
print(json.dumps([
    {
        "chosen": decision.chosen.value,
        "source": decision.source,
        "reason": decision.reason,
        "tokens": [decision.cost.input_tokens, decision.cost.output_tokens],
        "attempts": decision.cost.attempts,
    }
    for decision in decisions
]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with agent-framework and this checkout, and give its interpreter."""
    python = environment(tmp_path_factory.mktemp("agent_framework"), *PACKAGES)
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", CHECKOUT]
    subprocess.run(install, check=True)
    return python


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """Run a model server that always scrolls."""
    with FakeOllama(choose=lambda asked: "scrolling") as running:
        yield running


def decide(python: Path, server: FakeOllama, kind: str, mode: str = "auto") -> list[dict[str, Any]]:
    """Let three agents decide in that environment."""
    done = subprocess.run(
        [str(python), "-c", SCRIPT, server.host, kind, mode],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=python.parent,
    )
    decisions: list[dict[str, Any]] = json.loads(done.stdout)
    return decisions


@pytest.mark.parametrize("mode", ["auto", "chat"])
@pytest.mark.parametrize("kind", ["client", "agent"])
def test_decisions_come_from_the_model(
    kind: str, mode: str, python: Path, server: FakeOllama
) -> None:
    """Both are asked one chat a decision, bound to the options; seeds are the agents' own."""
    for decision in decide(python, server, kind, mode):
        assert (decision["chosen"], decision["source"], decision["attempts"]) == (
            "scrolling",
            "model",
            1,
        )
        assert all(tokens > 0 for tokens in decision["tokens"])
    assert [asked.path for asked in server.questions] == ["/api/chat"] * 3
    assert {asked.options for asked in server.questions} == {("composing", "scrolling")}

    seeds = [asked.body["options"]["seed"] for asked in server.questions]
    assert len(set(seeds)) == 3

    decide(python, server, kind, mode)
    assert [asked.body["options"]["seed"] for asked in server.questions[3:]] == seeds


@pytest.mark.parametrize("kind", ["client", "agent"])
def test_failures_fall_back(kind: str, python: Path, server: FakeOllama) -> None:
    """What is refused, or twice of no use, falls back with its reason; an error is retried once."""
    # in a single slot the second is asked once more before the third is
    useless = [Fault.says("nonsense")] * 2
    answer = Fault.says('{"next_state": "scrolling"}')
    server.fail(Fault.status(400, "boom"), *useless, Fault.status(500, "inside"), answer)
    refused, nonsense, answered = decide(python, server, kind)
    assert (
        (refused["chosen"], refused["source"])
        == (nonsense["chosen"], nonsense["source"])
        == ("composing", "fallback")
    )
    assert "boom" in refused["reason"]
    assert "nonsense" in nonsense["reason"]
    assert (answered["chosen"], answered["source"]) == ("scrolling", "model")
    assert [each["attempts"] for each in (refused, nonsense, answered)] == [1, 2, 2]

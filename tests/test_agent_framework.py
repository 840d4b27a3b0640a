"""Microsoft's agent-framework as a client, the real package in an environment of its own.

It pins an ollama that prism's own client is not made for, so the two cannot share one.
"""

import json
import subprocess
from pathlib import Path

import pytest

from prism.testing import FakeOllama
from tests.kit.modules import environment

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ["agent-framework-ollama==1.0.0b261022", "transitions", "structlog", "orjson"]

SCRIPT = """
import asyncio, json, sys
from types import SimpleNamespace

from agent_framework.ollama import OllamaChatClient
from prism.reasoner import Question, Reasoner
from prism.statechart import AgentState

client = OllamaChatClient(host=sys.argv[1], model="llama3.2")
agent = client.as_agent(name="Ada", instructions="You are Ada.")
options = (AgentState.COMPOSING, AgentState.SCROLLING)


async def ask():
    for asked in (client, agent):
        ada = SimpleNamespace(agent_id="a")
        question = Question(ada, AgentState.EVALUATING, "decides", options)
        (made,) = await Reasoner(asked, seed=7).decide_many([question])
        cost = made.cost
        print(json.dumps([made.chosen.value, made.source, cost.attempts, cost.input_tokens]))


asyncio.run(ask())
"""


@pytest.mark.long
def test_decisions_come_from_the_model(tmp_path: Path) -> None:
    """Client and agent are asked one chat a decision, bound to the options, with one seed."""
    python = environment(tmp_path, *PACKAGES)
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", CHECKOUT]
    subprocess.run(install, check=True)
    with FakeOllama(choose=lambda asked: "scrolling") as server:
        line = [python, "-c", SCRIPT, server.host]
        done = subprocess.run(line, check=True, capture_output=True, timeout=120, cwd=tmp_path)
        first, second = server.questions
    for decision in map(json.loads, done.stdout.splitlines()):
        assert decision[:3] == ["scrolling", "model", 1]
        assert decision[3] > 0
    assert first.path == second.path == "/api/chat"
    assert first.options == second.options == ("composing", "scrolling")
    assert first.body["options"]["seed"] == second.body["options"]["seed"]

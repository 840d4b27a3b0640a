"""Logs of workflows, read by every table, the report and the conformance check."""

import asyncio
from pathlib import Path

import pytest

from prism.analysis import read_log
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.runlog import configure
from prism.statechart import Written
from prism.telemetry.events import TEXT_WRITTEN, WORKFLOW_REFUSED, WORKFLOW_STEP
from prism.testing import ScriptedWriter
from tests.kit.tables import agent_story

WORKFLOW = Workflow.from_text(
    """
name: walker
workflow:
  state_machine:
    states: [home, out]
    transitions:
      - home->out
      - {from: out, to: home, condition: tired}
  steps:
    - {name: count, type: code, code: "seen = context.get('seen', 0) + 1; tired = seen > 3"}
    - {name: fall, type: code, in_state: out, code: "1 / 0", on_failure: skip}
    - {name: go, type: llm, in_state: home, prompt: "{agent_id}?", output: text, transition_to: out}
    - {name: back, type: transition, in_state: out, prompt: "?", transition_map: {back: home}}
"""
)


async def walk() -> None:
    """Carry out six turns: out, refused twice, home, a text that fails, and stopped by it."""
    gone = Written(None, "failed", reason="E: gone")
    writer = ScriptedWriter({"go": ["Off I go.", gone], "back": "back"})
    agent = WorkflowAgent(WORKFLOW, writer, agent_id="ada")
    for _ in range(5):
        await agent.turn()

    assert agent.failure == "step 'go': E: gone"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a workflow without a simulation around it."""
    path = tmp_path_factory.mktemp("walk") / "events.jsonl"
    with configure(path):
        asyncio.run(walk())
    return path


def test_the_story_tells_texts_and_steps(log: Path) -> None:
    """The story of an agent has a sentence for each text and each step."""
    story = agent_story(read_log(log), "ada")
    told = dict(zip(story["event"], story["what"], strict=True))
    assert told[TEXT_WRITTEN] == "has no text for 5:go: E: gone"
    assert told[WORKFLOW_STEP] == "turn 5, step go failed: E: gone"
    assert told[WORKFLOW_REFUSED].endswith(
        "step back may not go to home: the condition 'tired' is false"
    )
    assert "has a text for 1:go (script): Off I go." in story["what"].to_list()
    assert story.filter(event=WORKFLOW_STEP)["turn"].to_list() == sorted(
        story.filter(event=WORKFLOW_STEP)["turn"]
    )

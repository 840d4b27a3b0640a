"""Logs of every kind, to be read by every table."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.examples import Day, Meadow
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.reasoner import Written
from prism.runlog import configure
from prism.testing import ScriptedWriter
from tests.kit.cognition import FIXED, action, add, letters, limited, thinker, thought, working
from tests.kit.worlds import Leaving

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

    assert agent.stopped == "step 'go': E: gone"


async def think() -> None:
    """Run through all that can happen to an agent."""
    replies = [
        thought("on", "executing"),
        *(add("a", "1"), add("b", "2"), action("storage_burn", "all")),
        *("nothing of use", OSError("down")),
    ]
    data = {**working(10, 250), "state": "dreaming"}
    config = limited(FIXED + 2400)
    await thinker(replies, data, config, count=letters, agent_id="ada").run(7)


@pytest.fixture(scope="session")
def logs(run: Any, model_log: Path, market: Path, tmp_path_factory: Any) -> dict[str, Path]:
    """Return logs of a feed, of agents who leave, of a model, of two charts, and so on."""
    folder: Path = tmp_path_factory.mktemp("logs")
    values = {"preset": "twitter", "up_treated": 0.4}
    Run(Leaving, 30, rounds=3, seed=3, treatments=["leave@2"], parameters=values).keep(
        folder / "leaving"
    )
    Run(Day, 12, rounds=2, seed=1).keep(folder / "regions")
    Run(Meadow, 60, rounds=5, seed=1).keep(folder / "births")
    for name, program in (("workflow", walk), ("thinking", think)):
        with configure(folder / name):
            asyncio.run(program())
    kept = {path.name: path for path in folder.iterdir()}
    return {"feed": run[0], "model": model_log, "market": market, **kept}

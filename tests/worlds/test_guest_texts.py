"""Workflow agents and thinking agents in a world whose model answers them."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import runs
from prism.runs import ModelOptions, WriterOptions
from prism.statechart import TextCall
from prism.testing import FakeOllama, ScriptedWriter
from prism.workflow import Workflow, WorkflowAgent
from prism.worlds import Guest, World, WorldRun
from prism.worlds.examples import Council
from tests.kit.cognition import add, thought
from tests.kit.worlds import run_in, run_logged
from tests.kit.writers import LateWriter

YAML = """
name: diner
state_machine:
  states: [waiting, choosing]
steps:
  - name: count
    in_state: waiting
    code: |
      import random
      visits = context.get('visits', 0) + 1
      luck = random.random()
  - name: greet
    type: llm
    in_state: waiting
    prompt: "You are {agent_id}, here for the {visits}. time. What do you say?"
    output: text
    transition_to: choosing
  - name: choose
    type: transition
    in_state: choosing
    prompt: "You said {greet}. Respond with: stay or go"
    transition_map: {stay: choosing, go: waiting}
"""


def by_prompt(call: TextCall) -> Any:
    """Answer a call by its prompt alone."""
    return say(call.prompt)


class Table(World[Guest[WorkflowAgent]]):
    """Diners at a table."""

    rounds = 5

    def populate(self, agents: int) -> list[Guest[WorkflowAgent]]:
        """Give everybody the same workflow."""
        workflow = Workflow.from_text(YAML)
        return [
            Guest(object=WorkflowAgent(workflow, agent_id=f"diner_{number}"))
            for number in range(agents)
        ]


def say(prompt: str, *_more: Any) -> Any:
    """Answer by the prompt alone."""
    if "Respond with" in prompt:
        return {"decision": ("stay", "go")[sum(map(ord, prompt)) % 2], "reasoning": "so be it"}
    if "thinking" in prompt and "<agent>" in prompt:
        return thought("I should say so.", "executing")
    if "<agent>" in prompt:
        return add("note", f"no. {sum(map(ord, prompt)) % 97}")

    return "Good evening."


def texts_of(log: bytes) -> list[dict[str, Any]]:
    """Return the texts of a log."""
    return [orjson.loads(line) for line in log.splitlines() if b'"text.written"' in line]


@pytest.mark.parametrize("world", [Table, Council])
@pytest.mark.sampled(2)
def test_a_run_with_a_model_is_killed_resumed_and_replayed(
    world: type[World[Any]], tmp_path: Path
) -> None:
    """Each call is sent once and paid from the run's budget, and a replay writes the same bytes."""
    with FakeOllama(models=["tiny"], write=say) as server:
        model = ModelOptions("tiny", host=(server.host,), mode="chat")
        options = WorldRun(world, 3, seed=5, rounds=5, reasoner=model, writer=WriterOptions())
        run_in(tmp_path / "first", options, stops=(2, 3))
        asked = server.asked

    log = (tmp_path / "first" / "events.jsonl").read_bytes()
    texts = texts_of(log)
    assert {each["source"] for each in texts} == {"model"}
    assert len(texts) == 15
    spent = json.loads((tmp_path / "first" / "run.json").read_text())["spent"]
    assert sum(each["attempts"] for each in texts) == spent["calls"] == asked

    runs.replay(tmp_path / "first", WorldRun, tmp_path / "again")
    assert (tmp_path / "again" / "events.jsonl").read_bytes() == log
    run_in(tmp_path / "stopped", options.replaying(tmp_path / "first"), stops=(1, 4))
    assert (tmp_path / "stopped" / "events.jsonl").read_bytes() == log


def test_calls_of_a_tick_are_asked_together_whoever_answers_first(tmp_path: Path) -> None:
    """All agents of a tick are asked at once, and late answers change nothing in the log."""
    early, late = LateWriter(1), LateWriter(2)
    logs = [run_logged(tmp_path, Table(), 4, writer=each, rounds=2).log for each in (early, late)]
    assert logs[0] == logs[1]
    assert late.most_at_once == 4
    assert [each["agent_id"] for each in texts_of(logs[0])][:4] == [f"diner_{n}" for n in range(4)]


def test_random_numbers_of_code_steps_belong_to_the_seed(tmp_path: Path) -> None:
    """Each agent draws others, another seed gives others, and the same seed the same."""

    def luck(seed: int) -> list[float]:
        done = run_logged(
            tmp_path, Table(), 3, seed=seed, writer=ScriptedWriter(by_prompt), rounds=1
        )
        return [guest.context["luck"] for guest in done.run.agents]

    assert luck(1) == luck(1)
    assert len({*luck(1), *luck(2)}) == 6


def test_code_steps_take_no_time_in_a_world(tmp_path: Path) -> None:
    """What a clock on the wall says is not in the log, which would differ otherwise."""
    done = run_logged(tmp_path, Table(), 2, writer=ScriptedWriter(by_prompt), rounds=1)
    steps = done.events("workflow.step")
    assert [each["seconds"] for each in steps if each["type"] == "code"] == [0.0, 0.0]
    assert {each["timestamp"][:10] for each in steps} == {"2026-01-01"}


def test_without_a_writer_every_step_that_asks_fails_and_says_so(tmp_path: Path) -> None:
    """The workflow stops as its policy says; the run goes on."""
    done = run_logged(tmp_path, Table(), 2, rounds=3)
    (reason,) = {each["reason"] for each in done.events("text.written")}
    assert "no writer" in reason
    assert [guest.failure is not None for guest in done.run.agents] == [True, True]
    assert done.run.finished[-1].states == {"waiting": 2, "choosing": 0}

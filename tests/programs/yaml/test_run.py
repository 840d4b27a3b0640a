"""A run of turns that is kept in a folder, and repeated."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism import Run, replay
from prism.errors import InputError
from prism.llm import Model
from prism.runs import run_status
from prism.testing import FakeOllama

AGENT = """
workflow:
  state_machine:
    states: [looking, working]
    transitions:
      - looking->working
      - {from: working, to: looking, condition: seen > 1}
  steps:
    - {name: count, code: "seen = context.get('seen', 0) + 1"}
    - name: look
      type: llm
      in_state: looking
      prompt: "Look {seen} of {balance}, {time_remaining}"
      output: text
      transition_to: working
    - name: work
      type: transition
      in_state: working
      prompt: "Work or rest, {seen}"
      transition_map: {work: working, rest: looking}
components:
  traits: [kind]
"""
TRAIT = "{name: kind, inject_into: [look], prompt_fragment: 'Be kind to {agent_id}.'}\n"
TURNS = 6


def say(prompt: str, *_more: Any) -> str:
    """Answer a prompt of the workflow."""
    return '{"decision": "rest"}' if "rest" in prompt else "a text"


def test_results_say_what_came_of_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """State, transitions, steps by outcome, tokens and context are in run.json.

    Without a model, the steps that would ask one are named, and nothing is written. A variable that
    nothing in the file names is a warning.
    """
    (tmp_path / "traits").mkdir()
    (tmp_path / "traits" / "kind.yaml").write_text(TRAIT)
    (tmp_path / "agent.yaml").write_text(AGENT)
    run = Run(tmp_path / "agent.yaml", rounds=TURNS, parameters={"balance": 7})
    with pytest.raises(InputError, match=r"asks a model in look, work: name the model"):
        run.replace(parameters={"balance": 7, "balnce": 7}).keep(tmp_path / "run")
    assert caplog.records[-1].getMessage().endswith(": unused variables: balnce")
    assert not (tmp_path / "run").exists()

    with FakeOllama(write=say) as server:
        model = Model("llama3.2", hosts=(server.url,))
        results = run.replace(reasoner=model).keep(tmp_path / "run").results
    assert (results.turns, results.state, results.stopped) == (TURNS, "looking", None)
    assert results.transitions == TURNS
    assert results.outcomes == {"done": 2 * TURNS}
    assert results.final["context"]["seen"] == TURNS
    assert results.tokens > 0
    summary = json.loads((tmp_path / "run" / "run.json").read_text())
    assert summary["results"] == results.to_dict()
    assert summary["spent"]["calls"] == TURNS
    assert run_status(tmp_path / "run").state == "complete"
    assert replay(tmp_path / "run", tmp_path / "again").results == results
    logs = [tmp_path / name / "events.jsonl" for name in ("run", "again")]
    assert logs[0].read_bytes() == logs[1].read_bytes()

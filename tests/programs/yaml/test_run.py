"""A run of turns that is kept in a folder, resumed and repeated."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from prism import Run, replay
from prism.errors import InputError
from prism.llm import Model
from prism.runs import Outcome, run_status
from prism.testing import FakeOllama
from tests.kit import kept as runs
from tests.kit.files import folder_in_memory

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


class Complete(NamedTuple):
    """A complete run with a model, at which tests look only."""

    file: Path
    folder: Path
    outcome: Outcome[Any]
    server: FakeOllama


@pytest.fixture(scope="module")
def complete() -> Iterator[Complete]:
    """Return a complete run with a model, of a workflow with a component in a file of its own."""
    with folder_in_memory() as folder, FakeOllama(write=say) as server:
        (folder / "traits").mkdir()
        (folder / "traits" / "kind.yaml").write_text(TRAIT)
        file = folder / "agent.yaml"
        file.write_text(AGENT)
        model = Model("llama3.2", hosts=(server.url,))
        run = Run(file, rounds=TURNS, parameters={"balance": 7}, reasoner=model)
        yield Complete(file, folder / "run", runs.begin(run, folder / "run"), server)


def test_results_say_what_came_of_the_run(complete: Complete) -> None:
    """State, transitions, steps by outcome, tokens and context are in run.json."""
    results = complete.outcome.results
    assert (results.turns, results.state, results.stopped) == (TURNS, "looking", None)
    assert results.transitions == TURNS
    assert results.outcomes == {"done": 2 * TURNS}
    assert results.final["context"]["seen"] == TURNS
    assert results.tokens > 0
    summary = json.loads((complete.folder / "run.json").read_text())
    assert summary["results"] == results.to_dict()
    assert summary["spent"]["calls"] == TURNS
    assert run_status(complete.folder).state == "complete"


def test_a_run_is_repeated_without_its_model(complete: Complete, tmp_path: Path) -> None:
    """A replay asks no model and writes the same bytes, measured seconds included."""
    asked = len(complete.server.questions)
    replay(complete.folder, tmp_path / "again")
    logs = [folder / "events.jsonl" for folder in (complete.folder, tmp_path / "again")]
    assert logs[0].read_bytes() == logs[1].read_bytes()
    assert len(complete.server.questions) == asked


def test_a_workflow_that_asks_needs_a_model(complete: Complete, tmp_path: Path) -> None:
    """Without a model the steps that would ask one are named, and nothing is written."""
    with pytest.raises(InputError, match=r"asks a model in look, work: name the model"):
        runs.begin(Run(complete.file), tmp_path / "run")
    assert not (tmp_path / "run").exists()

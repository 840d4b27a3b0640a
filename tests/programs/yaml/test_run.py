"""A run of turns that is kept in a folder, resumed and repeated."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from prism import Run, replay
from prism.errors import InputError
from prism.llm import Model
from prism.runs import Outcome, run_status
from prism.testing import FakeOllama
from tests.kit import kept as runs
from tests.kit.event_schema import faults_of
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


def written_in(folder: Path) -> Path:
    """Write a workflow with a component in a file of its own."""
    (folder / "traits").mkdir()
    (folder / "traits" / "kind.yaml").write_text(TRAIT)
    path = folder / "agent.yaml"
    path.write_text(AGENT)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a workflow of the test's own."""
    return written_in(tmp_path)


def say(prompt: str, *_more: Any) -> str:
    """Answer a prompt of the workflow."""
    return '{"decision": "rest"}' if "rest" in prompt else "a text"


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOllama]:
    """Return a server whose model writes."""
    with FakeOllama(write=say) as running:
        yield running


def asking(file: Path, server: FakeOllama) -> Any:
    """Return a run with a model."""
    model = Model("llama3.2", hosts=(server.url,))
    return Run(file, rounds=TURNS, parameters={"balance": 7}, reasoner=model)


@pytest.fixture
def options(file: Path, server: FakeOllama) -> Any:
    """Return a run with a model, of a workflow of the test's own."""
    return asking(file, server)


class Complete(NamedTuple):
    """A complete run with a model, at which tests look only."""

    options: Any
    folder: Path
    outcome: Outcome[Any]


@pytest.fixture(scope="module")
def complete(server: FakeOllama) -> Iterator[Complete]:
    """Return a complete run with a model."""
    with folder_in_memory() as folder:
        options = asking(written_in(folder), server)
        yield Complete(options, folder / "run", runs.begin(options, folder / "run"))


@pytest.fixture
def kept(complete: Complete) -> Path:
    """Return the folder of the complete run."""
    return complete.folder


def events_of(folder: Path) -> list[dict[str, Any]]:
    """Return the events of a run."""
    return [orjson.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def log_of(folder: Path) -> bytes:
    """Return the bytes of a run's log."""
    return (folder / "events.jsonl").read_bytes()


def test_every_event_of_a_run_is_of_the_schema(kept: Path) -> None:
    """The log of a run of turns holds events of the published schema only, with all their keys."""
    events = events_of(kept)
    assert faults_of(events) == []
    assert {event["event"] for event in events} >= {
        "run.started",
        "agent.joined",
        "round.started",
        "workflow.step",
        "text.written",
        "statechart.transition",
        "round.ended",
        "run.ended",
    }


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


def test_a_run_is_repeated_without_its_model(
    kept: Path, server: FakeOllama, tmp_path: Path
) -> None:
    """A replay asks no model and writes the same bytes, measured seconds included."""
    asked = len(server.questions)
    replay(kept, tmp_path / "again")
    assert log_of(tmp_path / "again") == log_of(kept)
    assert len(server.questions) == asked


def test_a_workflow_that_asks_needs_a_model(file: Path) -> None:
    """Without a model the steps that would ask one are named, and nothing is written."""
    out = file.parent / "run"
    with pytest.raises(InputError, match=r"asks a model in look, work: name the model"):
        runs.begin(Run(file), out)
    assert not out.exists()

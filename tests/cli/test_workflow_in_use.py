"""``prism workflow run`` with files as they are in use."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import Run
from prism.llm import Model
from prism.programs.yaml import Workflow
from prism.testing import FakeOllama
from tests.cli.test_workflow import log_of
from tests.kit.commands import Prism
from tests.kit.models import Filler
from tests.kit.processes import ROOT

# files in use

AGENTS = ROOT / "tests" / "data" / "agents"
OF_HOST = {
    "working_memory": {"aim": "a lamp", "step": "light it"},
    "balance": 100,
    "revenue": 12.5,
    "success_rate": 0.4,
    "artifacts": ["a lamp"],
    "my_artifacts": [],
    "economic_context": "Prices fall.",
    "topic": "lamps",
    "fuel": 3,
}
IN_USE = sorted(path.stem for path in AGENTS.glob("*.yaml"))


@pytest.fixture
def reader() -> Iterator[FakeOllama]:
    """Return a server whose model writes what its schema allows."""
    with FakeOllama(write=Filler()) as running:
        yield running


@pytest.mark.parametrize("name", IN_USE)
@pytest.mark.slow
def test_files_in_use_go_round_their_states(
    tmp_path: Path, reader: FakeOllama, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """They load without a change; agents get to all states, but for those that they never chose."""
    path, model = AGENTS / f"{name}.yaml", Model("llama3.2", hosts=(reader.url,))
    does = {"on_action": lambda action: action.action}
    Run(path, rounds=60, model=model, parameters=OF_HOST, application=does).keep(tmp_path / "run")
    (note,) = (each for each in caplog.messages if "prism ignores" in each)
    assert caplog.messages.count(note) == 1
    moved = [event["to_state"] for event in events_of(tmp_path / "run", "statechart.transition")]
    workflow = Workflow.load(path)
    chosen = {state for step in workflow.steps for state in step.transition_map.values()}
    assert {*map(str, workflow.chart.states)} - chosen <= {*moved, str(workflow.chart.initial)}
    assert len(moved) > 15 or moved[-1] in workflow.chart.final_states


def events_of(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the events of a run's log that have a name."""
    events = map(orjson.loads, log_of(folder).splitlines())
    return [event for event in events if event["event"] == name]


# actions and refusals

ACTING = """\
state_machine:
  states: [a, b]
  final_states: [b]
  transitions: [{from: a, to: b, condition: "last_action_result == 'done'"}]
steps:
  - {name: act, type: llm, prompt: "Act.", transition_to: b}
"""
ACT = '{"reasoning": "so", "action": {"kind": "wait", "for": 3}}'


@pytest.fixture
def acting(prism: Prism) -> Iterator[tuple[object, ...]]:
    """Return the command of a run whose model wants something done in every turn."""
    (prism.folder / "acting.yaml").write_text(ACTING)
    with FakeOllama(write=lambda *_: ACT) as server:
        yield (
            "run",
            "acting.yaml",
            "--rounds",
            3,
            "--model",
            "llama3.2",
            "--host",
            server.url,
        )


def test_the_summary_names_what_was_refused(prism: Prism, acting: tuple[object, ...]) -> None:
    """Step, states, how often and by which condition; run.json has the same."""
    ran = prism(*acting, "--out", "run")
    lines = " ".join(ran.out.split())
    why = "act: a -> b: the condition \"last_action_result == 'done'\" is false"
    assert "refused times" in lines
    assert "is false 3" in lines
    results = json.loads((prism.folder / "run" / "run.json").read_text())["results"]
    assert results["refused"] == {why: 3}


def test_a_note_alone_is_no_finding(prism: Prism) -> None:
    """What is left out beside a workflow is said, and the check has found nothing."""
    (prism.folder / "of_others.yaml").write_text(
        "id: x\nworkflow: {steps: [{name: s, code: ''}]}\n"
    )
    ran = prism("workflow", "check", "of_others.yaml")
    said = "prism: of_others.yaml:1:1: id: prism ignores id\n"
    assert (ran.status, ran.out, ran.err) == (0, "", said)

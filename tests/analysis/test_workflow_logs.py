"""Logs of workflows, read by every table, the report and the conformance check."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prism.analysis import check_log, read_log
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.report import make_report
from prism.runlog import configure
from prism.statechart import Written
from prism.telemetry.events import TEXT_WRITTEN, WORKFLOW_REFUSED, WORKFLOW_STEP
from prism.testing import ScriptedWriter
from tests.kit import tables
from tests.kit.tables import (
    agent_story,
    cascades,
    decisions,
    events_of,
    faults,
    transition_counts,
    violations_of,
)

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


def test_the_transitions_are_those_of_the_chart(log: Path) -> None:
    """Transitions are counted, and agree with the workflow's chart."""
    logs = read_log(log)
    found = transition_counts(logs).select("from_state", "to_state", "trigger", "count").rows()
    assert sorted(found) == [("home", "out", "step", 1), ("out", "home", "step", 1)]
    assert violations_of(check_log(logs, WORKFLOW.chart)).is_empty()
    assert logs.notes == ()


def test_faults_are_steps_texts_and_refusals(log: Path) -> None:
    """Failed steps and texts and refused transitions are rows, alike ones together."""
    rows = faults(read_log(log)).select("fault", "from_state", "trigger", "error", "count").rows()
    assert rows == [
        (
            "step_failed",
            "out",
            "fall",
            "line 1 of the code: ZeroDivisionError: division by zero",
            3,
        ),
        ("step_failed", "home", "go", "E: gone", 1),
        ("text_failed", None, None, "E: gone", 1),
        ("transition_refused", "out", "back", "the condition 'tired' is false", 2),
    ]


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


def test_every_key_can_be_scanned(log: Path) -> None:
    """A scan of one kind of event has all its keys."""
    logs = read_log(log)
    texts = events_of(logs, TEXT_WRITTEN)
    assert texts["key"].to_list() == ["1:go", "2:back", "3:back", "4:back", "5:go"]
    assert texts["source"].to_list() == [*["script"] * 4, "failed"]
    steps = events_of(logs, WORKFLOW_STEP)
    assert steps["seconds"].dtype == pl.Float64()
    assert steps["unknown_variables"].to_list() == [[]] * steps.height


@pytest.mark.parametrize("name", ["state_counts", "dwell_times", "participation", "cascades"])
@pytest.mark.sampled(4)
def test_other_tables_are_made(name: str, log: Path) -> None:
    """Tables of what a workflow may lack are made all the same."""
    make: Callable[[Any], pl.DataFrame] = getattr(tables, name)
    assert make(read_log(log)).width > 1


def test_there_are_no_decisions_or_posts(log: Path) -> None:
    """A text is no decision, and nobody has posted anything."""
    logs = read_log(log)
    assert (decisions(logs).height, cascades(logs).height) == (0, 0)


@pytest.mark.slow
def test_the_report_says_what_went_wrong(log: Path) -> None:
    """The report draws the chart, and its table has failed steps and refused transitions."""
    html = make_report(read_log(log)).html()
    for fault in ("step failed", "text failed", "transition refused"):
        assert f">{fault}</td>" in html
    assert "discarded" not in html
    assert 'class="prism-chart"' in html

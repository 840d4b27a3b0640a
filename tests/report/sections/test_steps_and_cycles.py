"""Steps of workflows and cycles of thinking agents."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.analysis import read_log
from prism.report import Report, make_report
from prism.report._facts.run_facts import facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.agents import agent_rows
from prism.report._sections.numbers import CYCLES, STEPS, key_numbers
from prism.runlog import RunLog, SimulatedClock
from prism.statechart import Cost, Written
from prism.testing import ScriptedWriter
from prism.programs.yaml import Workflow, WorkflowAgent
from tests.kit.cognition import add, thinker, thought
from tests.kit.kept import begin

TURNS = 6
OF_POSTS = ("posts", "Posts", "replied", "reshare", "liked", "No reasoner", "Lorenz")
WALK = """
state_machine: {states: [home, out], transitions: [home->out, out->home]}
steps:
  - {name: count, code: "seen = context.get('seen', 0) + 1"}
  - {name: fall, in_state: out, code: "1 / 0", on_failure: skip}
  - {name: go, in_state: home, code: "pass", transition_to: out}
  - {name: back, in_state: out, run_if: "seen % 2 == 0", code: "pass", transition_to: home}
"""


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of a workflow."""
    file = tmp_path_factory.mktemp("walk") / "walk.yaml"
    file.write_text(WALK)
    begin(Run(file, rounds=TURNS), file.with_suffix(""))
    return file.with_suffix("")


@pytest.fixture(scope="module")
def of_workflow(walked: Path) -> Report:
    """Return the report of the run of a workflow."""
    return make_report(read_log(walked))


@pytest.mark.slow
def test_steps_are_counted_in_their_order(of_workflow: Report) -> None:
    """Each step has a row with how often it ended how, and those without tokens no such column."""
    (facts,) = of_workflow.runs
    assert facts.steps.select("step", "type", "done", "skipped", "failed").rows() == [
        ("count", "code", 6, 0, 0),
        ("go", "code", 3, 0, 0),
        ("fall", "code", 0, 3, 0),
        ("back", "code", 3, 0, 0),
    ]
    html = str(STEPS.make(facts, "1", PageFigures(())))
    assert "skipped" in html
    assert "tokens" not in html


@pytest.mark.slow
async def test_tokens_are_those_of_the_texts(tmp_path: Path) -> None:
    """Tokens of a step are added up over the turns."""
    cost = Cost(0.5, None, None, 1, 5, 7)
    writer = ScriptedWriter({"ask": [Written("a", "model", "a", cost=cost)] * 3})
    workflow = Workflow.from_text("steps: [{name: ask, type: llm, prompt: '?', output: text}]")
    with RunLog(tmp_path / "log.jsonl", SimulatedClock()) as log:
        agent = WorkflowAgent(workflow, writer, logger=log.logger)
        for _ in range(3):
            await agent.turn()

    (facts,), _ = facts_of(read_log(tmp_path / "log.jsonl"))
    (row,) = facts.steps.iter_rows(named=True)
    assert (row["done"], row["seconds"]) == (3, 1.5)
    assert (row["input_tokens"], row["output_tokens"]) == (15, 21)


@pytest.mark.slow
def test_a_run_of_a_workflow_has_nothing_about_posts(
    of_workflow: Report, parse: Callable[[str], Any]
) -> None:
    """Neither sections, key numbers nor columns of agents are about posts or decisions."""
    report = of_workflow
    page = parse(report.html())
    sections = page.all("section")
    assert [section.attributes["id"] for section in sections] == [
        *("numbers", "faults", "turns", "steps", "chart", "agents")
    ]
    shown = " ".join(section.text for section in sections)
    assert [word for word in OF_POSTS if word in shown] == []
    known = {name for name, value in key_numbers(report.runs[0]).items() if value is not None}
    assert known == {
        *("agents", "turns", "turns planned", "seed", "transitions"),
        *("refused transitions", "calls of a model", "actions"),
    }
    columns, rows = agent_rows(report.runs)
    assert columns == ["agent_id", "state", "transitions"]
    assert [row[0] for row in rows] == ["agent"]


@pytest.mark.slow
def test_a_feed_beside_a_workflow_keeps_its_sections(
    walked: Path, folder: Path, parse: Callable[[str], Any]
) -> None:
    """Beside a run of the feed the sections about posts are there, and numbers of it alone."""
    page = parse(make_report(read_log(folder, walked)).html())
    anchors = {section.attributes["id"] for section in page.all("section")}
    assert {"steps", "decisions", "cascades"} <= anchors
    (numbers,) = page.all("table", id="table-numbers")
    assert "posts" in numbers.text


@pytest.mark.slow
def test_an_application_with_posts_and_workflows_shows_both(
    write_log: Callable[..., Path], make: Any
) -> None:
    """Where agents with workflows post, their posts are shown."""
    step = make.event(
        *("workflow.step",),
        **{"agent_id": "ada", "turn": 1, "step": "s", "type": "code", "state": "a"},
        **{"outcome": "done", "seconds": 0.1},
    )
    logs = [
        write_log([make.started(), step, *more], name)
        for name, more in (("q.jsonl", []), ("p.jsonl", [make.post("ada", "p1")]))
    ]
    (quiet, posting), _ = facts_of(read_log(*logs))
    assert (quiet.has_feed, posting.has_feed) == (False, True)


@pytest.fixture(scope="module")
def of_thinking(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return the report on an agent of which one reply is of no use, and another is cut off."""
    path = tmp_path_factory.mktemp("think") / "log.jsonl"
    replies = (
        thought(next_state="executing"),
        add("a", "b"),
        "hello",
        thought(next_state="executing"),
    )
    with RunLog(path, SimulatedClock()) as log:
        agent = thinker([*replies, add("a", "")[:40], thought()], logger=log.logger)
        asyncio.run(agent.run(cycles=6))

    return make_report(read_log(path))


@pytest.mark.slow
def test_cycles_are_counted_by_state(of_thinking: Report) -> None:
    """Each state has a row with how its cycles ended, and the largest prompt."""
    (facts,) = of_thinking.runs
    rows = facts.cycles.select("state", "done", "refused", "unusable", "failed").rows()
    assert rows == [("thinking", 3, 0, 1, 0), ("executing", 1, 1, 0, 0)]
    assert facts.cycles["largest_prompt"].min() > 200
    html = str(CYCLES.make(facts, "1", PageFigures(())))
    assert "refused" in html
    assert "failed" not in html


def test_a_run_of_cycles_has_nothing_about_posts(
    of_thinking: Report, parse: Callable[[str], Any]
) -> None:
    """No section is about posts or decisions, and faults are told in words."""
    page = parse(of_thinking.html())
    sections = page.all("section")
    assert [section.attributes["id"] for section in sections] == [
        *("numbers", "faults", "sizes", "actions", "thoughts", "cycles"),
        *("chart", "states", "dwell", "agents"),
    ]
    shown = " ".join(section.text for section in sections)
    assert "1 reply was of no use, 1 action was refused" in shown
    assert "posts" not in shown

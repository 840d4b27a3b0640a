"""The report of an agent that takes turns of a workflow: states, steps, refusals, calls."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.kept import begin

pytest.importorskip("pydantic_monty")

from prism import Run
from prism.analysis import read_log
from prism.llm import Model
from prism.report import Report, make_report
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.faults import FAULTS
from prism.report._sections.numbers import key_numbers
from prism.report._sections.turns import CALLS, REFUSED, TURNS
from prism.testing import FakeOllama

LAMP = """
state_machine:
  states: [off, on]
  transitions: [{from: off, to: on, condition: "pressed > 2"}, on->off]
steps:
  - {name: press, type: llm, in_state: off, prompt: Press.}
  - name: count
    in_state: off
    code: pressed = context.get('pressed', 0) + 1
    transition_to: on
  - name: look
    type: transition
    in_state: on
    prompt: Well?
    transition_map: {dark: off, bright: on}
"""
OF_FEEDS = ("post", "feed", "like", "reshare", "cascade", "round", "tick", "idle", "time-out")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return the report of six turns: two are refused, and every choice is unclear at first."""
    file = tmp_path_factory.mktemp("lamp") / "lamp.yaml"
    file.write_text(LAMP)
    act = json.dumps({"reasoning": "so", "action": {"kind": "press"}})

    def write(prompt: str, *_: Any) -> str:
        if "Press." in prompt:
            return act
        return "dark" if "Respond with one of" in prompt else "I cannot say."

    with FakeOllama(write=write) as server:
        model = Model("llama3.2", hosts=(server.url,))
        run = Run(file, rounds=6, model=model, echo_actions=True)
        begin(run, file.with_suffix(""))

    return make_report(read_log(file.with_suffix("")))


def test_the_state_of_every_turn_is_drawn(report: Report) -> None:
    """Its table says how many turns ended in each, and how often it was entered."""
    (facts,) = report.runs
    figures = PageFigures(tuple(facts.state_names))
    html = str(TURNS.make(facts, "1", figures))
    (figure,) = figures.charts.values()
    (bars,) = figure.spec["datasets"].values()
    assert [(bar["turn"], bar["state"]) for bar in bars] == [
        (1, "off"), (2, "off"), (3, "on"), (4, "off"), (5, "on"), (6, "off"),
    ]  # fmt: skip
    assert '<td class="number" data-value="4">4</td>' in html


def test_refusals_name_the_condition(report: Report) -> None:
    """Step, states, reason and how often, those of the run alone."""
    (facts,) = report.runs
    assert facts.refused.rows() == [
        ("count", "off", "on", "the condition 'pressed > 2' is false", 2)
    ]
    assert "pressed &gt; 2" in str(REFUSED.make(facts, "1", PageFigures(())))


def test_faults_of_an_agent_alone_are_told_by_turn(report: Report) -> None:
    """What went wrong first did so in a turn: such a run has no rounds."""
    (facts,) = report.runs
    html = str(FAULTS.make(facts, "1", PageFigures(())))
    assert "turn 1, tick" in html
    assert "round" not in html


def test_calls_are_counted_by_step(report: Report) -> None:
    """Requests, those asked again, and what was done of the replies."""
    (facts,) = report.runs
    asked = facts.calls.select("step", "calls", "requests", "asked_again")
    assert asked.rows() == [("press", 4, 4, 0), ("look", 2, 4, 2)]
    assert facts.calls.select("actions", "succeeded").rows() == [(4, 4), (0, 0)]
    assert "asked again" in str(CALLS.make(facts, "1", PageFigures(())))


def test_nothing_of_feeds_is_in_it(report: Report, parse: Callable[[str], Any]) -> None:
    """Neither sections nor words; its length is in turns."""
    page = parse(report.html())
    sections = page.all("section")
    assert [section.attributes["id"] for section in sections] == [
        *("numbers", "faults", "turns", "steps", "refused", "calls", "chart", "costs", "agents")
    ]
    of_turns = [each for each in sections if each.attributes["id"] not in ("faults", "chart")]
    shown = " ".join(section.text for section in of_turns).casefold()
    assert [word for word in OF_FEEDS if word in shown] == []
    numbers = key_numbers(report.runs[0])
    assert (numbers["turns"], numbers["refused transitions"], numbers["actions"]) == (6, 2, 4)
    assert "1 agent, 6 turns, seed 0" in report.html()

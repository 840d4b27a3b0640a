"""``prism chart fits``."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.commands import Prism

AGENTS = """
class Walker:
    def __init__(self):
        self.state = "calm"

    def should_engage(self, relevance):
        return relevance > 0.5


class Ready(Walker):
    pending_action = None


class Towns:
    inner = Ready()


def make():
    walker = Walker()
    walker.pending_action = None
    return walker


def broken():
    raise KeyError("no")
"""

MISSING = {
    "agents:Walker": ["pending_action"],
    "agents:Ready": [],
    "agents:Towns.inner": [],
    "agents:Towns": ["state", "should_engage", "pending_action"],
    "agents:make": [],
    "agents.py:Walker": ["pending_action"],
    "prism.agents:SocialAgent": [],
}

WRONG = {
    "no module": ("nowhere:Agent", ["nowhere", "no module"]),
    "no attribute": ("agents:Nobody", ["agents:Nobody", "'Nobody'"]),
    "no colon": ("agents", ["'agents'", "package.module:attribute"]),
    "a function that fails": ("agents:broken", ["agents:broken", "KeyError"]),
}


@pytest.fixture
def charts(prism: Prism, charts_folder: Path) -> Prism:
    """Return ``prism chart``, in a folder with charts and agents."""
    (charts_folder / "agents.py").write_text(AGENTS, encoding="utf-8")
    return replace(prism, group=("chart",))


@pytest.mark.parametrize("agent", MISSING)
def test_what_is_missing_is_listed(agent: str, charts: Prism) -> None:
    """Each missing name is a line; the status is 1 if there are any, else 0."""
    ran = charts("fits", "social_media", agent)
    assert ran.out.splitlines() == [f"missing: {name}" for name in MISSING[agent]]
    assert (ran.status, ran.err) == (1 if MISSING[agent] else 0, "")


@pytest.mark.parametrize("agent", MISSING)
def test_json_lists_the_same(agent: str, charts: Prism) -> None:
    """``--json`` prints chart, agent and names, with the same statuses."""
    ran = charts("fits", "social_media", agent, "--json")
    assert json.loads(ran.out) == {
        "chart": "social_media",
        "agent": agent,
        "missing": MISSING[agent],
    }
    assert ran.status == (1 if MISSING[agent] else 0)


def test_a_chart_without_needs_says_so(charts: Prism) -> None:
    """Where a chart declares no needs, a note says that only the state counts."""
    ran = charts("fits", "doors.json", "agents:Walker")
    assert (ran.status, ran.out) == (0, "")
    assert "chart 'doors' declares no needs" in ran.err


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_line_and_status_2(case: str, charts: Prism) -> None:
    """Wrong input ends with status 2 and one line that names it."""
    agent, named = WRONG[case]
    ran = charts("fits", "social_media", agent)
    assert (ran.status, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert [words for words in named if words not in line] == []


def test_show_lists_the_needs(charts: Prism) -> None:
    """``show`` says what a chart needs, if it declares anything."""
    line = "The agent needs these attributes: should_engage, pending_action"
    assert line in charts("show", "social_media").out.splitlines()
    assert "needs these attributes" not in charts("show", "doors.json").out


def test_a_world_in_the_place_of_a_chart_is_told(prism: Prism) -> None:
    """The name of a world, given as a chart, leads to the command that shows the world's."""
    said = prism("chart", "show", "rumour")
    assert (said.status, said.out) == (2, "")
    assert "prism world show rumour" in said.err

"""``prism chart``, ``workflow`` and ``think``: documents of agents, shown, drawn and checked."""

import json

import pytest

from prism.programs.thinking import Config
from prism.statechart import Statechart, social, social_media_chart
from tests.kit.commands import Argument, Prism

MODULE = """
from prism.statechart import Statechart, Transition, state_enum

Mood = state_enum("Mood", ["calm", "angry", "lost"])
bumped = Transition("bumped", Mood("calm"), Mood("angry"), guard=lambda agent, force: force > 3)
chart = Statechart(Mood, [bumped], Mood("calm"), name="moods")


def make():
    return chart
"""

DOCUMENT = {
    "schema": 2,
    "name": "doors",
    "states": ["open", "shut"],
    "initial": "shut",
    "transitions": [
        {"trigger": "push", "source": "shut", "target": "open", "guard": "g", "action": "creak"},
        {"trigger": "timeout", "source": "open", "target": "shut"},
    ],
    "timeouts": {"open": 3},
}


WORKFLOW = """\
state_machine: {states: [a, b]}
steps:
  - {name: ask, type: llm, prompt: "You have {balance}", transition_to: b}
"""
EVALUATING = ("social_media", "decides", "--state", "evaluating")


@pytest.fixture
def charts(prism: Prism) -> Prism:
    """Return the command line in a folder with charts, a workflow and a configuration."""
    (prism.folder / "doors.json").write_text(json.dumps(DOCUMENT))
    (prism.folder / "moods.py").write_text(MODULE)
    (prism.folder / "agent.yaml").write_text(WORKFLOW)
    (prism.folder / "config.json").write_text('{"agent": {"iterate": {"max_iterations": 0}}}')
    return prism


def test_show_prints_states_and_transitions(charts: Prism) -> None:
    """States have their marks and limits, and transitions their guards."""
    ran = charts("chart", "show", "social_media")
    assert (ran.status, ran.err) == (0, "")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    for line in (
        "social_media: 8 states, 27 transitions",
        "idle initial",
        "evaluating decision",
        "resting time-out after 2 ticks",
        "evaluating decides [should_engage] composing",
    ):
        assert line in lines
    assert max(map(len, ran.out.splitlines())) <= 80


def test_an_exported_chart_loads_back(charts: Prism) -> None:
    """The social chart's JSON, written to a file, is a chart again, equal to the original."""
    ran = charts("chart", "export", "social_media", "--format", "json", "-o", "social.json")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    text = (charts.folder / "social.json").read_text("utf-8")
    assert Statechart.from_json(text, guards=vars(social)) == social_media_chart()
    assert charts("chart", "check", "social.json").status == 0


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        (("chart", "export", "social_media", "--format", "svg"), b"<svg"),
        (("chart", "export", "moods:make", "--format", "dot"), b"digraph"),
        (("chart", "export", "agent.yaml", "--format", "dot"), b"digraph"),
        (("workflow", "diagram", "agent.yaml"), b"stateDiagram-v2"),
    ],
)
def test_charts_are_drawn(line: tuple[str, ...], begins: bytes, charts: Prism) -> None:
    """Charts of every origin are written in every format."""
    ran = charts(*line)
    assert (ran.status, ran.err) == (0, "")
    assert ran.stdout.startswith(begins)


def test_check_lists_findings(charts: Prism) -> None:
    """Each finding is a line, with its kind; the exit status is 1."""
    ran = charts("chart", "check", "moods:chart")
    assert ran.status == 1
    kinds = [line.partition(": ")[0] for line in ran.out.splitlines()]
    assert kinds == ["unreachable", "no_way_out", "no_way_out"]
    found = json.loads(charts("chart", "check", "moods:chart", "--json").out)
    assert (found["chart"], found["findings"][0]["state"]) == ("moods", "lost")


def test_explain_shows_every_candidate(charts: Prism) -> None:
    """The outcome of each guard and that of the event are shown; a social chart has its agent."""
    ran = charts("chart", "explain", *EVALUATING, "--context", "0.9")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[1:] == [
        "  passed     evaluating --decides--> composing [should_engage]",
        "  passed     evaluating --decides--> engaging_like [should_engage]",
        "  passed     evaluating --decides--> scrolling",
        "  fire moves the agent to 'composing'",
        "  afire asks the reasoner to choose from composing, engaging_like, scrolling",
    ]
    pending = ("--state", "composing", "--agent", '{"pending_action": "reshare"}')
    ran = charts("chart", "explain", "social_media", "compose_done", *pending)
    assert "fire moves the agent to 'engaging_reshare'" in ran.out
    ran = charts("chart", "explain", "social_media", "nothing", "--state", "idle", "--json")
    said = json.loads(ran.out)["summary"]
    assert (ran.status, "only to feed_ready (" in said) == (1, True)


def test_workflow_check_reads_both_kinds_of_agents(charts: Prism) -> None:
    """Each problem is a line of file, line, column and message; status 1, as data as well."""
    ran = charts("workflow", "check", "agent.yaml")
    assert (ran.status, ran.out) == (0, "")
    ran = charts("workflow", "check", "config.json", "--json")
    assert [each["severity"] for each in json.loads(ran.out)["problems"]] == ["error"]
    (charts.folder / "config.json").write_text("{}")
    assert charts("workflow", "check", "config.json").status == 0


def test_think_init_writes_what_is_valid_and_overwrites_nothing(charts: Prism) -> None:
    """The files are a configuration without problems and an empty memory."""
    ran = charts("think", "init", "story", "--goal", "a story")
    files = "story/config.json --memory story/memory.json"
    assert (ran.status, ran.out.splitlines()[-1]) == (0, f"next: prism run {files} --model NAME")
    assert Config.load(charts.folder / "story" / "config.json").goal == "a story"
    again = charts("think", "init", "story")
    assert again.err == "prism: story/config.json: already exists and would be overwritten\n"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (("chart", "show", "nowhere.json"), "nowhere.json: there is no such file"),
        (("chart", "show", "nothing"), "there is no chart 'nothing': use a built-in one"),
        (("chart", "show", "moods:lost"), "moods:lost: 'moods' has no 'lost'"),
        (("chart", "show", "json:dumps"), "json:dumps"),
        (("chart", "export", "social_media", "--format", "jpg"), "mermaid"),
        (("chart", "export", "moods:chart", "--format", "json"), "calm --bumped--> angry"),
        (("chart", "export", "doors.json", "--format", "svg", "-o", "doors.json"), "doors.json"),
        (("chart", "explain", "social_media", "x", "--state", "idel"), "--state: "),
        (("chart", "explain", *EVALUATING, "--context", "{"), "--context is not valid JSON"),
        (("workflow", "check", "broken.yaml"), "broken.yaml"),
    ],
)
@pytest.mark.sampled(6)
def test_mistakes_are_one_line(line: tuple[Argument, ...], problem: str, charts: Prism) -> None:
    """Wrong input ends with status 2 and one line that names it; no file is changed."""
    (charts.folder / "broken.yaml").write_text("steps: [\n")
    before = {path: path.read_bytes() for path in charts.folder.glob("*.json")}
    ran = charts(*line)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert problem in ran.err
    assert {path: path.read_bytes() for path in charts.folder.glob("*.json")} == before

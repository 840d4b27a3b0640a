"""``prism chart explain``."""

import json
from collections.abc import Callable

import pytest

from tests.kit.commands import Prism

MODULE = """
from prism.statechart import Statechart, Transition, state_enum

Mood = state_enum("Mood", ["calm", "angry"])


def is_strong(agent, force):
    return force > agent.patience


chart = Statechart(
    Mood,
    [Transition("bumped", Mood("calm"), Mood("angry"), guard=is_strong)],
    Mood("calm"),
    name="moods",
)
"""

EVALUATING = ("social_media", "decides", "--state", "evaluating")
BUMPED = ("moods_for_explain:chart", "bumped", "--state", "calm")

Explain = Callable[..., tuple[int, str]]


@pytest.fixture
def explain(prism: Prism) -> Explain:
    """Return a function that runs the command and returns its status and output."""

    def run(*arguments: str) -> tuple[int, str]:
        ran = prism("chart", "explain", *arguments)
        assert ran.err == ""
        return ran.status, ran.out

    return run


@pytest.fixture
def _moods(prism: Prism) -> None:
    """Put a chart whose guard reads a field of the agent into the current folder."""
    (prism.folder / "moods_for_explain.py").write_text(MODULE, encoding="utf-8")


def test_command_explains(prism: Prism) -> None:
    """The command shows every candidate, the outcome of its guard, and that of the event."""
    ran = prism("chart", "explain", *EVALUATING, "--context", "0.9")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "agent 'agent' in 'evaluating', event 'decides', chart 'social_media':",
        "  passed     evaluating --decides--> composing [should_engage]",
        "  passed     evaluating --decides--> engaging_like [should_engage]",
        "  passed     evaluating --decides--> scrolling",
        "  fire moves the agent to 'composing'",
        "  afire asks the reasoner to choose from composing, engaging_like, scrolling",
    ]


def test_agent_of_the_social_chart_is_a_social_agent(explain: Explain) -> None:
    """A chart of social agents gets a social agent, with its pending action."""
    persona = '{"agent_id": "ada", "interests": ["music"], "engagement_threshold": 0.2}'
    _, shown = explain(*EVALUATING, "--context", '{"topics": ["music"]}', "--agent", persona)
    assert "agent 'ada' in 'evaluating'" in shown
    assert "passed     evaluating --decides--> composing" in shown
    status, shown = explain(
        "social_media",
        "compose_done",
        "--state",
        "composing",
        "--agent",
        '{"pending_action": "reshare"}',
    )
    assert (status, "fire moves the agent to 'engaging_reshare'" in shown) == (0, True)


@pytest.mark.usefixtures("_moods")
@pytest.mark.parametrize(("patience", "status", "outcome"), [(3, 0, "passed"), (9, 1, "failed")])
def test_agent_of_another_chart_has_the_fields_given(
    explain: Explain, patience: int, status: int, outcome: str
) -> None:
    """Another chart gets an agent with just the fields given; status 1 means no transition."""
    found, shown = explain(*BUMPED, "--context", "5", "--agent", json.dumps({"patience": patience}))
    assert (found, shown.splitlines()[1]) == (
        status,
        f"  {outcome:<9}  calm --bumped--> angry [is_strong]",
    )


def test_the_state_may_be_a_configuration(prism: Prism, explain: Explain) -> None:
    """An agent of a chart with regions is in a leaf of each."""
    module = "from tests.testing.paths import regions\nchart = regions()\n"
    (prism.folder / "regions_for_explain.py").write_text(module, encoding="utf-8")
    status, shown = explain("regions_for_explain:chart", "x", "--state", "a+c")
    assert (status, shown.splitlines()[-1]) == (0, "  fire moves the agent to 'b+c'")


LIKE_A_FEED = """
from prism.statechart import AgentState, Statechart, Transition, state_enum


def is_social(agent, _context):
    return hasattr(agent, "interests")


def chart(states):
    moves = [Transition("look", states("idle"), states("scrolling"), guard=is_social)]
    return Statechart(states, moves, states("idle"), name="like_a_feed")


few = chart(state_enum("Few", ["idle", "scrolling"]))
more = chart(state_enum("More", [*AgentState, "muting"]))
"""


@pytest.mark.parametrize("chart", ["few", "more"])
def test_agent_of_a_chart_like_the_social_one_is_a_social_agent(
    chart: str, explain: Explain, prism: Prism
) -> None:
    """A chart with some of a feed's states, or with states besides them, is for social agents."""
    (prism.folder / f"like_{chart}.py").write_text(LIKE_A_FEED, encoding="utf-8")
    _, said = explain(f"like_{chart}:{chart}", "look", "--state", "idle", "--json")
    assert json.loads(said)["target"] == "scrolling"


@pytest.mark.usefixtures("_moods")
def test_guard_that_raises_is_shown(explain: Explain) -> None:
    """If the agent lacks a field, the guard's exception is shown."""
    status, shown = explain(*BUMPED, "--context", "5")
    assert status == 1
    assert "raised     calm --bumped--> angry [is_strong]: AttributeError" in shown
    assert "patience" in shown


def test_json_is_the_explanation_as_data(explain: Explain) -> None:
    """As JSON the whole explanation can be read by a program."""
    status, shown = explain("social_media", "nothing", "--state", "idle", "--json")
    assert status == 1
    assert json.loads(shown) == {
        "chart": "social_media",
        "agent": "agent",
        "state": "idle",
        "trigger": "nothing",
        "candidates": [],
        "outcome": "no reaction",
        "target": None,
        "options": [],
        "reacts_to": ["feed_ready"],
    }


@pytest.mark.parametrize(
    ("arguments", "field", "problem"),
    [
        (
            ("--state", "idel"),
            "--state",
            "chart 'social_media' has no state 'idel': use one of idle, scrolling",
        ),
        (("--state", "idle", "--context", "{"), "--context", "is not valid JSON"),
        (
            ("--state", "idle", "--agent", '{"shoe_size": 9}'),
            "--agent",
            "unexpected keyword argument 'shoe_size'",
        ),
    ],
)
def test_wrong_option_is_named(
    prism: Prism, arguments: tuple[str, ...], field: str, problem: str
) -> None:
    """A wrong value is reported with its option."""
    ran = prism("chart", "explain", "social_media", "feed_ready", *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"prism: {field}")
    assert problem in ran.err

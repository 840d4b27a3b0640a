"""Explaining what an event would do, and why."""

import asyncio
import copy
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prism.agents import SocialAgent
from prism.errors import DefinitionError, UnknownTriggerError
from prism.statechart import AgentState, Statechart, Transition
from tests.statechart.nested.phone import whole_phone
from tests.statechart.nested.random_charts import EVENTS, make_twins

IDLE, SCROLLING, EVALUATING, RESTING = (
    AgentState.IDLE,
    AgentState.SCROLLING,
    AgentState.EVALUATING,
    AgentState.RESTING,
)


class Guard:
    """A guard with a fixed outcome that counts how often it is asked."""

    def __init__(self, outcome: object) -> None:
        self.__name__ = f"is_{outcome}"
        self.outcome = outcome
        self.asked = 0

    def __call__(self, agent: Any, context: Any) -> object:
        self.asked += 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def chart_of(
    *outcomes: object, decides: bool = False, strict: bool = False
) -> Statechart[AgentState]:
    """Make a chart with ``go`` from IDLE to each other state, by guards with these outcomes."""
    targets = (SCROLLING, EVALUATING, RESTING)
    return Statechart(
        AgentState,
        [
            Transition("go", IDLE, target, Guard(outcome))
            for target, outcome in zip(targets, outcomes, strict=False)
        ],
        IDLE,
        name="test",
        decision_states=[IDLE] if decides else [],
        strict=strict,
    )


def test_data_is_plain() -> None:
    """As data an explanation holds texts, lists and None only."""
    explanation = chart_of(LookupError("x"), True, decides=True).explain(
        SimpleNamespace(state=IDLE, name="ada"), "go"
    )
    assert explanation.to_dict() == {
        "chart": "test",
        "agent": "ada",
        "state": "idle",
        "trigger": "go",
        "candidates": [
            "raised     idle --go--> scrolling [is_x]: LookupError: x",
            "passed     idle --go--> evaluating [is_True]",
        ],
        "outcome": "moves",
        "summary": "fire moves the agent to 'evaluating'",
        "target": "evaluating",
        "options": [],
    }
    typo = chart_of(True).explain(SimpleNamespace(state=IDLE, name="ada"), "goo")
    assert typo.outcome == "no reaction"
    assert "does not react to it, only to go (" in typo.summary
    assert "; did you mean 'go'?" in str(typo)


class _First:
    """A reasoner that notes its options and takes the last."""

    asked: tuple[Any, ...] = ()

    async def decide(
        self, agent: Any, current_state: Any, trigger: str, options: list[Any], context: Any = None
    ) -> Any:
        self.asked = tuple(options)
        return options[-1]


@pytest.mark.usefixtures("_faults_unheard")
@example(outcomes=[True, "raise", True], decides=True, strict=True)
@given(
    outcomes=st.lists(st.sampled_from([True, False, "raise"]), max_size=3),
    decides=st.booleans(),
    strict=st.booleans(),
)
def test_explanation_foretells_fire_and_afire(
    outcomes: list[Any], decides: bool, strict: bool
) -> None:
    """fire does what the explanation says, afire asks for its options, and nothing changes."""
    given = [LookupError("raised") if outcome == "raise" else outcome for outcome in outcomes]
    chart = chart_of(*given, decides=decides, strict=strict)
    agent = SocialAgent("ada")
    before = copy.deepcopy(vars(agent))
    explanation = chart.explain(agent, "go")
    assert vars(agent) == before
    reasoner = _First()
    try:
        asyncio.run(chart.afire(SocialAgent("bo"), "go", reasoner=reasoner))
    except (LookupError, UnknownTriggerError):
        assert strict
    assert explanation.options == reasoner.asked
    if explanation.outcome == "raises":
        # as by fire, none is asked after the one that raised
        assert [line.split()[0] for line in explanation.candidates].count("raised") == 1
    try:
        assert chart.fire(agent, "go") is explanation.target
    except LookupError:
        assert explanation.outcome == "raises"
    except UnknownTriggerError:
        assert explanation.outcome == "no reaction"


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sampled(20)
def test_an_explanation_says_what_the_first_step_does(seed: int) -> None:
    """In random charts, where nothing follows of itself."""
    try:
        twins = make_twins(seed, settles=False)
    except DefinitionError:
        return
    chart, agent, rng = twins.chart, twins.agent, Random(seed)
    chart.begin(agent)
    for _ in range(20):
        event = rng.choice([each for each in EVENTS if each in chart.triggers] or ["a"])
        expected = chart.explain(agent, event)
        made = chart.fire(agent, event)
        assert (made is not None) == (expected.outcome in ("moves", "stays"))
        assert made is None or made == expected.target


class Closed:
    """Who has room for a state alone, so that its histories are kept beside it."""

    __slots__ = ("__weakref__", "notes", "state")

    def __init__(self) -> None:
        self.notes: list[str] = []


def test_a_history_that_is_kept_beside_an_agent_is_known() -> None:
    """The explanation leads where the event does."""
    chart, agent = whole_phone(), Closed()
    chart.begin(agent)
    for event in ("opens", "writes", "rings"):
        chart.fire(agent, event)
    assert chart.explain(agent, "resumes").target == "replying" == chart.fire(agent, "resumes")

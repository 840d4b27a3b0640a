"""A reasoner that answers from a script."""

from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from prism.agents import SocialAgent, synthetic_population
from prism.social import Simulation
from prism.statechart import AgentState, Question, social_media_chart
from prism.testing import ScriptedReasoner, ScriptMaker

CHART = social_media_chart()


def evaluating(name: str = "ada") -> SocialAgent:
    """Make an agent that has a decision to take."""
    return SocialAgent(name, interests=["music"], personality="calm", state=AgentState.EVALUATING)


async def decide(reasoner: ScriptedReasoner, name: str = "ada") -> Any:
    """Let an agent decide on something that concerns it, and give its state."""
    return await CHART.afire(evaluating(name), "decides", 0.9, reasoner=reasoner)


async def test_answers_come_in_order() -> None:
    """A list is answered from front to back, by states or their texts."""
    reasoner = ScriptedReasoner(["engaging_like", AgentState.SCROLLING])
    assert [await decide(reasoner), await decide(reasoner)] == ["engaging_like", "scrolling"]
    assert [question.agent.agent_id for question in reasoner.questions] == ["ada", "ada"]
    reasoner.assert_used_up()


@pytest.mark.parametrize(
    "matcher",
    [
        "ada",
        "decides",
        "evaluating",
        AgentState.EVALUATING,
        lambda question: question.context > 0.5,
    ],
)
async def test_rule_by_agent_trigger_state_or_predicate(matcher: Any) -> None:
    """A rule answers questions by agent, trigger, state or predicate."""
    reasoner = ScriptedReasoner({"nobody": ["scrolling"], matcher: "engaging_like"})
    assert [await decide(reasoner), await decide(reasoner)] == ["engaging_like", "engaging_like"]
    assert reasoner.left_over() == ["nobody: scrolling"]


async def test_ids_may_be_numbers() -> None:
    """An agent with a number for an id is named in a rule by the number or by itself."""

    class Walker(SimpleNamespace):
        def should_engage(self, context: Any) -> bool:
            return True

        __hash__ = object.__hash__  # type: ignore[assignment]

    agents = [Walker(unique_id=number, state=AgentState.EVALUATING) for number in (1, 2, 3)]
    reasoner = ScriptedReasoner(
        {1: "composing", agents[1]: "scrolling", 7: "resting", "3": "engaging_like"}
    )
    found = [await CHART.afire(agent, "decides", reasoner=reasoner) for agent in agents]
    assert found == ["composing", "scrolling", "engaging_like"]
    assert reasoner.left_over() == ["7: resting"]


async def test_first_matching_rule_answers() -> None:
    """Of several rules that fit the first with an answer left is taken."""
    reasoner = ScriptedReasoner({"ada": ["engaging_like"], "decides": "scrolling"})
    found = [await decide(reasoner), await decide(reasoner), await decide(reasoner, "bo")]
    assert found == ["engaging_like", "scrolling", "scrolling"]


async def test_unexpected_question_shows_the_prompt() -> None:
    """A question without an answer fails, with the agent, the options and the model's prompt."""
    reasoner = ScriptedReasoner([])
    with pytest.raises(AssertionError) as caught:
        await decide(reasoner)
    text = str(caught.value)
    assert (
        "question 1, of agent 'ada' in 'evaluating' on 'decides': the script has no answer" in text
    )
    assert "options: composing, engaging_like, scrolling" in text
    assert "You are ada, a social media user." in text
    assert "Your personality: calm" in text
    assert '{"next_state": "<state_value>"}' in text


async def test_answer_outside_the_options_fails() -> None:
    """An answer that is none of the options fails, and the agent stays where it is."""
    reasoner, agent = ScriptedReasoner(["resting"]), evaluating()
    with pytest.raises(AssertionError, match="'resting', which is not among the options"):
        await CHART.afire(agent, "decides", 0.9, reasoner=reasoner)
    assert agent.state is AgentState.EVALUATING


async def test_swallowed_failure_is_raised_at_the_end() -> None:
    """A failure that the application has swallowed is raised at the end of the test."""
    reasoner = ScriptedReasoner([])
    with pytest.raises(AssertionError):
        await decide(reasoner)
    with pytest.raises(AssertionError, match="question 1, of agent 'ada'"):
        reasoner.assert_used_up()


def test_unused_answers_fail() -> None:
    """Answers and rules that nothing was asked for are named."""
    with pytest.raises(
        AssertionError, match="after 0 questions the script has answers left over: composing, idle"
    ):
        ScriptedReasoner(["composing", AgentState.IDLE]).assert_used_up()

    def by_hand(question: Question) -> bool:
        return True

    reasoner = ScriptedReasoner({"ada": ["idle"], AgentState.IDLE: "resting", by_hand: "idle"})
    assert reasoner.left_over() == ["ada: idle", "idle: resting", "by_hand: idle"]


async def test_maker_checks_all_it_made() -> None:
    """A maker checks every reasoner it has made."""
    make = ScriptMaker()
    await decide(make(["scrolling"]))
    make.assert_used_up()
    make(["scrolling"])
    with pytest.raises(AssertionError, match="left over: scrolling"):
        make.assert_used_up()


@pytest.mark.parametrize(
    ("script", "mend"),
    [
        ("engaging_like", r"write \['engaging_like'\]"),
        (AgentState.IDLE, r"write \[<AgentState.IDLE: 'idle'>\]"),
        (3, r"write \[3\]"),
        ((answer for answer in ["composing"]), r"got <generator .*: write list\(\.\.\.\) of it"),
        ({"composing"}, r"write list\(\.\.\.\) of it"),
    ],
)
def test_script_must_be_a_list_or_rules(script: Any, mend: str) -> None:
    """What is no list and no mapping is refused, with the list to write instead."""
    with pytest.raises(TypeError, match="a list of answers or a mapping of rules.*" + mend):
        ScriptedReasoner(script)


async def test_decisions_are_announced() -> None:
    """A scripted decision is an event like any other reasoner's."""
    with capture_logs() as entries:
        await decide(ScriptedReasoner(["engaging_like"]))
    (event,) = [entry for entry in entries if entry["event"] == "reasoner.decision"]
    assert (event["chosen"], event["source"]) == ("engaging_like", "policy")


def test_drives_a_simulation() -> None:
    """A simulation takes its decisions from a script."""
    reasoner = ScriptedReasoner({"evaluating": "engaging_like"})
    population = synthetic_population(5, seed=1)
    results = Simulation(population.agents, population.posts, rounds=1, reasoner=reasoner).run()
    assert reasoner.questions
    assert results.totals.likes == len(reasoner.questions)

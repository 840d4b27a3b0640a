"""Tests of the reasoners for tests."""

from types import SimpleNamespace
from typing import Any

import pytest

from prism.agents import SocialAgent
from prism.statechart import AgentState, Decision, PolicyReasoner, Question, social_media_chart
from prism.testing import (
    FailingReasoner,
    LateReasoner,
    RecordingReasoner,
    ScriptedReasoner,
    ScriptMaker,
)

CHART = social_media_chart()

S = AgentState
OPTIONS = (S.COMPOSING, S.SCROLLING)


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


def crowd(size: int) -> list[Question]:
    """Return a question to each of several agents."""
    return [
        Question(SimpleNamespace(agent_id=f"a{number}"), S.EVALUATING, "decides", OPTIONS)
        for number in range(size)
    ]


@pytest.mark.parametrize("kind", [RecordingReasoner, LateReasoner])
async def test_answers_are_those_of_the_wrapped_reasoner(kind: type[RecordingReasoner]) -> None:
    """A wrapper answers like the wrapped reasoner, by default the policy."""
    wanted = await PolicyReasoner(3).decide_many(crowd(20))
    assert await kind(PolicyReasoner(3)).decide_many(crowd(20)) == wanted
    assert await kind().decide_many(crowd(20)) == await PolicyReasoner().decide_many(crowd(20))


async def test_questions_are_recorded_by_call() -> None:
    """The questions of every call are kept, together and call by call."""
    recording, (first, second, third) = RecordingReasoner(), crowd(3)
    await recording.decide_many([first, second])
    await recording.decide_many([third])
    assert recording.batches == [(first, second), (third,)]
    assert recording.questions == [first, second, third]


async def test_concurrency_is_that_of_the_wrapped_reasoner() -> None:
    """A wrapper takes as many questions at once as the wrapped reasoner, unless it answers late."""
    late = LateReasoner(concurrency=7)
    assert (RecordingReasoner(late).concurrency, FailingReasoner(KeyError(), late).concurrency) == (
        7,
        7,
    )
    assert RecordingReasoner().concurrency == 0


async def test_late_answers_overtake_each_other_in_the_same_way_for_a_seed() -> None:
    """Answers come out of order, how many depends on the seed alone; none is left under way."""
    late, again = LateReasoner(seed=1), LateReasoner(seed=1)
    for reasoner in (late, again):
        await reasoner.decide_many(crowd(20))
        assert (reasoner.under_way, len(reasoner.questions)) == ([], 20)
    assert late.overtaken == again.overtaken > 0
    assert late.most_at_once == again.most_at_once > 10


async def test_without_turns_to_wait_answers_stay_in_order() -> None:
    """A late reasoner with no turns to wait answers each question before the next."""
    reasoner = LateReasoner(most_turns=0)
    await reasoner.decide_many(crowd(20))
    assert (reasoner.overtaken, reasoner.most_at_once) == (0, 1)


async def test_a_failure_comes_at_its_question() -> None:
    """Only the call with the failing question raises; those before and after it are answered."""
    failing = FailingReasoner(LookupError("gone"), ScriptedReasoner({"decides": "scrolling"}), at=4)
    assert len(await failing.decide_many(crowd(3))) == 3
    with pytest.raises(LookupError, match="gone"):
        await failing.decide_many(crowd(2))
    assert len(await failing.decide_many(crowd(3))) == 3
    assert len(failing.questions) == 8


async def test_a_failure_may_be_an_impossible_decision() -> None:
    """A decision given as the failure takes the place of the right one, whatever it chooses."""
    wrong = Decision("flying", "policy")
    decisions = await FailingReasoner(wrong, at=2).decide_many(crowd(3))
    assert [decision is wrong for decision in decisions] == [False, True, False]

"""A reasoner and a writer that follow a script."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from prism.agents import SocialAgent
from prism.reasoner import TextCall, Written
from prism.statechart import AgentState, social_media_chart
from prism.testing import ScriptedReasoner, ScriptedWriter

CHART = social_media_chart()


def evaluating(name: str = "ada") -> SocialAgent:
    """Make an agent that has a decision to make."""
    return SocialAgent(name, interests=["music"], personality="calm", state=AgentState.EVALUATING)


async def decide(reasoner: ScriptedReasoner, name: str = "ada") -> Any:
    """Let an agent decide on something that concerns it, and give its state."""
    return await CHART.afire(evaluating(name), "decides", 0.9, reasoner=reasoner)


def call(key: str = "1:see", agent: str = "ada", **changes: Any) -> TextCall:
    return TextCall(agent, key, f"Prompt of {key}.", **changes)


async def write(writer: ScriptedWriter, *calls: TextCall) -> list[Any]:
    return [written.text for written in await writer.write_many(calls)]


async def test_replies_come_in_order() -> None:
    """A list is used from front to back: states or their texts, texts or objects."""
    reasoner = ScriptedReasoner(["engaging_like", AgentState.SCROLLING])
    assert [await decide(reasoner), await decide(reasoner)] == ["engaging_like", "scrolling"]
    assert [question.agent.agent_id for question in reasoner.questions] == ["ada", "ada"]
    reasoner.assert_used_up()

    writer = ScriptedWriter(["one", {"n": 2}])
    assert await write(writer, call(), call("2:act")) == ["one", '{"n": 2}']
    assert [asked.key for asked in writer.calls] == ["1:see", "2:act"]
    writer.assert_used_up()


@pytest.mark.parametrize(
    "matcher",
    ["ada", "decides", "evaluating", AgentState.EVALUATING, lambda asked: asked.context > 0.5],
)
async def test_a_rule_answers_by_agent_trigger_state_or_predicate(matcher: Any) -> None:
    """The first rule that matches answers every such question."""
    reasoner = ScriptedReasoner({"nobody": ["scrolling"], matcher: "engaging_like"})
    assert [await decide(reasoner), await decide(reasoner)] == ["engaging_like", "engaging_like"]
    assert reasoner.left_over() == ["nobody: scrolling"]


@pytest.mark.parametrize("matcher", ["ada", "1:see", "see", lambda asked: "of 1" in asked.prompt])
async def test_a_rule_writes_by_agent_key_step_or_predicate(matcher: Any) -> None:
    """The first rule that matches writes for every such call."""
    writer = ScriptedWriter({"bo": ["no"], matcher: "yes"})
    assert await write(writer, call(), call()) == ["yes", "yes"]
    assert writer.left_over() == ["bo: no"]


async def test_the_first_rule_with_a_reply_left_is_used() -> None:
    """Of several rules that match, one whose list is used up is passed over."""
    writer = ScriptedWriter({"ada": ["first"], "see": "then"})
    assert await write(writer, call(), call(), call(agent="bo")) == ["first", "then", "then"]


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


async def test_a_function_gives_every_reply() -> None:
    """A function is asked each time, and has nothing left over."""
    writer = ScriptedWriter(lambda asked: {"key": asked.key})
    assert json.loads((await write(writer, call()))[0]) == {"key": "1:see"}
    assert await decide(ScriptedReasoner(lambda question: question.options[-1])) == "scrolling"
    assert writer.left_over() == []


async def test_a_failure_may_be_scripted() -> None:
    """A whole answer is given as it is, such as a failure of the model."""
    gone = Written(None, "failed", reason="gone")
    assert await ScriptedWriter([gone]).answer([call()]) == [gone]
    assert await ScriptedWriter({"see": gone}).answer([call(), call()]) == [gone, gone]


async def test_a_useless_text_is_asked_again() -> None:
    """Each text is what one request brings: the next is taken while the call may be asked again."""
    writer = ScriptedWriter(["x", "y", "[3]", "[4]"])
    (written,) = await writer.answer([call(read=json.loads, tries=4)])
    assert (written.value, written.source, writer.left_over()) == ([3], "script", ["[4]"])
    (failed,) = await ScriptedWriter(["x", "y"]).answer([call(read=json.loads, tries=2)])
    assert (failed.text, failed.source) == ("y", "failed")
    (once,) = await ScriptedWriter(["x", "[1]"]).answer([call(read=json.loads)])
    assert once.has_failed


ASKING: list[Any] = [
    pytest.param(
        ScriptedReasoner([]),
        decide,
        [
            "question 1, of agent 'ada' in 'evaluating' on 'decides': the script has no answers",
            "options: composing, engaging_like, scrolling",
            "Your personality: calm",
            '{"next_state": "<state_value>"}',
        ],
        id="question",
    ),
    pytest.param(
        ScriptedReasoner(["resting"]),
        decide,
        ["'resting', which is not among the options", "You are ada, a social media user."],
        id="no option",
    ),
    pytest.param(
        ScriptedWriter({"see": []}),
        lambda writer: write(writer, call("2:see")),
        ["call 1, '2:see' of agent 'ada': the script has no texts for it", "Prompt of 2:see."],
        id="call",
    ),
]


@pytest.mark.parametrize(("double", "ask", "parts"), ASKING)
async def test_what_is_unexpected_shows_the_prompt(
    double: Any, ask: Callable[[Any], Any], parts: list[str]
) -> None:
    """It fails with the prompt, and again at the end in case the application swallowed that."""
    with pytest.raises(AssertionError) as caught:
        await ask(double)
    with pytest.raises(AssertionError) as again:
        double.assert_used_up()
    for part in parts:
        assert part in str(caught.value)
        assert part in str(again.value)


def by_hand(asked: Any) -> bool:
    return True


def test_unused_replies_fail() -> None:
    """Replies and rules that nothing was asked for are named, long ones by their beginning."""
    message = "after 0 questions the script has answers left over: composing, idle"
    with pytest.raises(AssertionError, match=message):
        ScriptedReasoner(["composing", AgentState.IDLE]).assert_used_up()
    reasoner = ScriptedReasoner({"ada": ["idle"], AgentState.IDLE: "resting", by_hand: "idle"})
    assert reasoner.left_over() == ["ada: idle", "idle: resting", "by_hand: idle"]
    writer = ScriptedWriter({"ada": ["x"], "see": {"n": 1}, by_hand: "y" * 99})
    assert writer.left_over() == ["ada: x", "see: {'n': 1}", f"by_hand: {'y' * 57}..."]


@pytest.mark.parametrize("script", ["idle", AgentState.IDLE, 3, Written("x", "script"), {"idle"}])
@pytest.mark.parametrize("kind", [ScriptedReasoner, ScriptedWriter])
def test_a_script_is_a_list_rules_or_a_function(kind: Any, script: Any) -> None:
    """Anything else is refused, also one text, which is a sequence of letters."""
    with pytest.raises(TypeError, match=r"must be a list of \w+, a mapping of rules or a function"):
        kind(script)

"""Deciding with a language model."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import FieldValueError, ReasonerError, TimedOutError
from prism.statechart.decisions import Question
from prism.statechart.reasoner import (
    STATE_DESCRIPTIONS,
    Reasoner,
    build_reasoner_prompt,
    format_context,
    parse_reasoner_response,
)
from prism.statechart.replies import MOST_REPLY_CHARACTERS
from prism.statechart.social import social_media_chart
from prism.statechart.states import AgentState, state_enum

S = AgentState
OPTIONS = [S.COMPOSING, S.SCROLLING]

PROMPT = """You are Ada, a social media user.

Your interests: chess, climate
Your personality: patient and dry

You are currently in the "evaluating" state and received the "decides" event.

Post by bob:
Rooks are overrated.

Choose your next state from these options:
- composing: Write a response or original content
- scrolling: Continue browsing without engaging

Respond with JSON only:
{"next_state": "<state_value>"}
"""

POST = SimpleNamespace(post_id="p1", author="bob", text="Rooks are overrated.")


class Model:
    """A chat client that gives the same reply every time, or raises, and keeps its prompts."""

    def __init__(self, reply: Any) -> None:
        self.reply, self.prompts = reply, []

    async def run(self, prompt: str) -> str:
        self.prompts.append(prompt)
        await asyncio.sleep(0)
        if isinstance(self.reply, BaseException):
            raise self.reply
        return str(self.reply)


class Silent:
    """A client that never answers."""

    async def run(self, prompt: str) -> str:
        await asyncio.Event().wait()
        raise AssertionError


class LastFirst:
    """Answers the first agent after the second, each with what it was asked about."""

    def __init__(self) -> None:
        self.second_answered = asyncio.Event()

    async def run(self, prompt: str) -> str:
        if "You are a1," in prompt:
            await self.second_answered.wait()
            return answer("composing")
        self.second_answered.set()
        return answer("scrolling")


def answer(state: str) -> str:
    return json.dumps({"next_state": state})


def ask(name: str = "Ada", **changes: Any) -> Question:
    agent = SimpleNamespace(agent_id="a1", name=name, interests=["chess", "climate"], personality="patient and dry")
    return Question(agent, S.EVALUATING, "decides", **{"options": tuple(OPTIONS), "context": POST, **changes})


async def decide(client: Any, **options: Any) -> Any:
    return (await Reasoner(client, **options).decide_many([ask()]))[0]


# The prompt


def test_the_prompt_is_that_of_the_contract() -> None:
    """The prompt is the contract's template to the letter."""
    assert (
        build_reasoner_prompt("Ada", ["chess", "climate"], "patient and dry", S.EVALUATING, "decides", OPTIONS, POST)
        == PROMPT
    )


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (S.IDLE, "Stop browsing, wait for next round"),
        (S.SCROLLING, "Continue browsing without engaging"),
        (S.EVALUATING, "Look more closely at this post"),
        (S.COMPOSING, "Write a response or original content"),
        (S.ENGAGING_LIKE, "Like this post"),
        (S.ENGAGING_REPLY, "Reply to this post"),
        (S.ENGAGING_RESHARE, "Reshare this post"),
        (S.RESTING, "Take a break from activity"),
    ],
)
def test_states_are_described_as_in_the_contract(state: S, text: str) -> None:
    """Every state has the contract's description, and the prompt lists it so."""
    assert STATE_DESCRIPTIONS[state] == text
    assert f"\n- {state.value}: {text}\n" in build_reasoner_prompt("x", [], "", S.IDLE, "go", [state], None)


def test_states_without_description_are_told_by_their_text() -> None:
    """A state that nobody described is told by its own text, and descriptions may be the caller's."""
    mood = state_enum("Mood", ["very_calm", "cross"])
    prompt = build_reasoner_prompt("x", [], "", mood("cross"), "go", list(mood), None, descriptions={"cross": "Shout"})
    assert "- very_calm: very calm\n- cross: Shout\n" in prompt
    assert 'in the "cross" state' in prompt


async def test_the_reasoner_sends_this_prompt() -> None:
    """The reasoner asks with the agent's own name, interests and personality, and describes the context."""
    client = Model(answer("scrolling"))
    await decide(client)
    assert client.prompts == [PROMPT]


async def test_an_agent_without_profile_can_be_asked() -> None:
    """An agent without name, interests and personality is asked by its identifier."""
    client = Model(answer("scrolling"))
    question = Question(SimpleNamespace(agent_id="a7"), S.EVALUATING, "decides", tuple(OPTIONS))
    (decision,) = await Reasoner(client).answer([question])
    assert client.prompts[0].startswith("You are a7, a social media user.\n\nYour interests: \nYour personality: \n")
    assert decision.source == "model"


@pytest.mark.parametrize(
    ("context", "text"),
    [
        (None, "There are no further details."),
        ("A storm is coming.", "A storm is coming."),
        (POST, "Post by bob:\nRooks are overrated."),
        ({"text": "Hello", "author_id": "a2", "topics": ["chess", "go"]}, "Post by a2:\nHello\nTopics: chess, go"),
        ({"content": "Hello"}, "Post:\nHello"),
        ({"post_id": "p1", "rank": 2}, "post_id: p1\nrank: 2"),
        (SimpleNamespace(id=4), "simple_namespace_id: 4"),
        (7, "value: 7"),
        ({}, ""),
    ],
)
def test_a_context_is_described_in_words(context: Any, text: str) -> None:
    """A post is described by author, text and topics, a text by itself, anything else by its fields."""
    assert format_context(context) == text


# The reply


@pytest.mark.parametrize(
    "reply",
    [
        '{"next_state": "composing"}',
        '  {"next_state": "composing"}\n',
        '{"next_state": "COMPOSING"}',
        '{"next_state": " Composing "}',
        '{"reason": "because {it} fits", "next_state": "composing", "sure": true}',
        '```json\n{"next_state": "composing"}\n```',
        'Well. I would say {"next_state": "composing"} is best.',
        '<think>{"next_state": "scrolling"}? No.</think>{"next_state": "composing"}',
        '<think>a</think><think>{"next_state": "scrolling"}</think>\n{"next_state": "composing"}',
        'not this: {"next_state": "scrolling"} but this: {"next_state": "composing"}',
        '{broken {"next_state": "composing"}',
        '{"other": 1} {"next_state": "composing"} {"other": 2}',
        '[{"next_state": "composing"}]',
        '{"x": ' + "1" * 5000 + '} {"next_state": "composing"}',
        "{" * 3000 + '{"next_state": "composing"}',
        '{"a": ' * 3000 + '{"next_state": "composing"}',
        "x" * (2 * MOST_REPLY_CHARACTERS) + '{"next_state": "composing"}',
    ],
    ids=range(17),
)
def test_a_reply_may_be_wrapped(reply: str) -> None:
    """The answer is found in fences, other text, thoughts, broken JSON and any case; the last object counts."""
    assert parse_reasoner_response(reply, OPTIONS) is S.COMPOSING


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "no JSON object with 'next_state' in the reply ''"),
        ("composing", "no JSON object with 'next_state' in the reply 'composing'"),
        ("{}", "no JSON object"),
        ('["composing"]', "no JSON object"),
        ('{"next": "composing"}', "no JSON object"),
        ('<think>{"next_state": "composing"}</think>', "no JSON object"),
        ('{"next_state": "composing"', "no JSON object"),
        ('{"next_state": "flying"}', "the reply names 'flying', which is not one of composing, scrolling"),
        ('{"next_state": "resting"}', "names 'resting', which is not one of composing, scrolling"),
        ('{"next_state": ""}', "names '', which is not one of"),
        ('{"next_state": "compos"}', "names 'compos', which is not one of"),
        ('{"next_state": "composing, scrolling"}', "is not one of"),
        ('{"next_state": null}', "names None"),
        ('{"next_state": 3}', "names 3"),
        ('{"next_state": ["composing"]}', "which is not one of"),
        ('{"next_state": "composing"} {"next_state": "resting"}', "names 'resting'"),
    ],
)
def test_a_reply_outside_the_options_is_refused(reply: str, message: str) -> None:
    """A reply that names no option is a ValueError that quotes it and lists the options."""
    with pytest.raises(ValueError, match=r"next_state|not one of") as caught:
        parse_reasoner_response(reply, OPTIONS)
    assert isinstance(caught.value, ReasonerError)
    assert message in str(caught.value)


def test_a_long_reply_is_quoted_in_part() -> None:
    """The message about a long reply quotes its beginning only."""
    with pytest.raises(ReasonerError) as caught:
        parse_reasoner_response("blah " * 1000, OPTIONS)
    assert "..." in str(caught.value)
    assert len(str(caught.value)) < 250


def test_an_exact_answer_beats_one_in_another_case() -> None:
    """Among states that differ only by case the one written exactly is meant."""
    odd = state_enum("Odd", ["GO", "go", "Stop"])
    assert [parse_reasoner_response(answer(text), list(odd)).value for text in ("go", "GO", "Go", "stop")] == [
        "go",
        "GO",
        "GO",
        "Stop",
    ]


# Decisions


async def test_the_models_answer_is_taken() -> None:
    """A valid answer is the decision, and its source is the model."""
    decision = await decide(Model(answer("scrolling")))
    assert (decision.chosen, decision.source, decision.reason) == (S.SCROLLING, "model", None)


async def test_empty_options_are_an_error() -> None:
    """Asking without options is a ValueError before the model is called."""
    client = Model(answer("idle"))
    with pytest.raises(ValueError, match="no options"):
        await Reasoner(client).decide(SimpleNamespace(), S.EVALUATING, "decides", [])
    assert client.prompts == []


FAILURES = [
    (Model("composing or scrolling"), "no JSON object with 'next_state'"),
    (Model('{"next_state": "flying"}'), "the reply names 'flying'"),
    (Model(ConnectionError("nobody there")), "ConnectionError: nobody there"),
    (Model(TimedOutError("host h gave no answer within 30 s")), "TimedOutError: host h gave no answer within 30 s"),
    (Model(TimeoutError("pool is full")), "TimeoutError: pool is full"),
    (Silent(), "no answer within 0.01 s"),
]


@pytest.mark.parametrize(("client", "reason"), FAILURES, ids=range(len(FAILURES)))
@pytest.mark.parametrize(
    ("fallback", "chosen"),
    [(None, S.COMPOSING), (S.SCROLLING, S.SCROLLING), (S.RESTING, S.COMPOSING), ("scrolling", S.SCROLLING)],
)
async def test_a_failure_is_a_fallback(
    client: Any, reason: str, fallback: Any, chosen: S, logger: Any, capture: Any
) -> None:
    """Whatever fails, the fallback or else the first option is taken, with a warning that says why."""
    decision = await decide(client, fallback=fallback, timeout=0.01, logger=logger)
    assert decision.chosen is chosen
    assert decision.source == "fallback"
    assert reason in decision.reason
    (warning,) = capture.entries
    assert (warning["event"], warning["log_level"]) == ("reasoner.decision", "warning")
    assert (warning["agent_id"], warning["trigger"], warning["chosen"]) == ("a1", "decides", chosen.value)
    assert (warning["source"], warning["reason"]) == ("fallback", decision.reason)


async def test_a_fallback_is_never_silent(caplog: pytest.LogCaptureFixture) -> None:
    """Without structlog the warning about a fallback goes to standard logging."""
    await decide(Model("nonsense"))
    assert [(entry.name, entry.levelname) for entry in caplog.records] == [("prism.statechart", "WARNING")]
    assert "reasoner.decision" in caplog.text


async def test_a_cancelled_question_is_no_fallback() -> None:
    """Cancelling a question cancels it, without a decision."""
    task = asyncio.create_task(decide(Silent()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_questions_are_asked_concurrently() -> None:
    """Many questions are under way at once, and the answers come in the order of the questions."""
    async with asyncio.timeout(5):
        decisions = await Reasoner(LastFirst()).decide_many([ask("a1"), ask("a2")])
    assert [(decision.chosen, decision.source) for decision in decisions] == [
        (S.COMPOSING, "model"),
        (S.SCROLLING, "model"),
    ]


async def test_one_failure_leaves_the_others_alone() -> None:
    """A question that fails falls back without disturbing those asked with it."""

    class Partial:
        async def run(self, prompt: str) -> str:
            if "You are a1," in prompt:
                raise ConnectionError("nobody there")
            return answer("scrolling")

    decisions = await Reasoner(Partial()).decide_many([ask("a1"), ask("a2")])
    assert [decision.source for decision in decisions] == ["fallback", "model"]


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_timeout_must_be_above_zero(timeout: float) -> None:
    """A time-out that is not above 0 is a ValueError that says so."""
    with pytest.raises(FieldValueError, match="timeout must be above 0, got"):
        Reasoner(Silent(), timeout=timeout)


def test_a_client_must_be_one() -> None:
    """A client that cannot be asked is refused when the reasoner is made."""
    with pytest.raises(ReasonerError, match="needs an async method chat, get_response or run; object has none"):
        Reasoner(object())


async def test_the_model_name_is_passed_on() -> None:
    """A client that must be told the model with every call is told it."""

    class Chat:
        async def chat(self, model: str, messages: Any) -> Any:
            return {"message": {"content": answer("scrolling" if model == "m1" else "composing")}}

    assert (await decide(Chat(), model="m1")).chosen is S.SCROLLING


async def test_a_reasoner_serves_a_chart() -> None:
    """A chart's afire commits what the model answered."""
    agent = SimpleNamespace(state=S.EVALUATING, should_engage=lambda post: True)
    chart = social_media_chart()
    assert (
        await chart.afire(agent, "decides", POST, reasoner=Reasoner(Model(answer("engaging_like")))) is S.ENGAGING_LIKE
    )
    assert agent.state is S.ENGAGING_LIKE

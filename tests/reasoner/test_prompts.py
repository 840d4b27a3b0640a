"""What a model is asked."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from prism.agents import SocialAgent
from prism.reasoner._prompts import (
    PromptSettings,
    chat_prompt,
)
from prism.statechart import (
    STATE_DESCRIPTIONS,
    Question,
    Reasoner,
    Recollection,
    TextCall,
    Writer,
    build_reasoner_prompt,
    format_context,
    social_media_chart,
)
from prism.statechart.states import AgentState, state_enum
from tests.kit.clients import Model

S = AgentState
OPTIONS = [S.COMPOSING, S.SCROLLING]

PROMPT = """You are Ada, a social media user.

Your interests: chess, climate
Your personality: patient and dry

You are currently in the "evaluating" state and received the "decides" event.

Post by bob:
  > Rooks are overrated.

Choose your next state from these options:
- composing: Write a response or original content
- scrolling: Continue browsing without engaging

Respond with JSON only:
{"next_state": "<state_value>"}
"""

POST = SimpleNamespace(post_id="p1", author="bob", text="Rooks are overrated.")
ADA = SimpleNamespace(
    agent_id="a1", name="Ada", interests=["chess", "climate"], personality="patient and dry"
)


def ask(agent: Any = ADA, context: Any = POST) -> Question:
    return Question(agent, S.EVALUATING, "decides", tuple(OPTIONS), context)


def test_the_prompt_is_that_of_the_contract() -> None:
    """The prompt is the contract's template to the letter."""
    assert (
        build_reasoner_prompt(
            "Ada", ["chess", "climate"], "patient and dry", S.EVALUATING, "decides", OPTIONS, POST
        )
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
    assert f"\n- {state.value}: {text}\n" in build_reasoner_prompt(
        "x", [], "", S.IDLE, "go", [state], None
    )


def test_states_without_description_are_told_by_their_text() -> None:
    """A state without a description has its own text; descriptions may be the caller's."""
    mood = state_enum("Mood", ["very_calm", "cross"])
    prompt = build_reasoner_prompt(
        "x", [], "", mood("cross"), "go", list(mood), None, descriptions={"cross": "Shout"}
    )
    assert "- very_calm: very calm\n- cross: Shout\n" in prompt
    assert 'in the "cross" state' in prompt


@pytest.mark.parametrize(
    ("context", "text"),
    [
        (None, "There are no further details."),
        ("A storm is coming.", "A storm is coming."),
        (POST, "Post by bob:\n  > Rooks are overrated."),
        (
            {"text": "Hello", "author_id": "a2", "topics": ["chess", "go"]},
            "Post by a2:\n  > Hello\nTopics: chess, go",
        ),
        ({"content": "Hello"}, "Post:\n  > Hello"),
        ({"text": "My lamp is broken", "angry": True}, "text: My lamp is broken\nangry: yes"),
        ({"post_id": "p1", "rank": 2}, "post_id: p1\nrank: 2"),
        (SimpleNamespace(id=4), "simple_namespace_id: 4"),
        (7, "value: 7"),
        ({}, ""),
        (
            {"text": "", "author_id": "a2", "topics": ["go"]},
            "Post by a2:\n  > (no text)\nTopics: go",
        ),
        (
            SimpleNamespace(post_id="p1", author="bob", text="", topics=()),
            "Post by bob:\n  > (no text)",
        ),
        (SimpleNamespace(post_id="p1", text=0), "Post:\n  > 0"),
        ({"text": "", "content": "Hello", "topics": "tea"}, "Post:\n  > Hello\nTopics: tea"),
        ({"text": "Hello", "topics": 5}, "Post:\n  > Hello\nTopics: 5"),
        (SimpleNamespace(post_id="p1", text=None, content=None), "post_id: p1"),
    ],
)
def test_a_context_is_described_in_words(context: Any, text: str) -> None:
    """A post is described by author, text and topics, a text by itself, all else by all fields."""
    assert format_context(context) == text


def test_an_agent_speaks_for_itself() -> None:
    """A question is put with the agent's own name, interests and personality."""
    assert chat_prompt(ask()) == PROMPT


@pytest.mark.parametrize(
    ("agent", "profile"),
    [
        (SimpleNamespace(agent_id="a7"), ("a7", "", "")),
        (
            SimpleNamespace(agent_id="a7", name=None, interests=None, personality=None),
            ("a7", "", ""),
        ),
        (SimpleNamespace(unique_id=3, interests=(1, "idle"), personality=7), ("3", "1, idle", "7")),
        (SimpleNamespace(unique_id=3, interests="chess"), ("3", "chess", "")),
    ],
)
def test_any_profile_can_be_told(agent: Any, profile: tuple[str, str, str]) -> None:
    """An agent without a name goes by its identifier; its profile is shown as text."""
    name, interests, personality = profile
    told = f"Your interests: {interests}\nYour personality: {personality}\n"
    assert chat_prompt(ask(agent)).startswith(f"You are {name}, a social media user.\n\n{told}")


PROFILE = {"agent_id": "a1", "name": "Ada", "interests": ["chess", "climate"]}
PROFILE["personality"] = "patient and dry"


def stand_ins() -> Iterator[Any]:
    """Yield agents as test suites make them, none of which says who it is in words."""
    # the argument `name` of a mock is another thing than its attribute
    for mock in (MagicMock(), Mock(), Mock(spec=list(PROFILE)), Mock(spec=SocialAgent)):
        mock.configure_mock(**PROFILE)
        yield mock

    class Speechless(SimpleNamespace):
        """An agent whose descriptions are no text."""

        def persona(self) -> None:
            """Say nothing."""

        @property
        def describe(self) -> object:
            """An object that can be called, and returns no text."""
            return dict

    yield Speechless(**PROFILE)


@pytest.mark.parametrize("agent", [*stand_ins()], ids=["magic", "mock", "spec", "class", "object"])
async def test_mocks_are_asked_by_their_profile(agent: Any) -> None:
    """An agent that says nothing of itself in words gets the contract's prompt, and an answer."""
    assert chat_prompt(ask(agent)) == PROMPT

    reasoner = Reasoner(Model("scrolling"), mode="chat")
    decided = await reasoner.decide(agent, S.EVALUATING, "decides", OPTIONS, POST)
    assert decided == S.SCROLLING


async def test_a_bare_mock_goes_all_the_way() -> None:
    """A mock of which only the state and its history are set fires, decides and writes."""
    chart, reasoner = social_media_chart(), Reasoner(Model("scrolling"), mode="chat")
    agent = MagicMock(state=S.EVALUATING, state_history=[], ticks_in_state=0)
    assert await chart.afire(agent, "decides", context=POST, reasoner=reasoner) == S.SCROLLING
    assert agent.state_history[0].from_state == S.EVALUATING

    agent = MagicMock(state=S.EVALUATING, state_history=[], ticks_in_state=0)
    assert chart.fire(agent, "decides", context=POST) == agent.state
    written = await Writer(Model("Rain.")).write(TextCall(MagicMock(), "post", "Write."))
    assert written.text == "Rain."


async def test_an_agent_whose_persona_fails_is_not_asked() -> None:
    """The reason of the fallback is the agent's own error; the run goes on."""

    class Failing(SimpleNamespace):
        """An agent that cannot say who it is."""

        def persona(self) -> str:
            """Fail."""
            raise KeyError("row")

    reasoner = Reasoner(Model("scrolling"), mode="chat")
    (decision,) = await reasoner.decide_many([ask(Failing(**PROFILE))])
    assert (decision.chosen, decision.source) == (S.COMPOSING, "fallback")
    assert decision.reason == "KeyError: 'row'"


def test_a_decision_model_is_told_what_the_agent_remembers() -> None:
    """Its state ends in the memory, as a chat prompt has it; an agent without one has no part."""
    moved = SimpleNamespace(
        from_state=S.SCROLLING, to_state=S.EVALUATING, trigger="sees", context=None
    )
    ben = SimpleNamespace(agent_id="a2", name="Ben", state_history=[moved])
    settings = PromptSettings(memory=Recollection(3))
    remembered = 'What you remember, oldest first:\n- You went from "scrolling" to "evaluating"'
    assert remembered in chat_prompt(ask(ben), settings)

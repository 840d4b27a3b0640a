"""What a model is asked."""

from types import SimpleNamespace
from typing import Any

import pytest

from prism.statechart.reasoner._decision_requests import decision_question, decision_state
from prism.statechart.reasoner._prompts import (
    STATE_DESCRIPTIONS,
    build_reasoner_prompt,
    chat_prompt,
    format_context,
)
from prism.statechart.reasoner._questions import Question
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
        (POST, "Post by bob:\nRooks are overrated."),
        (
            {"text": "Hello", "author_id": "a2", "topics": ["chess", "go"]},
            "Post by a2:\nHello\nTopics: chess, go",
        ),
        ({"content": "Hello"}, "Post:\nHello"),
        ({"post_id": "p1", "rank": 2}, "post_id: p1\nrank: 2"),
        (SimpleNamespace(id=4), "simple_namespace_id: 4"),
        (7, "value: 7"),
        ({}, ""),
        ({"text": "", "author_id": "a2", "topics": ["go"]}, "Post by a2:\n(no text)\nTopics: go"),
        (
            SimpleNamespace(post_id="p1", author="bob", text="", topics=()),
            "Post by bob:\n(no text)",
        ),
        (SimpleNamespace(post_id="p1", text=0), "Post:\n0"),
        ({"text": "", "content": "Hello", "topics": "tea"}, "Post:\nHello\nTopics: tea"),
        ({"text": "Hello", "topics": 5}, "Post:\nHello\nTopics: 5"),
        (SimpleNamespace(post_id="p1", text=None, content=None), "post_id: p1"),
    ],
)
def test_a_context_is_described_in_words(context: Any, text: str) -> None:
    """A post is described by author, text and topics, a text by itself, all else by its fields."""
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
    about = f"Interests: {interests}\nPersonality: {personality}"
    assert decision_state(ask(agent)) == f"{name} is a social media user.\n{about}"


def test_a_decision_question_is_that_of_the_wire_format() -> None:
    """A choice question has the event as instructions, and described options as criteria."""
    assert decision_question(ask()) == {
        "type": "choice",
        "instructions": (
            'The user is in the "evaluating" state and received the "decides" event.\n\n'
            "Post by bob:\nRooks are overrated.\n\nChoose the user's next state."
        ),
        "criteria": {
            "composing": "Write a response or original content",
            "scrolling": "Continue browsing without engaging",
        },
    }

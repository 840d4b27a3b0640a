"""What a model is asked: the prompt of ``spec/reasoner-contract.md``, and the same for a decision model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prism.statechart._identity import agent_name, identify
from prism.statechart.reasoner._questions import Question
from prism.statechart.states import AgentState, state_text

STATE_DESCRIPTIONS: Mapping[AgentState, str] = {
    AgentState.IDLE: "Stop browsing, wait for next round",
    AgentState.SCROLLING: "Continue browsing without engaging",
    AgentState.EVALUATING: "Look more closely at this post",
    AgentState.COMPOSING: "Write a response or original content",
    AgentState.ENGAGING_LIKE: "Like this post",
    AgentState.ENGAGING_REPLY: "Reply to this post",
    AgentState.ENGAGING_RESHARE: "Reshare this post",
    AgentState.RESTING: "Take a break from activity",
}
"""What each state means, as the model is told."""


def chat_prompt(question: Question, descriptions: Mapping[Any, str] = STATE_DESCRIPTIONS) -> str:
    """Build the prompt for a question, from what its agent says of itself."""
    agent = question.agent
    return build_reasoner_prompt(
        agent_name=_name_of(agent),
        agent_interests=_interests_of(agent),
        agent_personality=_personality_of(agent),
        current_state=question.state,
        trigger=question.trigger,
        options=list(question.options),
        context=question.context,
        descriptions=descriptions,
    )


def decision_state(agent: Any) -> str:
    """Describe an agent to a decision model; all of its pending questions share this."""
    interests = ", ".join(_interests_of(agent))
    return f"{_name_of(agent)} is a social media user.\nInterests: {interests}\nPersonality: {_personality_of(agent)}"


def decision_question(
    question: Question, descriptions: Mapping[Any, str] = STATE_DESCRIPTIONS
) -> dict[str, Any]:
    """Build one choice question for a decision model, with the options' meanings as its criteria."""
    return {
        "type": "choice",
        "instructions": (
            f'The user is in the "{state_text(question.state)}" state and received the "{question.trigger}" event.\n\n'
            f"{format_context(question.context)}\n\nChoose the user's next state."
        ),
        "criteria": {
            state_text(option): _description(option, descriptions) for option in question.options
        },
    }


def build_reasoner_prompt(
    agent_name: str,
    agent_interests: list[str],
    agent_personality: str,
    current_state: Any,
    trigger: str,
    options: list[Any],
    context: Any,
    *,
    descriptions: Mapping[Any, str] = STATE_DESCRIPTIONS,
) -> str:
    """Build the question that a model is asked.

    Args:
        agent_name: Name of the agent.
        agent_interests: Topics it cares about.
        agent_personality: What it is like, in words.
        current_state: Its state.
        trigger: The event that opened the question.
        options: The states to choose from.
        context: What the event is about; see `format_context`.
        descriptions: Meaning of each state.
    """
    options_text = "\n".join(
        f"- {state_text(option)}: {_description(option, descriptions)}" for option in options
    )
    return f"""You are {agent_name}, a social media user.

Your interests: {", ".join(agent_interests)}
Your personality: {agent_personality}

You are currently in the "{state_text(current_state)}" state and received the "{trigger}" event.

{format_context(context)}

Choose your next state from these options:
{options_text}

Respond with JSON only:
{{"next_state": "<state_value>"}}
"""


def format_context(context: Any) -> str:
    """Describe an event's context in words: a post by author, text and topics, anything else by its fields."""
    if context is None:
        return "There are no further details."
    if isinstance(context, str):
        return context

    texts = [text for name in ("text", "content") if (text := _field(context, name)) is not None]
    if not texts:
        return "\n".join(f"{key}: {value}" for key, value in (identify(context) or {}).items())

    author = _field(context, "author_id") or _field(context, "author")
    topics = _field(context, "topics")
    text = next((str(text) for text in texts if text != ""), "(no text)")
    lines = [f"Post by {author}:" if author else "Post:", text]
    if topics:
        lines.append(f"Topics: {', '.join(_listed(topics))}")

    return "\n".join(lines)


def _name_of(agent: Any) -> str:
    return str(getattr(agent, "name", None) or agent_name(agent))


def _interests_of(agent: Any) -> list[str]:
    return _listed(getattr(agent, "interests", None) or ())


def _listed(items: Any) -> list[str]:
    """Return the texts of several things, or of one that is no list."""
    several = isinstance(items, Iterable) and not isinstance(items, str)
    return [str(item) for item in items] if several else [str(items)]


def _personality_of(agent: Any) -> str:
    return str(getattr(agent, "personality", None) or "")


def _description(option: Any, descriptions: Mapping[Any, str]) -> str:
    return descriptions.get(option) or state_text(option).replace("_", " ")


def _field(context: Any, name: str) -> Any:
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)

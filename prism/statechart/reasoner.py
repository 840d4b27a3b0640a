"""Deciding with a language model: the prompt, the reply, and what happens when there is none.

The contract is ``spec/reasoner-contract.md``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from prism.errors import FieldValueError, ReasonerError
from prism.statechart.bookkeeping import agent_name
from prism.statechart.clients import ask, check_client
from prism.statechart.context import identify
from prism.statechart.decisions import BaseReasoner, Decision, Question
from prism.statechart.events import REASONER_FALLBACK, EventLogger, describe, report_warning
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

DEFAULT_TIMEOUT_SECONDS = 120.0
MOST_REPLY_CHARACTERS = 50_000
"""How much of a reply is searched, from its end, where models put their answer."""


class Reasoner(BaseReasoner):
    """Asks a language model which of several open moves an agent makes.

    Whatever goes wrong with the model, a decision is made: the fallback, with a warning that says why.

    Args:
        client: Anything with an async ``chat``, ``get_response`` or ``run``: prism's `OllamaChatClient`,
            ``ollama.AsyncClient`` (then give ``model``), an agent-framework client or agent.
        fallback: The state to take when the model gives no valid answer, if it is among the options;
            otherwise, and by default, the first option.
        model: Model name, for clients that must be told with every call.
        descriptions: Meaning of each state for the prompt, by state; `STATE_DESCRIPTIONS` by default.
        timeout: Seconds to wait for one answer.
        logger: A structlog logger for decisions and warnings.

    Raises:
        ReasonerError: If the client has none of the three methods.
        FieldValueError: If the time-out is not above 0.
    """

    def __init__(
        self,
        client: Any,
        *,
        fallback: Any = None,
        model: str | None = None,
        descriptions: Mapping[Any, str] = STATE_DESCRIPTIONS,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        logger: EventLogger | None = None,
    ) -> None:
        if not timeout > 0:
            raise FieldValueError(f"timeout must be above 0 seconds, got {timeout!r}")
        check_client(client)
        super().__init__(logger)
        self._client = client
        self._fallback = fallback
        self._model = model
        self._descriptions = descriptions
        self._timeout = timeout

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Ask the model every question, concurrently; the client bounds how many are under way at once."""
        import asyncio  # costs a third of importing the engine, and is loaded already where this runs

        return list(await asyncio.gather(*(self._ask(question) for question in questions)))

    async def _ask(self, question: Question) -> Decision:
        import asyncio

        options = list(question.options)
        try:
            async with asyncio.timeout(self._timeout):
                reply = await ask(self._client, self._prompt(question), options, model=self._model)
            return Decision(parse_reasoner_response(reply, options), "model")
        except Exception as error:
            return self._fall_back(question, error)

    def _prompt(self, question: Question) -> str:
        agent = question.agent
        return build_reasoner_prompt(
            agent_name=str(getattr(agent, "name", None) or agent_name(agent)),
            agent_interests=list(getattr(agent, "interests", ())),
            agent_personality=str(getattr(agent, "personality", "")),
            current_state=question.state,
            trigger=question.trigger,
            options=list(question.options),
            context=question.context,
            descriptions=self._descriptions,
        )

    def _fall_back(self, question: Question, error: Exception) -> Decision:
        ours = type(error) is TimeoutError and not error.args
        reason = f"no answer within {self._timeout:g} s" if ours else describe(error)
        options = question.options
        chosen = next((option for option in options if option == self._fallback), options[0])
        report_warning(
            self._logger,
            REASONER_FALLBACK,
            agent_id=agent_name(question.agent),
            trigger=question.trigger,
            chosen=state_text(chosen),
            reason=reason,
        )
        return Decision(chosen, "fallback", reason=reason)


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
    options_text = "\n".join(f"- {state_text(option)}: {_description(option, descriptions)}" for option in options)
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
    """Describe an event's context in words: a post by author and text, anything else by its fields."""
    if context is None:
        return "There are no further details."
    if isinstance(context, str):
        return context
    text = _field(context, "text") or _field(context, "content")
    if text is None:
        return "\n".join(f"{key}: {value}" for key, value in (identify(context) or {}).items())
    author = _field(context, "author_id") or _field(context, "author")
    topics = _field(context, "topics")
    lines = [f"Post by {author}:" if author else "Post:", str(text)]
    if topics:
        lines.append(f"Topics: {', '.join(map(str, topics))}")
    return "\n".join(lines)


def parse_reasoner_response(response_text: str, options: list[Any]) -> Any:
    """Read the chosen state from a model's reply.

    The reply may wrap its JSON in code fences, other text or a ``<think>`` block, and may write the state in
    any case; the last object with a ``next_state`` counts. A state outside the options is never accepted.

    Args:
        response_text: The raw reply.
        options: The states to choose from.

    Returns:
        One of the options.

    Raises:
        ReasonerError: (a ValueError) if the reply has no such object or names no option.
    """
    listing = ", ".join(map(state_text, options))
    answers = _answers_in(str(response_text))
    if not answers:
        raise ReasonerError(f"no JSON object with 'next_state' in the reply {_excerpt(response_text)}")
    answer = answers[-1]
    if isinstance(answer, str):
        exact = [option for option in options if state_text(option) == answer.strip()]
        alike = [option for option in options if state_text(option).lower() == answer.strip().lower()]
        if alike:
            return (exact or alike)[0]
    raise ReasonerError(f"the reply names {answer!r}, which is not one of {listing}")


def _answers_in(text: str) -> list[Any]:
    """Find the ``next_state`` of every JSON object in a text, in order; thoughts do not count."""
    text = text.rpartition("</think>")[2].partition("<think>")[0][-MOST_REPLY_CHARACTERS:]
    decoder = json.JSONDecoder()
    answers = []
    position = text.find("{")
    while position >= 0:
        try:
            found, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):  # also raised for a number of too many digits
            found, position = None, position + 1
        if isinstance(found, dict) and "next_state" in found:
            answers.append(found["next_state"])
        position = text.find("{", position)
    return answers


def _excerpt(text: Any) -> str:
    shown = str(text)
    return repr(shown if len(shown) <= 120 else shown[:117] + "...")


def _description(option: Any, descriptions: Mapping[Any, str]) -> str:
    return descriptions.get(option) or state_text(option).replace("_", " ")


def _field(context: Any, name: str) -> Any:
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)

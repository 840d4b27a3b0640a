"""Prompts: their parts in order, how a model is to respond, and the request made of both.

A model whose server gives log-probabilities is asked for a letter, any other for the name of an
option. A prompt begins with the part that all agents share (the chart's description and the
options), so that servers can reuse what they have read, and ends with how to respond. Only a
question of the social feed that is put to a `Reasoner` outside of a run has the prompt of the
specification.

The options may be listed in another order, since language models prefer options by letter and
position (Zheng, Zhou, Meng, Zhou and Huang 2024, "Large Language Models Are Not Robust Multiple
Choice Selectors", ICLR). With rotations drawn for each question, no option comes first more often
than another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from prism.errors import NoProbabilitiesError, ReasonerError, UselessReplyError
from prism.reasoner.descriptions import (
    STATE_DESCRIPTIONS,
    Briefing,
    PromptSettings,
    description_in,
    format_context,
    has_states_of_the_feed,
    joined,
)
from prism.reasoner.questions import Kind, Question, hash_of
from prism.reasoner.replies import LETTER, Reply, parse_reasoner_response, read_letter
from prism.reasoner.requests import ChatReply, Request, prompted
from prism.statechart.states import state_text

MOST_LETTERS = 20
"""Most options that are asked by letter: servers list so many alternatives for a token."""

DECISION_TOKENS = 1024
"""Tokens that the reply to a question may have, thoughts included, unless the user sets others."""

_REPLY = 'Respond with JSON only:\n{"next_state": "<state_value>"}'

_TASK = "Below you read who you are and what happens. Choose what you do next:"

_DEFAULT_SETTINGS = PromptSettings()


# How to respond


def answer_schema(options: Sequence[Any], *, key: str = "next_state") -> dict[str, Any]:
    """Return the JSON schema of a reply: one of the options under a key."""
    states = {"type": "string", "enum": [state_text(option) for option in options]}
    return {"type": "object", "properties": {key: states}, "required": [key]}


def letter_schema(letters: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON schema of a reply with a letter, which says what each letter stands for."""
    schema = answer_schema(list(letters), key=LETTER)
    schema["properties"][LETTER]["description"] = json.dumps(letters, ensure_ascii=False)
    return schema


def letter_form(letters: Sequence[str]) -> str:
    """Return the form of a reply with a letter: ``{"letter": "A, B or C"}``."""
    either = " or ".join(filter(None, (", ".join(letters[:-1]), letters[-1])))
    return f'{{"{LETTER}": "{either}"}}'


# Prompts


def chat_prompt(question: Question, settings: PromptSettings = _DEFAULT_SETTINGS) -> str:
    """Build the prompt of a question that is answered by the name of an option.

    Raises:
        ReasonerError: If the user's own prompt does not fit the question.
    """
    briefing = Briefing(question, settings)
    if settings.prompt is None and _has_specified_prompt(briefing):
        return _specified_prompt(briefing)

    listed = []
    for option in question.options:
        text, meaning = state_text(option), briefing.meaning(option)
        # a state whose meaning is its name is listed without it
        listed.append(f"- {text}" if text == meaning else f"- {text}: {meaning}")
    return _prompt(briefing, "\n".join(listed), _REPLY)


def letter_prompt(question: Question, settings: PromptSettings, letters: Sequence[str]) -> str:
    """Build the prompt of a question that is answered by a letter.

    The wording was measured on small models (``python -m tests.benchmarks --only wordings``). With
    ``"<letter>"`` in the last line, or name and meaning of an option, they would rather write the
    option's name, and its letter has little probability.

    Raises:
        ReasonerError: If the user's own prompt does not fit the question.
    """
    briefing = Briefing(question, settings)
    meanings = map(briefing.meaning, question.options)
    listed = "\n".join(f"{letter}: {each}" for letter, each in zip(letters, meanings, strict=True))
    how = f"Respond with JSON only, with the letter of one option:\n{letter_form(letters)}"
    return _prompt(briefing, listed, how)


def _prompt(briefing: Briefing, options: str, reply: str) -> str:
    """Put the part for all agents first, then the agent's own, and how to respond last."""
    if briefing.settings.prompt is not None:
        return briefing.settings.prompt(briefing, options, reply)

    return joined(
        briefing.description,
        f"{_TASK}\n{options}",
        briefing.persona,
        briefing.memory,
        briefing.situation,
        reply,
    )


# The prompt of the specification


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
        agent_interests: Topics that interest it.
        agent_personality: Its personality, in words.
        current_state: Its state.
        trigger: The event that opened the question.
        options: The states to choose from.
        context: The event's context; see `format_context`.
        descriptions: Meaning of each state.
    """
    options_text = "\n".join(
        f"- {state_text(option)}: {description_in(option, descriptions)}" for option in options
    )
    return f"""You are {agent_name}, a social media user.

Your interests: {", ".join(agent_interests)}
Your personality: {agent_personality}

You are currently in the "{state_text(current_state)}" state and received the "{trigger}" event.

{format_context(context)}

Choose your next state from these options:
{options_text}

{_REPLY}
"""


def _has_specified_prompt(briefing: Briefing) -> bool:
    """Return whether a question is one of the social chart's states, asked outside of a run."""
    question = briefing.question
    is_of_the_feed = has_states_of_the_feed(question.state.__class__)
    return question.prompt is None and is_of_the_feed and briefing.text_by("persona") is None


def _specified_prompt(briefing: Briefing) -> str:
    question, memory = briefing.question, briefing.memory
    context = f"{briefing.context}\n\n{memory}" if memory else briefing.context
    return build_reasoner_prompt(
        agent_name=briefing.name,
        agent_interests=briefing.interests,
        agent_personality="\n".join((briefing.personality, *briefing.attributes)),
        current_state=question.state,
        trigger=question.trigger,
        options=list(question.options),
        context=context,
        descriptions=briefing.settings.descriptions,
    )


# Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRequest(Request[Reply]):
    """The request that puts a question to a model.

    Args:
        question: The question, with the options in the chart's order.
        kind: How the model is asked.
        rotation: Number of options moved from the beginning of the list to its end in the prompt;
            None for the chart's order.
        hash: The hash of the question's prompt with the options in the chart's order.
        identity: A hash of all that decides the answer. A request for probabilities is shared by
            all agents, since these draw from them.
    """

    question: Question
    kind: Kind
    rotation: int | None = None
    hash: str | None = None
    identity: str = ""


def request_for(
    kind: Kind,
    question: Question,
    settings: PromptSettings,
    rotation: int | None = None,
    variation: int = 0,
) -> QuestionRequest:
    """Make the request for a question.

    Args:
        kind: How the model is asked.
        question: The question.
        settings: The contents of prompts besides the question.
        rotation: The rotation of its options; None for the chart's order.
        variation: A number added to the seed of the model's sampling.

    Raises:
        ReasonerError: If a prompt of the user's own does not fit the question.
        Exception: Any that the user's agent or context raises.
    """
    options = question.options
    turned = (*options[rotation:], *options[:rotation]) if rotation else options
    rotated = replace(question, options=turned) if rotation else question
    offered = [state_text(option) for option in turned]
    letters = dict(zip(ascii_uppercase, offered, strict=False))
    by_letter = kind == "letter" and len(options) <= MOST_LETTERS
    if by_letter:
        text = letter_prompt(rotated, settings, list(letters))
        how = f"Respond with JSON only:\n{letter_form(list(letters))}"
    else:
        text = chat_prompt(rotated, settings)
        how = f"Choose one of {', '.join(offered)}. {_REPLY.replace('<state_value>', '...')}"

    variations = [] if by_letter else [variation]
    is_usual = rotated is question and not by_letter

    def read(reply: ChatReply) -> Reply:
        # a client of the user's own may know of none
        if by_letter and not reply.tokens:
            problem = f"{reply.model or 'the model'} gives no log-probabilities"
            raise NoProbabilitiesError(problem, host=reply.host)
        try:
            if by_letter:
                return read_letter(reply.text, reply.tokens, letters)
            return Reply(reply.text, state_text(parse_reasoner_response(reply.text, [*options])))
        except ReasonerError as error:
            raise UselessReplyError(str(error), host=reply.host) from error

    return QuestionRequest(
        prompted(text),
        letter_schema(letters) if by_letter else answer_schema(offered),
        read,
        how,
        variation,
        DECISION_TOKENS,
        by_letter,
        question=question,
        kind="letter" if by_letter else "name",
        rotation=rotation,
        hash=hash_of(text if is_usual else chat_prompt(question, settings)),
        identity=hash_of(json.dumps([by_letter, text, offered, *variations])),
    )

"""Replies of a model to a step."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prism.errors import ReasonerError
from prism.programs.yaml._definition import Step
from prism.programs.yaml._outputs import Validator
from prism.programs.yaml._variables import through_json
from prism.reasoner._replies import find_json, read_choice, spoken

Schema = dict[str, Any]

_NEXT_FOCUS = re.compile(r'("next_focus"\s*:\s*)"(?:[^"\\]|\\.)*"')
_LABEL = re.compile(r"\A\W*(?:option\s+)?(?:[a-z]|\d\d?)[).:]\s+", re.IGNORECASE)
_TEXT: Schema = {"type": "string"}
_ACTION: Schema = {
    "type": "object",
    "properties": {"reasoning": _TEXT, "action": {"type": "object"}},
    "required": ["reasoning", "action"],
}


@dataclass(frozen=True, slots=True)
class StepReply:
    """How a step's reply is asked for and read.

    Args:
        schema: JSON Schema of the reply, for clients that accept one; None for a text.
        read: Returns the value of a reply; raises a ValueError if it cannot be used.
    """

    schema: Schema | None
    read: Callable[[str], Any]


def reply_of(step: Step) -> StepReply:
    """Return how the reply of a step that asks a model is asked for and read."""
    if step.kind == "transition":
        return _decision_of(list(step.transition_map))
    if step.output is None:
        return StepReply(_ACTION, _read_action)
    if step.output == "text":
        return StepReply(None, _read_text)

    validator = Validator(step.output)
    return StepReply(step.output, lambda text: validator.require(_data(text)))


def _decision_of(answers: list[str]) -> StepReply:
    decision = _TEXT | {"enum": answers} if answers else _TEXT
    schema = {
        "type": "object",
        "properties": {"decision": decision, "reasoning": _TEXT, "next_focus": _TEXT},
        "required": ["decision"],
    }
    return StepReply(schema, lambda reply: _read_decision(reply, answers))


def _read_text(text: str) -> str:
    reply = spoken(text).strip()
    if not reply:
        raise ValueError("the reply is empty")
    return reply


def _read_action(text: str) -> dict[str, Any]:
    """Return reasoning and action; a reply without an action, or cut off, is not used."""
    reply = _object(text)
    reasoning, action = reply.get("reasoning", ""), reply.get("action")
    if not isinstance(action, dict):
        raise ValueError("the reply has no action, which must be an object")
    return {"reasoning": reasoning if isinstance(reasoning, str) else "", "action": action}


def _read_decision(text: str, answers: list[str]) -> dict[str, Any]:
    """Return the decision; a ValueError if it is not one of the answers."""
    try:
        reply = _object(text)
    except ValueError:
        reply = {}
    reasoning, focus = (
        value if isinstance(value := reply.get(key), str) else ""
        for key in ("reasoning", "next_focus")
    )
    return {
        "decision": _decided(text, answers) if answers else str(reply.get("decision", "")),
        "reasoning": reasoning or ("" if reply else spoken(text).strip()),
        "next_focus": focus,
    }


def _decided(text: str, answers: list[str]) -> str:
    # the next focus is no part of the answer, whatever it mentions; a label is none either
    text = _LABEL.sub("", _NEXT_FOCUS.sub(r'\1""', text))
    try:
        return str(read_choice(text, answers, key="decision"))
    except ReasonerError:
        raise ValueError(f"the answer is none of {', '.join(answers)}") from None


def _object(text: str) -> dict[str, Any]:
    data = _data(text)
    if not isinstance(data, dict):
        raise ValueError("the reply is not an object")
    return data


def _data(text: str) -> Any:
    """Return the data in a reply, as it can be kept; a ValueError if there is none."""
    data = find_json(text)
    try:
        return through_json(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the reply cannot be kept: {error}") from None

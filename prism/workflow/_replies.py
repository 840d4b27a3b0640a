"""What the model answers a step, read as a careful person would."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prism.errors import ReasonerError
from prism.statechart.reasoner._replies import (
    find_json,
    read_choice,
    what_is_said,
)
from prism.workflow._document._definition import Step
from prism.workflow._labels import offered_labels
from prism.workflow._sandbox._outputs import OutputError, Validator
from prism.workflow._variables import through_json

Schema = dict[str, Any]

_NEXT_FOCUS = re.compile(r'("next_focus"\s*:\s*)"(?:[^"\\]|\\.)*"')

_ACTION: Schema = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "action": {"type": "object"},
    },
    "required": ["reasoning", "action"],
}


@dataclass(frozen=True, slots=True)
class StepReply:
    """How a step's reply is asked for and read.

    Args:
        schema: JSON Schema of the reply, for clients that take one; None for a text.
        read: Returns what a reply says; raises ValueError if it cannot be used.
    """

    schema: Schema | None
    read: Callable[[str], Any]


def reply_of(step: Step) -> StepReply:
    """Return how the reply of a step that asks a model is asked for and read."""
    if step.kind == "transition":
        return _decision_of(step)
    if step.output is None:
        return StepReply(_ACTION, _read_action)
    if step.output == "text":
        return StepReply(None, _read_text)

    validator = Validator(step.output)

    return StepReply(step.output, lambda text: _read_data(text, validator))


def _decision_of(step: Step) -> StepReply:
    vocabulary = list(step.transition_map)
    labels = offered_labels("" if step.prompt is None else step.prompt.text, vocabulary)
    text: Schema = {"type": "string"}
    decision = text | {"enum": vocabulary} if vocabulary else text
    schema = {
        "type": "object",
        "properties": {"decision": decision, "reasoning": text, "next_focus": text},
        "required": ["decision"],
    }

    return StepReply(schema, lambda reply: _read_decision(reply, vocabulary, labels))


def _read_text(text: str) -> str:
    said = what_is_said(text).strip()
    if not said:
        raise ValueError("the reply is empty")

    return said


def _read_action(text: str) -> dict[str, Any]:
    """Return reasoning and action; one without an action, or that is cut off, is not used."""
    found = _object(text)
    reasoning, action = found.get("reasoning", ""), found.get("action")
    if not isinstance(action, dict):
        raise ValueError("the reply has no action, which must be an object")

    return {"reasoning": reasoning if isinstance(reasoning, str) else "", "action": action}


def _read_data(text: str, validator: Validator) -> Any:
    value = _data(text)
    try:
        validator.require(value)
    except OutputError as error:
        raise ValueError(str(error)) from None

    return value


def _read_decision(text: str, vocabulary: list[str], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the decision; None where it is none of the vocabulary, which leaves the state."""
    try:
        found = _object(text)
    except ValueError:
        found = {}

    decision = str(found.get("decision", ""))

    return {
        "decision": _decided(text, vocabulary, labels) if vocabulary else decision,
        "reasoning": _text(found, "reasoning") or ("" if found else what_is_said(text).strip()),
        "next_focus": _text(found, "next_focus"),
    }


def _decided(text: str, vocabulary: list[str], labels: Mapping[str, str]) -> str | None:
    # what comes next is no part of the answer, whatever conditions it names
    text = _NEXT_FOCUS.sub(r'\1""', text)
    try:
        return str(read_choice(text, vocabulary, key="decision", labels=labels))
    except ReasonerError:
        return None


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""


def _object(text: str) -> dict[str, Any]:
    found = _data(text)
    if not isinstance(found, dict):
        raise ValueError("the reply is not an object")

    return found


def _data(text: str) -> Any:
    """Return the data in a reply, as it can be kept; a ValueError if there is none."""
    found = find_json(text)
    try:
        return through_json(found)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the reply cannot be kept: {error}") from None

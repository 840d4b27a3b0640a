"""Replies of a model to a step, read as a careful person would read them."""

# ruff: noqa: RUF001 (people write signs that look like others)

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism.errors import ReasonerError
from prism.reasoner._replies import find_json, read_choice, spoken
from prism.workflow._document._definition import Step
from prism.workflow._sandbox._outputs import Validator
from prism.workflow._variables import through_json

Schema = dict[str, Any]

_NEXT_FOCUS = re.compile(r'("next_focus"\s*:\s*)"(?:[^"\\]|\\.)*"')

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
        read: Returns what a reply says; raises a ValueError if it cannot be used.
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

    return StepReply(step.output, lambda text: validator.require(_data(text)))


def _decision_of(step: Step) -> StepReply:
    vocabulary = list(step.transition_map)
    labels = offered_labels("" if step.prompt is None else step.prompt.text, vocabulary)
    decision = _TEXT | {"enum": vocabulary} if vocabulary else _TEXT
    schema = {
        "type": "object",
        "properties": {"decision": decision, "reasoning": _TEXT, "next_focus": _TEXT},
        "required": ["decision"],
    }

    return StepReply(schema, lambda reply: _read_decision(reply, vocabulary, labels))


def _read_text(text: str) -> str:
    said = spoken(text)
    if not said:
        raise ValueError("the reply is empty")

    return said


def _read_action(text: str) -> dict[str, Any]:
    """Return reasoning and action; a reply without an action, or cut off, is not used."""
    found = _object(text)
    reasoning, action = found.get("reasoning", ""), found.get("action")
    if not isinstance(action, dict):
        raise ValueError("the reply has no action, which must be an object")

    return {"reasoning": reasoning if isinstance(reasoning, str) else "", "action": action}


def _read_decision(text: str, vocabulary: list[str], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the decision; None if it is not in the vocabulary, which keeps the state."""
    try:
        found = _object(text)
    except ValueError:
        found = {}

    decision = str(found.get("decision", ""))
    reasoning, focus = (
        value if isinstance(value := found.get(key), str) else ""
        for key in ("reasoning", "next_focus")
    )

    return {
        "decision": _decided(text, vocabulary, labels) if vocabulary else decision,
        "reasoning": reasoning or ("" if found else spoken(text)),
        "next_focus": focus,
    }


def _decided(text: str, vocabulary: list[str], labels: Mapping[str, str]) -> str | None:
    # what comes next is no part of the answer, whatever conditions it names
    text = _NEXT_FOCUS.sub(r'\1""', text)
    try:
        return str(read_choice(text, vocabulary, key="decision", labels=labels))
    except ReasonerError:
        return None


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


# The letters and numbers under which a prompt offers its answers

_MARKER = r"(?P<label>[A-Za-z]|\d{1,2})[*_]{0,2}\s*(?:[).:=\]]|->|→|\s[-–—](?=\s))"
_LABEL_ENDS = re.compile(
    rf"(?:^|[\s(\[*_\"'`>])(?:option\s+)?{_MARKER}[\s*_\"'`(\[]*$", re.IGNORECASE
)
_LINE = re.compile(
    rf"""^[\s\-*•(\[_]{{0,9}}(?:option\s+)?{_MARKER}
         [^\n]* (?:[(\[→=:]|->) [\s*_"'`]* (?P<last>[^\n()\[\]→=:>]+?) [)\]\s*_"'`.;,]*$""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_FIRST = frozenset("aA01")
_LEAST = 2
_MOST_BEFORE = 30


def offered_labels(prompt: str, keys: Sequence[str]) -> dict[str, str]:
    """Return the keys that a prompt offers under letters or numbers, by these.

    The key stands behind its label, or at the end of the label's line in brackets or behind a sign:
    ``A) CONTINUE - keep working``, ``Choose (a) continue or (b) pivot``, ``1. Move on (ship)``.
    Labels are those of a list that begins with A, 0 or 1 and offers two keys or more; one that two
    keys have, or that is a key itself, is left out.

    Args:
        prompt: The prompt.
        keys: The keys.
    """
    spelled = {key.casefold(): key for key in keys}
    found: dict[str, set[str]] = {}
    for label, key in _before_keys(prompt, spelled):
        found.setdefault(label, set()).add(key)
    for label, key in _in_lines(prompt, spelled):
        found.setdefault(label, {key})

    if len(set().union(*found.values())) < _LEAST or not _FIRST.intersection(found):
        return {}

    folded = [label.casefold() for label in found]

    return {
        label: next(iter(named))
        for label, named in found.items()
        if len(named) == 1
        and folded.count(label.casefold()) == 1
        and label.casefold() not in spelled
    }


def _before_keys(prompt: str, spelled: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    longest = "|".join(map(re.escape, sorted(spelled, key=len, reverse=True))) or r"(?!)"
    for key in re.finditer(rf"(?<![^\W_])(?:{longest})(?![^\W_])", prompt, re.IGNORECASE):
        before = _LABEL_ENDS.search(prompt[max(0, key.start() - _MOST_BEFORE) : key.start()])
        if before is not None:
            yield before["label"], spelled[key[0].casefold()]


def _in_lines(prompt: str, spelled: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for line in _LINE.finditer(prompt):
        key = spelled.get(line["last"].strip().casefold())
        if key is not None:
            yield line["label"], key

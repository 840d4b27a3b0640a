"""The prompt of a step, and the model's reply; the only module that imports jsonschema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from prism._lazy import import_extra
from prism.errors import ReasonerError
from prism.programs.yaml._file import StepFile
from prism.programs.yaml._variables import through_json
from prism.reasoner import _words
from prism.reasoner._replies import find_json, read_choice, spoken

_SIGN_AND_WIDTH = r"[+\- ]?0?[1-9]?\d?"
# a comma, a precision or a type: {x:1} alone is not told from a mapping that somebody writes down
_FORMAT = rf"{_SIGN_AND_WIDTH}(?:,(?:\.\d\d?)?[dfeg%]?|\.\d\d?[feg%]?|[dfeg%])"
_VARIABLE = re.compile(rf"\{{([^\W\d]\w*(?::{_FORMAT})?)\}}")
_DOUBLED = re.compile(rf"\{{\{{|\}}\}}|{_VARIABLE.pattern}")
_MARKED = re.compile(r"\0([^\0]+)\0")

Schema = dict[str, Any]

_NEXT_FOCUS = re.compile(r'("next_focus"\s*:\s*)"(?:[^"\\]|\\.)*"')
_LABEL = re.compile(r"\A\W*(?:option\s+)?(?:[a-z]|\d\d?)[).:]\s+", re.IGNORECASE)
_TEXT: Schema = {"type": "string"}
_ACTION: Schema = {
    "type": "object",
    "properties": {"reasoning": _TEXT, "action": {"type": "object"}},
    "required": ["reasoning", "action"],
}
_REFUSED = {
    "pattern": "a pattern can keep a validator busy without end",
    "patternProperties": "a pattern can keep a validator busy without end",
    "uniqueItems": "comparing all items of a long list takes minutes",
    "$ref": "references are not supported: write the schema out",
    "$dynamicRef": "references are not supported: write the schema out",
}


class Template:
    """A text with ``{variables}``, whose values are shown as JSON unless they are texts.

    A number may have a plain format, ``{rate:.0%}``, which other values ignore. In a part with
    ``{{``, braces are doubled as for `str.format`.

    Args:
        parts: The parts of the text, a prompt and what joins it.

    Attributes:
        text: The text.
    """

    __slots__ = ("_marked", "text")

    def __init__(self, *parts: str) -> None:
        self.text: str = "\n".join(parts)
        self._marked = _words.Template("\n".join(map(_marked, parts)), _MARKED)

    def fill(self, variables: Mapping[str, Any]) -> tuple[str, list[str]]:
        """Return the text with values in it, and the names of variables that are not provided.

        Raises:
            PromptError: If the prompt is too long.
        """
        fields = [(key, *key.partition(":")[::2]) for key in self._marked.names]
        # each is looked up once, whatever formats it has
        names = dict.fromkeys(name for _, name, _ in fields)
        known = {name: variables[name] for name in names if name in variables}
        shown = {key: _formatted(known[name], form) for key, name, form in fields if name in known}
        text, _ = self._marked.fill(shown)
        return text, [name for name in names if name not in known]


def _marked(part: str) -> str:
    """Return a part of a prompt with its variables between marks, and its braces single."""
    pattern = _DOUBLED if "{{" in part else _VARIABLE
    clean = part.replace("\0", "\ufffd")
    return pattern.sub(lambda found: f"\0{found[1]}\0" if found[1] else found[0][0], clean)


def _formatted(value: Any, form: str) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if form and is_number:
        return format(int(value) if form.endswith("d") else value, form)
    if isinstance(value, str):
        return value
    # orjson writes whole numbers of 64 bits at most
    return str(value) if is_number and isinstance(value, int) else orjson.dumps(value).decode()


# Replies


class OutputError(ValueError):
    """A schema is not valid, or a reply does not match it."""


@dataclass(frozen=True, slots=True)
class StepReply:
    """How a step's reply is asked for and read.

    Args:
        schema: JSON Schema of the reply, for clients that accept one; None for a text.
        read: Returns the value of a reply; raises a ValueError if it cannot be used.
    """

    schema: Schema | None
    read: Callable[[str], Any]


def reply_of(step: StepFile) -> StepReply:
    """Return how the reply of a step that asks a model is asked for and read.

    Raises:
        OutputError: If its schema is none, or uses keywords that prism does not support.
    """
    if step.type == "transition":
        return _decision_of(list(step.transition_map or ()))
    if step.output is None:
        return StepReply(_ACTION, _read_action)
    if step.output == "text":
        return StepReply(None, _read_text)
    return _data_of(step.output)


# Texts and data


def _read_text(text: str) -> str:
    reply = spoken(text).strip()
    if not reply:
        raise ValueError("the reply is empty")
    return reply


def _read_action(text: str) -> dict[str, Any]:
    """Return reasoning and action; a reply without an action, or cut off, is not used."""
    reply = _data(text)
    action = reply.get("action") if isinstance(reply, dict) else None
    if not isinstance(action, dict):
        raise ValueError("the reply has no action, which must be an object")
    return {"reasoning": _text_in(reply, "reasoning"), "action": action}


def _data_of(schema: Schema) -> StepReply:
    jsonschema: Any = import_extra("jsonschema", "programs.yaml", extra="workflow")
    for key, value in _entries(schema):
        # a property may have one of these names, too: its value is then an object
        if key in _REFUSED and (key == "patternProperties" or not isinstance(value, dict)):
            raise OutputError(f"has {key!r}: {_REFUSED[key]}")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise OutputError(f"is not a JSON Schema: {error.message[:200]}") from None
    validator = jsonschema.Draft202012Validator(schema)

    def read(text: str) -> Any:
        data = _data(text)
        for error in validator.iter_errors(data):
            problem = f"{error.json_path}: {error.message[:200]}"
            raise OutputError(f"is not what the step asks for: {problem}")
        return data

    return StepReply(schema, read)


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    for key, item in value.items() if isinstance(value, Mapping) else ():
        yield str(key), item
        yield from _entries(item)
    for item in value if isinstance(value, list) else ():
        yield from _entries(item)


def _data(text: str) -> Any:
    """Return the data in a reply, as it can be kept; a ValueError if there is none."""
    data = find_json(text)
    try:
        return through_json(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the reply cannot be kept: {error}") from None


def _text_in(reply: Mapping[str, Any], key: str) -> str:
    value = reply.get(key)
    return value if isinstance(value, str) else ""


# Decisions


def _decision_of(answers: list[str]) -> StepReply:
    decision = _TEXT | {"enum": answers} if answers else _TEXT
    schema = {
        "type": "object",
        "properties": {"decision": decision, "reasoning": _TEXT, "next_focus": _TEXT},
        "required": ["decision"],
    }
    return StepReply(schema, lambda reply: _read_decision(reply, answers))


def _read_decision(text: str, answers: list[str]) -> dict[str, Any]:
    """Return the decision; a ValueError if it is not one of the answers."""
    try:
        reply = _data(text)
    except ValueError:
        reply = None
    found = reply if isinstance(reply, dict) else {}
    return {
        "decision": _decided(text, answers) if answers else str(found.get("decision", "")),
        "reasoning": _text_in(found, "reasoning") or ("" if found else spoken(text).strip()),
        "next_focus": _text_in(found, "next_focus"),
    }


def _decided(text: str, answers: list[str]) -> str:
    # the next focus is no part of the answer, whatever it mentions; a label is none either
    text = _LABEL.sub("", _NEXT_FOCUS.sub(r'\1""', text))
    try:
        return str(read_choice(text, answers, key="decision"))
    except ReasonerError:
        raise ValueError(f"the answer is none of {', '.join(answers)}") from None

"""Every event of prism and its keys, as defined in the page ``events.md`` beside this module.

The page has a section for each event: its level and meaning, and a table of its keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism.telemetry.events import SCHEMA_VERSION

WORLD_EVENTS = "world."
"""The prefix of the names of a world's own events."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an event.

    Args:
        name: Its name.
        words: The allowed values in words.
        schema: The allowed values as JSON Schema.
        meaning: Its meaning.
        required: Whether the event always has it.
    """

    name: str
    words: str
    schema: Mapping[str, Any]
    meaning: str
    required: bool


@dataclass(frozen=True, slots=True)
class Event:
    """An event.

    Args:
        name: Its name, one of `prism.telemetry.events`.
        meaning: When it is written.
        keys: Its keys, besides those of every line.
    """

    name: str
    meaning: str
    keys: tuple[Key, ...]


PAGE = Path(__file__).with_name("events.md")

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_OBJECT = {"type": "object"}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}


def _each(value: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value}


_KINDS: Mapping[str, Mapping[str, Any]] = {
    "text": _TEXT,
    "list of texts": {"type": "array", "items": _TEXT},
    "whole number": {"type": "integer"},
    "whole number, 0 or more": _COUNT,
    "number": {"type": "number"},
    "number, 0 or more": {"type": "number", "minimum": 0},
    "number from 0 to 1": _SHARE,
    "object": _OBJECT,
    "object: a number from 0 to 1 for each text": _each(_SHARE),
    "object: a whole number, 0 or more, for each text": _each(_COUNT),
    "object: a text for each text": _each(_TEXT),
    "object: an object for each text": _each(_each(_COUNT)),
    "list of objects": {"type": "array", "items": _OBJECT},
    "array": {"type": "array"},
    "16 hexadecimal digits": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
    "time": {"type": "string", "format": "date-time", "pattern": "Z$"},
    "boolean": {"type": "boolean"},
    "true": {"type": "boolean", "const": True},
    "any value": {"type": ["string", "number", "boolean", "object", "array", "null"]},
}
"""The schema of values, by the words of the page."""

_OR_NULL, _OPTIONAL = " or null", ", optional"


def _schema_of(words: str) -> dict[str, Any]:
    if words.endswith(_OR_NULL):
        schema = _schema_of(words.removesuffix(_OR_NULL))
        return {**schema, "type": [schema["type"], "null"]}
    if not words.startswith("`"):
        return {**_KINDS[words]}

    options = words.replace("`", "").split(" ")
    # the version of the schema is the only number in the page
    number = options[0].isdecimal()
    return {"const": int(options[0])} if number else {"type": "string", "enum": options}


def _keys_in(lines: Sequence[str]) -> Iterator[Key]:
    for line in lines:
        if line.startswith("| `"):
            name, kind, meaning = line.removeprefix("| ").removesuffix(" |").split(" | ")
            words = kind.removesuffix(_OPTIONAL)
            yield Key(name.strip("`"), words, _schema_of(words), meaning, words == kind)


def _events_in(sections: Sequence[str]) -> Iterator[Event]:
    for section in sections:
        name, _, said, *table = section.splitlines()
        # after the level
        yield Event(name.strip("`"), said.partition(". ")[2], tuple(_keys_in(table)))


_, _every_line, *_sections = PAGE.read_text(encoding="utf-8").split("\n## ")

COMMON: tuple[Key, ...] = tuple(_keys_in(_every_line.splitlines()))
"""Keys of every line."""

EVENTS: tuple[Event, ...] = tuple(_events_in(_sections))
"""All events of prism, in the order of the page."""


def json_schema(*, strict: bool = False) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one line of a log.

    Args:
        strict: Whether to refuse unknown events and keys. A reader must not, since a later version
            may add some, and an application may write its own.
    """
    branches = [
        {
            "if": {"properties": {"event": {"const": event.name}}},
            "then": {"$ref": f"#/$defs/{event.name}"},
        }
        for event in EVENTS
    ]
    # the events of a world are named by its author
    own = {"pattern": f"^{re.escape(WORLD_EVENTS)}"}
    names = {"anyOf": [{"enum": [event.name for event in EVENTS]}, own]}
    known = {"properties": {"event": names}} if strict else {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:prism-statecharts:run-log:{SCHEMA_VERSION}" + ":strict" * strict,
        "title": f"A line of a prism run log, version {SCHEMA_VERSION}",
        **_object(COMMON),
        "allOf": [*([known] if known else []), *branches],
        "$defs": {event.name: _event_schema(event, strict=strict) for event in EVENTS},
    }


def _event_schema(event: Event, *, strict: bool) -> dict[str, Any]:
    if not strict:
        return {"title": event.name, "description": event.meaning, **_object(event.keys)}
    return {"title": event.name, **_object((*COMMON, *event.keys)), "additionalProperties": False}


def _object(keys: Iterable[Key]) -> dict[str, Any]:
    found = tuple(keys)
    return {
        "type": "object",
        "required": [key.name for key in found if key.required],
        "properties": {key.name: {"description": key.meaning, **key.schema} for key in found},
    }

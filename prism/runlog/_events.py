"""Every event of prism and its keys, as defined in the page ``events.md`` beside this module.

The page has a section for each event: its level and meaning, and a table of its keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from prism.runlog._keys import Event, Key

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

"""The schema of a run log as it is published: a JSON Schema and a page.

``python -m prism.runlog._schema docs`` writes the JSON Schema and the page of documentation.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from prism.runlog._events import EVENTS
from prism.runlog._keys import COMMON, WORLD_EVENTS, Event, Key
from prism.telemetry import events

SCHEMA_NAME = "events.schema.json"
PAGE_NAME = "reference/events.md"


def json_schema(*, strict: bool = False) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one line of a log.

    Args:
        strict: Refuse unknown events and keys. A reader must not, since a later version may add
            some, and an application may write its own.
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
        "$id": f"urn:prism-statecharts:run-log:{events.SCHEMA_VERSION}" + ":strict" * strict,
        "title": f"A line of a prism run log, version {events.SCHEMA_VERSION}",
        **_object(COMMON),
        "allOf": [*([known] if known else []), *branches],
        "$defs": {event.name: _event_schema(event, strict=strict) for event in EVENTS},
    }


def page() -> str:
    """Return the schema as a page of documentation, in Markdown."""
    return "\n".join(_page_lines())


def write(folder: Path) -> None:
    """Write the JSON Schema and the page into a folder.

    Raises:
        OSError: If that fails.
    """
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    (folder / SCHEMA_NAME).write_text(schema, encoding="utf-8")
    (folder / PAGE_NAME).parent.mkdir(exist_ok=True)
    (folder / PAGE_NAME).write_text(page(), encoding="utf-8")


def _event_schema(event: Event, *, strict: bool) -> dict[str, Any]:
    if not strict:
        return {"title": event.name, "description": event.meaning, **_object(event.keys)}
    return {"title": event.name, **_object((*COMMON, *event.keys)), "additionalProperties": False}


def _object(keys: Iterable[Key]) -> dict[str, Any]:
    found = tuple(keys)
    return {
        "type": "object",
        "required": [key.name for key in found if key.required],
        "properties": {key.name: {"description": key.meaning, **key.kind.schema} for key in found},
    }


_INTRODUCTION = f"""\
# The events of a run log

Version {events.SCHEMA_VERSION}. This page and [the JSON Schema](../{SCHEMA_NAME}) are made of
one definition by `python -m prism.runlog._schema docs`, and a test checks every event against it.
[Logging](../logging.md) shows how to log your own loop.

A log is a file of JSON objects, one a line, in UTF-8 and in the order of events. A reader must
ignore unknown events and keys: they may be added without a new version number, and an application
may write its own events into the same file. The number changes when a reader would have to change.
Keys marked "optional" may be absent; all others are always present. Names that begin with `world.`
are those of a world's own events, with keys of its own.

## Every line
"""


def _page_lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield from _table(COMMON)
    for event in EVENTS:
        yield f"\n## `{event.name}`\n"
        yield f"Level {event.level}. {event.meaning}"
        if event.keys:
            yield ""
            yield from _table(event.keys)

    yield ""


def _table(keys: Iterable[Key]) -> Iterator[str]:
    yield "| key | value | meaning |"
    yield "|---|---|---|"
    for key in keys:
        optional = "" if key.required else ", optional"
        yield f"| `{key.name}` | {key.kind.words}{optional} | {key.meaning} |"


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="python -m prism.runlog._schema", description=__doc__)
    _parser.add_argument("folder", type=Path, help="where to write them")
    write(_parser.parse_args().folder)

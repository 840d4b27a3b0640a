"""The published schema of a run log, as a JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from prism.runlog._events import COMMON, EVENTS
from prism.runlog._keys import WORLD_EVENTS, Event, Key
from prism.telemetry import events


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
        "$id": f"urn:prism-statecharts:run-log:{events.SCHEMA_VERSION}" + ":strict" * strict,
        "title": f"A line of a prism run log, version {events.SCHEMA_VERSION}",
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

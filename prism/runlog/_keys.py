"""The parts of the definition of a run log's events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

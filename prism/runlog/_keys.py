"""The parts of which the definition of a run log's events consists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WORLD_EVENTS = "world."
"""How the names of a world's own events begin."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an event.

    Args:
        name: Its name.
        words: What its values may be, in words.
        schema: The same as JSON Schema.
        meaning: What it says.
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
        keys: Its keys, beside those of every line.
    """

    name: str
    meaning: str
    keys: tuple[Key, ...]

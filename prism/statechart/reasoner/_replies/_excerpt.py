"""Quoting what a model wrote, in a message that stays short."""

from __future__ import annotations

from typing import Any

_MOST_CHARACTERS = 120


def excerpt(given: Any) -> str:
    """Return the repr of something, shortened."""
    shown = repr(given)
    return shown if len(shown) <= _MOST_CHARACTERS else shown[: _MOST_CHARACTERS - 3] + "..."

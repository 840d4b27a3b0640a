"""Logged data in words, without braces and quotes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

EXCEPTION_NAME = r"^([A-Za-z_]\w*)(?:: |$)"
"""What a reason begins with that is an exception: its name, then perhaps its message."""

_TOLD_UNDER = ("message", "choices", "delta", "content", "response", "text")
_MOST_STEPS = 6


def in_words(told: Any) -> str:
    """Return plain data in words: names and values, without braces and quotes."""
    if isinstance(told, Mapping):
        return ", ".join(f"{name} {in_words(value)}" for name, value in told.items())
    if isinstance(told, list):
        return ", ".join(map(in_words, told))
    if isinstance(told, float):
        return f"{told:.4g}"

    return "nothing" if told is None else str(told)


def words_of(text: str) -> str:
    """Return the words of a text that may be JSON: those of its ``text``, or all of it in words."""
    told = _parsed(text)
    if told is None:
        return text

    words = told.get("text") if isinstance(told, dict) else None

    return words if isinstance(words, str) else in_words(told)


def said_in(body: str) -> str:
    """Return the model's text in the body of a server's answer, or else the whole body."""
    told = _parsed(body)
    for _ in range(_MOST_STEPS):
        if isinstance(told, list):
            told = told[0] if told else None
        if not isinstance(told, dict):
            break
        told = next((told[key] for key in _TOLD_UNDER if told.get(key)), None)

    return told if isinstance(told, str) else body


def _parsed(text: str) -> Any:
    """Return the object or list that a JSON text represents, or else None."""
    if not text.lstrip().startswith(("{", "[")):
        return None

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None

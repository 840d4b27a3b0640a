"""Values of memories: plain JSON data that every file and log can hold."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from hashlib import sha256
from math import isfinite
from typing import Any

import orjson

from prism.errors import FieldTypeError, FieldValueError
from prism.reasoner._texts import whole_characters

MISSING: Any = object()
"""Stands for no value, since a memory may be null."""

MOST_DEPTH = 100

_MOST_NUMBER = 2**63


def _number(value: float) -> float:
    if not (isfinite(value) if isinstance(value, float) else abs(value) < _MOST_NUMBER):
        raise FieldValueError("a memory's numbers must be finite and of at most 64 bits")

    return value


def plain_value(value: Any, depth: int = 0) -> Any:
    """Return a copy of a value that shares nothing with it.

    Raises:
        FieldTypeError: If it is not JSON data.
        FieldValueError: If it is nested too deeply, or a number is not finite or has over 64 bits.
    """
    if isinstance(value, str):
        return whole_characters(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if depth >= MOST_DEPTH:
        raise FieldValueError(f"a memory's value is nested more than {MOST_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return {_key(key): plain_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item, depth + 1) for item in value]

    kind = type(value).__name__
    raise FieldTypeError(f"a memory's value must be text or other JSON data, got {kind}")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise FieldTypeError(f"the keys of a memory's value must be text, got {key!r}")

    return whole_characters(key)


def to_text(value: Any) -> str:
    """Return a value as text for people and models: text as it is, other data as compact JSON."""
    if isinstance(value, str):
        return value

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def to_json(value: Any) -> bytes:
    """Return a value as JSON that people can read, and which is the same for the same value."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


MOST_TAG = 200
"""Characters of a tag; a longer one is cut, and ends in a digest of the whole."""

_DIGEST = 16

# control characters would be obeyed by terminals, and end texts in some programs
_BETWEEN_WORDS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


def as_tag(text: str) -> str:
    """Return the tag that a text stands for; the tag of a tag is itself.

    Spaces and control characters at the ends go, a run of them inside becomes one underscore, and
    equal looking letters become the same ones (Unicode's NFC).
    """
    whole = unicodedata.normalize("NFC", whole_characters(text))
    tag = _BETWEEN_WORDS.sub(" ", whole).strip().replace(" ", "_")
    if len(tag) <= MOST_TAG:
        return tag

    digest = sha256(tag.encode()).hexdigest()[:_DIGEST]
    return f"{tag[: MOST_TAG - _DIGEST - 1]}_{digest}"


def numbered(tag: str, number: int) -> str:
    """Return the tag for a further value under a tag, as ``alice_2``."""
    ending = f"_{number}"
    return f"{tag[: MOST_TAG - len(ending)]}{ending}"

"""Lists as Python writes them, read without building a tree of their syntax."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

_MOST_OF_OTHERS = 64_000
"""Characters of a list in an unusual spelling, which is left to Python's own reader."""

# Possessive: what was taken is never given back, so no memory is spent on the way back.
_ITEM = re.compile(
    r"""[ \t\r\n\f]*+(?:
        (?P<number>-?(?:0|[1-9][0-9]*+))
      | (?P<text>'[^'\\\r\n]*+' | "[^"\\\r\n]*+")
      | (?P<escaped>'(?:[^'\\\r\n]|\\.)*+' | "(?:[^"\\\r\n]|\\.)*+")
    )[ \t\r\n\f]*+(?:,[ \t\r\n\f]*+|\Z)""",
    re.VERBOSE,
)


def read_list(text: str) -> list[Any] | None:
    """Return the list that a text writes down as Python does; None if it is something else.

    Python's own reader takes hundreds of bytes for every item, so that it reads short lists alone,
    and only those with items other than whole numbers and texts.

    Args:
        text: The text, such as ``[1, 'two']``.
    """
    with warnings.catch_warnings():
        # unknown escape sequences are kept as they are, without a word about it
        warnings.simplefilter("ignore")
        try:
            found = _plain_items(text)
            if found is None and len(text) <= _MOST_OF_OTHERS:
                found = ast.literal_eval(text)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None

    return found if isinstance(found, list) else None


def _plain_items(text: str) -> list[Any] | None:
    """Return the items of a list of whole numbers and texts; None if there are others."""
    if not (text.startswith("[") and text.endswith("]")):
        return None

    inner = text[1:-1].strip(" \t\r\n\f")
    position = 0
    items: list[Any] = []

    while position < len(inner):
        item = _ITEM.match(inner, position)
        if item is None:
            return None

        items.append(_value(item))
        position = item.end()

    return items


def _value(item: re.Match[str]) -> int | str:
    match item.lastgroup:
        case "number":
            return int(item["number"])
        case "text":
            return item["text"][1:-1]

    value: str = ast.literal_eval(item["escaped"])

    return value

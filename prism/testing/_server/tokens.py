"""Tokens of a text, counted as servers roughly do."""

from __future__ import annotations

import re
from math import ceil

_TOKEN = re.compile(r"[^\W\d_]+|\d{1,3}|[^\w\s]|_|\n+")
_LETTERS_PER_TOKEN = 7


def count_tokens(text: str) -> int:
    """Count tokens as servers roughly do: a short word, three digits or a mark is one."""
    return sum(_tokens_in(found[0]) for found in _TOKEN.finditer(text))


def first_tokens(text: str, most: int) -> tuple[str, int]:
    """Return the beginning of a text that has so many tokens at most, and how many it has."""
    count = 0
    for found in _TOKEN.finditer(text):
        more = _tokens_in(found[0])
        if count + more > most:
            return text[: found.start()], count
        count += more

    return text, count


def last_tokens(text: str, most: int) -> str:
    """Return the end of a text that has so many tokens at most."""
    count = 0
    for found in reversed(list(_TOKEN.finditer(text))):
        count += _tokens_in(found[0])
        if count > most:
            return text[found.end() :]

    return text


def _tokens_in(piece: str) -> int:
    return ceil(len(piece) / _LETTERS_PER_TOKEN)

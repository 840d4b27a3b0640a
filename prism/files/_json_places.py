"""Where each key of a JSON text stands."""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass

Where = tuple[str | int, ...]
"""Where a value stands in a document: keys and list places from the top."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')

_LONGEST_KEY = 60
_LINE_END = re.compile("\n")


def depth_of(text: str) -> int:
    """Return how deep the values of a valid JSON text lie in each other."""
    depth = deepest = 0
    for found in _TOKEN.finditer(text):
        token = found.group()
        if token in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif token in "}]":
            depth -= 1

    return deepest


class Places:
    """Finds keys in a text.

    Args:
        text: Valid JSON.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._offsets: dict[Where, int] | None = None
        self._line_starts: list[int] = []

        self._repeated: list[tuple[Where, int]] = []

    def of(self, where: Where) -> tuple[int, int]:
        """Return line and column of a key, or of the nearest thing around it that is there."""
        offsets = self._found()
        while where and where not in offsets:
            where = where[:-1]

        return self._place(offsets.get(where, 0))

    def repeated(self) -> tuple[Where, tuple[int, int]] | None:
        """Return a key that stands twice in one object, and where it does so the second time."""
        self._found()
        for where, offset in self._repeated[:1]:
            return where, self._place(offset)

        return None

    def _found(self) -> dict[Where, int]:
        if self._offsets is None:
            self._offsets = _offsets(self._text, self._repeated)
            self._line_starts = [0, *(found.end() for found in _LINE_END.finditer(self._text))]

        return self._offsets

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1


@dataclass(slots=True)
class _Open:
    """An object or list that is being read, and where its values belong."""

    where: Where
    is_object: bool
    key: str | int | None

    @property
    def current(self) -> Where:
        return self.where if self.key is None else (*self.where, self.key)


def _offsets(text: str, repeated: list[tuple[Where, int]]) -> dict[Where, int]:
    found: dict[Where, int] = {}
    stack: list[_Open] = []

    for match in _TOKEN.finditer(text):
        token, offset = match.group(), match.start()
        inner = stack[-1] if stack else None
        if token == ",":
            assert inner is not None
            inner.key = inner.key + 1 if isinstance(inner.key, int) else None
        elif token in "}]":
            stack.pop()
        elif inner is not None and inner.is_object and inner.key is None:
            inner.key = json.loads(token)
            if inner.current in found:
                repeated.append((inner.current, offset))
            found.setdefault(inner.current, offset)
        elif token != ":":
            where = inner.current if inner is not None else ()
            found.setdefault(where, offset)
            if token in "{[":
                stack.append(_Open(where, token == "{", None if token == "{" else 0))

    return found


def shown(where: Sequence[str | int]) -> str:
    """Return a path as messages show it, such as ``agent.hard_limit.max_tokens``."""
    return ".".join(_brief(str(part)) for part in where)


def _brief(key: str) -> str:
    return key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}..."

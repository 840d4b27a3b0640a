"""The position of each key in a JSON or TOML text, which their parsers do not keep."""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

Where = tuple[str | int, ...]
"""The place of a value in a document: keys and indices of lists, from the top."""

Mark = tuple[int, int]
"""Line and column, counted from 1; the column is 0 if unknown."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_LINE_END = re.compile("\n")


def nearest(places: Mapping[Where, Mark], where: Where) -> Mark | None:
    """Return the mark of a key, or of the nearest part around it that has one."""
    while where and where not in places:
        where = where[:-1]

    return places.get(where)


# JSON


def json_places(text: str) -> dict[Where, Mark]:
    """Return the position of each value in a valid JSON text; for an entry, that of its key."""
    offsets, _ = _offsets(text)
    place = _placer(text)
    return {where: place(offset) for where, offset in offsets.items()}


def repeated_key(text: str) -> tuple[Where, Mark] | None:
    """Return a key that appears twice in one object, and the position of its repetition."""
    _, repeated = _offsets(text)
    return next(((where, _placer(text)(offset)) for where, offset in repeated), None)


def depth_of(text: str) -> int:
    """Return how deeply the values of a valid JSON text are nested."""
    depth = deepest = 0
    for found in _TOKEN.finditer(text):
        token = found.group()
        if token in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif token in "}]":
            depth -= 1

    return deepest


def _placer(text: str) -> Callable[[int], Mark]:
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))]

    def place(offset: int) -> Mark:
        line = bisect(starts, offset)
        return line, offset - starts[line - 1] + 1

    return place


@dataclass(slots=True)
class _Open:
    """An object or list that is being read, and the place of its values."""

    where: Where
    is_object: bool
    key: str | int | None

    @property
    def current(self) -> Where:
        return self.where if self.key is None else (*self.where, self.key)

    @property
    def awaits_key(self) -> bool:
        return self.is_object and self.key is None

    def go_on(self) -> None:
        """Continue after a comma: at the next index of a list, or the next key of an object."""
        self.key = self.key + 1 if isinstance(self.key, int) else None


def _offsets(text: str) -> tuple[dict[Where, int], list[tuple[Where, int]]]:
    """Return the offsets of values, and the keys that are repeated in an object."""
    found: dict[Where, int] = {}
    repeated: list[tuple[Where, int]] = []
    # the container of the whole text, which has no place of its own
    stack = [_Open((), is_object=False, key=None)]

    for match in _TOKEN.finditer(text):
        token, offset = match.group(), match.start()
        inner = stack[-1]
        if token == ",":
            inner.go_on()
        elif token in "}]":
            stack.pop()
        elif inner.awaits_key:
            inner.key = json.loads(token)
            if inner.current in found:
                repeated.append((inner.current, offset))
            found.setdefault(inner.current, offset)
        elif token != ":":
            found.setdefault(inner.current, offset)
            if token in "{[":
                stack.append(_Open(inner.current, token == "{", None if token == "{" else 0))

    return found, repeated


# TOML


def toml_places(text: str) -> dict[Where, Mark]:
    """Return the line of each key and table of a valid TOML text.

    A table without a line of its own, such as ``a`` if there is only ``[a.b]``, has the line of the
    first thing in it.
    """
    found: dict[Where, Mark] = {}
    inside: dict[Where, Mark] = {}
    for where, line in _toml_lines(text):
        found[where] = (line, 0)
        for length in range(len(where)):
            inside.setdefault(where[:length], (line, 0))

    return {**inside, **found}


def _toml_lines(text: str) -> Iterator[tuple[Where, int]]:
    """Yield keys and tables with their lines."""
    table: Where = ()
    arrays: dict[Where, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        keys = _keys_of(line.partition("=")[0] + "= 0" if "=" in line else line)
        if not keys:
            continue
        if line.lstrip().startswith("[["):
            array = (*_placed(keys[:-1], arrays), keys[-1])
            arrays[array] = arrays.get(array, -1) + 1
            table = (*array, arrays[array])
            yield table, number
        elif line.lstrip().startswith("["):
            table = _placed(keys, arrays)
            yield table, number
        else:
            yield (*table, *keys), number


def _placed(keys: tuple[str, ...], arrays: dict[Where, int]) -> Where:
    """Return the place of a table; for an array of tables, in its last table so far."""
    found: Where = ()
    for key in keys:
        found = (*found, key)
        if found in arrays:
            found = (*found, arrays[found])

    return found


@cache
def _keys_of(line: str) -> tuple[str, ...]:
    """Return the keys of one line; none if it is not a key or table."""
    import tomllib

    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()

    keys = []
    while isinstance(found, dict) and len(found) == 1:
        ((key, found),) = found.items()
        keys.append(key)

    return tuple(keys)

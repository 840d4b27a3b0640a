"""Parsing lines of JSON into columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson
import polars as pl
from polars.exceptions import ComputeError

from prism.runlog._events import COMMON, EVENTS, WORLD_EVENTS, Key
from prism.runlog._reader import Block

OWN_KEYS = "own_keys"
"""A column for the own keys of a world's event, as an object."""

_COLUMN_TYPES = {
    "string": pl.String(),
    "integer": pl.Int64(),
    "number": pl.Float64(),
    "boolean": pl.Boolean(),
    "array": pl.List(pl.String()),
    "object": pl.String(),
}


def _column_type(key: Key) -> pl.DataType:
    # Only the version of the schema, which is a constant there, has no type.
    of_value = key.schema.get("type", "integer")
    name, *_or_null = [of_value] if isinstance(of_value, str) else of_value
    return _COLUMN_TYPES[name]


TYPES: dict[str, pl.DataType] = {
    key.name: _column_type(key)
    for keys in (COMMON, *(event.keys for event in EVENTS))
    for key in keys
}
"""The type of every key as a column."""

OBJECTS = frozenset(
    key.name for event in EVENTS for key in event.keys if "object" in str(key.schema.get("type"))
)
"""Keys of objects. Their own keys vary, so they are kept as JSON text, made by `objects_of`.

polars would shuffle the keys of large ones.
"""

TYPES[OWN_KEYS] = pl.String()
_NOT_OWN = frozenset((*(key.name for key in COMMON), "agent_id"))

_LONE_SURROGATE = re.compile(
    rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|(?<![^\\]\\u[dD][89abAB]..\\u[dD])[c-fC-F])",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """Some lines of a log as columns.

    Args:
        frame: A row for every line that is JSON: its number as ``line``, and the wanted keys, null
            if a line has no such key or a value of another type.
        bad_lines: Numbers of the lines that are not JSON.
    """

    frame: pl.DataFrame
    bad_lines: Sequence[int] = ()


def parse(block: Block, columns: Sequence[str]) -> Parsed:
    """Parse a block of lines.

    The whole block is parsed at once. Single lines are parsed only if that fails, or if some lines
    are blank.

    Args:
        block: Whole lines.
        columns: The wanted keys, from `TYPES` without `OBJECTS`.
    """
    if _may_hold_lone_surrogates(block.data):
        return _parse_line_by_line(block, columns)

    try:
        frame = _read(block.data, columns, block.first_line)
    except ComputeError:
        return _parse_line_by_line(block, columns)

    # polars skips blank lines, so its line numbers would be wrong.
    if frame.height < block.lines:
        return _parse_line_by_line(block, columns)

    return Parsed(frame)


def objects_of(block: Block, lines: pl.Series, names: Sequence[str]) -> pl.DataFrame:
    """Return the objects that some lines of a block have.

    Each of the lines is parsed by itself, which takes many times as long as `parse`: pass only the
    lines whose objects are needed.

    Args:
        block: The block.
        lines: Numbers of the lines; null gives null.
        names: Keys of `OBJECTS`.

    Returns:
        A column of JSON text for each key. It is null if a line lacks the key, or its value is null
        or nested hundreds of levels deep.
    """
    every = block.data.split(b"\n") if lines.count() else []
    nothing = [None] * len(names)
    texts = [
        nothing if line is None else _texts(every[line - block.first_line], names) for line in lines
    ]

    return pl.DataFrame(texts, schema={name: TYPES[name] for name in names}, orient="row")


def empty(columns: Sequence[str]) -> pl.DataFrame:
    """Return a frame without rows, with ``line``, the columns and ``run``."""
    return pl.DataFrame(
        schema={"line": pl.UInt32(), **{name: TYPES[name] for name in columns}, "run": pl.UInt32()}
    )


def _read(data: bytes, columns: Sequence[str], first_line: int) -> pl.DataFrame:
    schema = {name: TYPES[name] for name in columns}
    frame = pl.scan_ndjson(
        data, schema=schema, row_index_name="line", row_index_offset=first_line, ignore_errors=True
    ).collect(engine="streaming")
    return frame.cast({"line": pl.UInt32})


def _parse_line_by_line(block: Block, columns: Sequence[str]) -> Parsed:
    lines = [
        (number, line)
        for number, line in enumerate(block.data.split(b"\n"), block.first_line)
        if line.strip()
    ]
    sound = [(number, line) for number, line in lines if _is_json(line)]
    frames = list(_read_in_halves(sound, columns))
    frame = pl.concat([_read(b"", columns, 0), *frames])

    return Parsed(frame, sorted({number for number, _ in lines}.difference(frame["line"])))


def _read_in_halves(
    lines: Sequence[tuple[int, bytes]], columns: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """Read lines together, or in halves if the two parsers disagree about one of them."""
    if not lines:
        return

    try:
        frame = _read(b"\n".join(line for _, line in lines), columns, 0)
    except ComputeError:
        middle = len(lines) // 2
        if middle:
            yield from _read_in_halves(lines[:middle], columns)
            yield from _read_in_halves(lines[middle:], columns)

        return

    numbers = pl.Series([number for number, _ in lines], dtype=pl.UInt32)
    yield frame.with_columns(line=numbers)


def _texts(line: bytes, names: Sequence[str]) -> list[str | None]:
    try:
        event = orjson.loads(line)
        if OWN_KEYS in names and event["event"].startswith(WORLD_EVENTS):
            event[OWN_KEYS] = {key: event[key] for key in event if key not in _NOT_OWN}

        values = [event.get(name) for name in names]
        return [None if value is None else orjson.dumps(value).decode() for value in values]
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        # Nested deeper than orjson reads or writes.
        return [None] * len(names)


def _may_hold_lone_surrogates(data: bytes) -> bool:
    # Half a surrogate pair is invalid, but polars would read it as the character NUL.
    return b"\\" in data and _LONE_SURROGATE.search(data) is not None


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False

    return True

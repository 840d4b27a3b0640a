"""From lines of JSON to columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson
import polars as pl
from polars.exceptions import ComputeError

from prism.runlog._reader import Block

TYPES: dict[str, pl.DataType] = {
    **dict.fromkeys(
        ("event", "timestamp", "chart", "agent_id", "from_state", "to_state", "trigger"),
        pl.String(),
    ),
    **dict.fromkeys(
        ("state", "chosen", "source", "reason", "model", "host", "archetype", "display_name"),
        pl.String(),
    ),
    **dict.fromkeys(("post_id", "kind", "parent_id", "root_id", "author_id", "text"), pl.String()),
    **dict.fromkeys(("probabilities", "context", "error"), pl.String()),
    **dict.fromkeys(
        ("round", "tick", "ticks_in_state", "attempts", "input_tokens", "output_tokens"), pl.Int64()
    ),
    **dict.fromkeys(
        ("timeout_threshold", "schema", "agents", "rounds", "ticks_per_round", "seed"), pl.Int64()
    ),
    "latency": pl.Float64(),
    "options": pl.List(pl.String()),
}
"""Every key that tables are made from."""

OBJECTS = ("probabilities", "context")
"""Those that hold objects, whose keys vary: they are kept as JSON text, which `objects_of` makes."""

_LONE_SURROGATE = re.compile(
    rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|(?<![^\\]\\u[dD][89abAB]..\\u[dD])[c-fC-F])",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """Some lines of a log as columns.

    Args:
        frame: A row for every line that is JSON: its number as ``line``, and the wanted keys, null
            where a line has no such key or something else under it.
        bad_lines: Numbers of the lines that are not.
    """

    frame: pl.DataFrame
    bad_lines: Sequence[int] = ()


def parse(block: Block, columns: Sequence[str]) -> Parsed:
    """Parse a block of lines.

    The whole block is parsed at once; only if that fails, or if some lines are blank, is each line
    looked at.

    Args:
        block: Whole lines.
        columns: The keys that are wanted, from `TYPES` without `OBJECTS`.
    """
    if _may_hold_lone_surrogates(block.data):
        return _parse_sound_lines(block, columns)

    try:
        frame = _read(block.data, columns, block.first_line)
    except ComputeError:
        return _parse_sound_lines(block, columns)

    if frame.height < block.lines:
        return _parse_sound_lines(block, columns)

    return Parsed(frame)


def objects_of(block: Block, lines: pl.Series, names: Sequence[str]) -> pl.DataFrame:
    """Return what some lines of a block hold under keys of `OBJECTS`.

    Each of the lines is parsed by itself for that, which takes many times as long as `parse`, so
    only those should be named whose objects are looked at.

    Args:
        block: The block.
        lines: Numbers of the lines; null gives null.
        names: The keys.

    Returns:
        A column for each key. What a line holds is given as JSON text; null if it has no such key,
        or holds null or what is nested hundreds of levels deep.
    """
    every = block.data.split(b"\n") if lines.count() else []
    nothing = [None] * len(names)
    texts = [
        nothing if line is None else _texts(every[line - block.first_line], names) for line in lines
    ]

    return pl.DataFrame(texts, schema={name: TYPES[name] for name in names}, orient="row")


def empty(columns: Sequence[str]) -> pl.DataFrame:
    """Return a frame without rows that has the columns of others, and ``run``."""
    return pl.DataFrame(
        schema={"line": pl.UInt32(), **{name: TYPES[name] for name in columns}, "run": pl.UInt32()}
    )


def _read(data: bytes, columns: Sequence[str], first_line: int) -> pl.DataFrame:
    schema = {name: TYPES[name] for name in columns}
    frame = pl.scan_ndjson(
        data, schema=schema, row_index_name="line", row_index_offset=first_line, ignore_errors=True
    ).collect(engine="streaming")
    return frame.cast({"line": pl.UInt32})


def _parse_sound_lines(block: Block, columns: Sequence[str]) -> Parsed:
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
    """Read lines together, or in halves where the two parsers disagree about one of them."""
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

    yield frame.with_columns(line=_numbers(number for number, _ in lines))


def _numbers(lines: Iterable[int]) -> pl.Series:
    return pl.Series(lines, dtype=pl.UInt32)


def _texts(line: bytes, names: Sequence[str]) -> list[str | None]:
    try:
        event = orjson.loads(line)
        values = [event.get(name) for name in names]
        return [None if value is None else orjson.dumps(value).decode() for value in values]
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        # nested deeper than it reads or writes
        return [None] * len(names)


def _may_hold_lone_surrogates(data: bytes) -> bool:
    """Find halves of characters, which are no text, but which the parser of columns takes for the character NUL."""
    return b"\\" in data and _LONE_SURROGATE.search(data) is not None


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False

    return True

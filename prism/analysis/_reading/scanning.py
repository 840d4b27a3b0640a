"""All events of one kind as a query, with every key that they have, for any kind of event."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
import polars as pl
from polars.io.plugins import register_io_source

from prism.analysis._reading.parsing import TYPES
from prism.errors import InputError
from prism.runlog._events import COMMON, EVENTS
from prism.runlog._reader import Block


def query_of(
    make: Callable[[Collection[str]], Iterable[pl.DataFrame]], *, schema: Mapping[str, pl.DataType]
) -> pl.LazyFrame:
    """Return a polars query over the parts of a table, with few of them in memory at a time.

    Args:
        make: Yields the parts in order. It is called with the needed columns whenever the query is
            run; parts may also have other columns.
        schema: Columns and types of the table.
    """

    def source(
        wanted: list[str] | None, predicate: pl.Expr | None, most: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        columns = wanted or list(schema)
        needed = {*columns, *(() if predicate is None else predicate.meta.root_names())}

        for frame in make(needed):
            part = (frame if predicate is None else frame.filter(predicate)).select(columns)
            if most is None:
                yield part
                continue

            yield part.head(most)
            most -= part.height
            if most <= 0:
                return

    return register_io_source(source, schema=pl.Schema(schema))


Kind = Literal["truth", "whole", "number", "text", "texts", "json"]

ADDED = ("run", "line")
"""Columns that are not keys of an event."""

_COLUMN_TYPES: Mapping[Kind, pl.DataType] = {
    "truth": pl.Boolean(),
    "whole": pl.Int64(),
    "number": pl.Float64(),
    "text": pl.String(),
    "texts": pl.List(pl.String()),
    "json": pl.String(),
}
_WHOLE = range(-(2**63), 2**63)
_MOST_KEYS = 1_000
_OBJECTS_OF_SCHEMA = {
    (event.name, key.name)
    for event in EVENTS
    for key in event.keys
    if "object" in str(key.schema.get("type"))
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a scan.

    Args:
        name: Its name: the key, with the prefix ``key_`` if a scan already has such a column.
        key: The key of the event.
        type: Its type.
        kind: The kind of its values; None if `parse` reads them with the lines.
    """

    name: str
    key: str
    type: pl.DataType
    kind: Kind | None = None


def columns_of_schema(event: str) -> list[Column]:
    """Return the columns that the schema gives to an event of prism, or to any other."""
    own = next((found.keys for found in EVENTS if found.name == event), ())
    return [
        Column(key.name, key.name, TYPES[key.name], _kind_in_schema(event, key.name))
        for key in (*COMMON[1:], *own)
    ]


def _kind_in_schema(event: str, key: str) -> Kind | None:
    return "json" if (event, key) in _OBJECTS_OF_SCHEMA else None


class KeysFound:
    """The keys found in the events of one kind.

    Args:
        columns: Those that are known already.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = list(columns)
        self._known = frozenset(("event", *(column.key for column in columns)))
        self._kinds: dict[str, set[Kind]] = {}

    def take(self, block: Block, lines: pl.Series) -> None:
        """Add the events in some lines of a block.

        Raises:
            InputError: If there are more keys than a table may have.
        """
        for event in _events(block, lines):
            # Nearly all events have only known keys, which is quick to check.
            if not event.keys() <= self._known:
                self._take(event)

    def columns(self) -> list[Column]:
        """Return all columns: those known before, then the others as they were found."""
        columns = list(self._columns)
        taken = {*ADDED, "event", *(column.name for column in columns)}
        for key, kinds in self._kinds.items():
            name = key
            while name in taken:
                name = f"key_{name}"

            kind = _common(kinds)
            taken.add(name)
            columns.append(Column(name, key, _COLUMN_TYPES[kind], kind))

        return columns

    def _take(self, event: Mapping[str, Any]) -> None:
        _add_kinds(self._kinds, event, self._known)
        if len(self._kinds) > _MOST_KEYS:
            raise InputError(
                f"events of this kind have more than {_MOST_KEYS:,} different keys, too many for "
                "the columns of a table: put varying keys into an object under one key"
            )


def as_columns(objects: Sequence[Mapping[str, Any]], *, otherwise: str) -> pl.DataFrame:
    """Return objects as rows, with a column for each key that any of them has.

    A column has the narrowest type that fits all its values: true or false, whole number, number,
    text, or else JSON text.

    Args:
        objects: The objects, read from JSON.
        otherwise: Name of a single column of JSON text, if there are more keys than a table may
            have.
    """
    found: dict[str, set[Kind]] = {}
    for each in objects:
        _add_kinds(found, each)
    if len(found) > _MOST_KEYS:
        return pl.DataFrame({otherwise: [_as_json(each) for each in objects]})

    kinds = {key: _in_one_cell(_common(several)) for key, several in found.items()}
    readers = [(key, _READERS[kind]) for key, kind in kinds.items()]
    rows = [[read(each.get(key)) for key, read in readers] for each in objects]
    schema = {key: _COLUMN_TYPES[kind] for key, kind in kinds.items()}

    return pl.DataFrame(rows, schema=schema, orient="row")


def read_object(text: str | None) -> Mapping[str, Any]:
    """Return a JSON object, empty if the text holds something else."""
    value = orjson.loads(text or "{}")
    return value if isinstance(value, dict) else {}


def _add_kinds(
    found: dict[str, set[Kind]], event: Mapping[str, Any], known: Collection[str] = ()
) -> None:
    for key, value in event.items():
        if key in known:
            continue

        kinds = found.setdefault(key, set())
        if value is not None:
            kinds.add(_kind(value))


def _in_one_cell(kind: Kind) -> Kind:
    return "json" if kind == "texts" else kind


def values_of(block: Block, lines: pl.Series, columns: Sequence[Column]) -> pl.DataFrame:
    """Return columns that are not read with the lines, for some lines of a block."""
    if not columns:  # do not parse each line for nothing
        return pl.DataFrame()

    readers = [(column.key, _READERS[column.kind]) for column in columns if column.kind]
    rows = [[read(event.get(key)) for key, read in readers] for event in _events(block, lines)]

    return pl.DataFrame(rows, schema={column.name: column.type for column in columns}, orient="row")


def _events(block: Block, lines: pl.Series) -> Iterator[dict[str, Any]]:
    every = block.data.split(b"\n") if lines.len() else []
    for line in lines:
        try:
            yield orjson.loads(every[line - block.first_line])
        except orjson.JSONDecodeError:  # nested deeper than orjson reads
            yield {}


def _kind(value: Any) -> Kind:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "whole" if value in _WHOLE else "json"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "text"

    is_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)

    return "texts" if is_texts else "json"


def _common(kinds: Collection[Kind]) -> Kind:
    """Return the narrowest kind that fits values of several kinds; text if there are no values."""
    if set(kinds) == {"whole", "number"}:
        return "number"
    if len(kinds) > 1:
        return "json"
    return next(iter(kinds), "text")


def _as_json(value: Any) -> str | None:
    try:
        return None if value is None else orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # nested deeper than orjson writes
        return None


def _only(*kinds: Kind) -> Callable[[Any], Any]:
    # A log that is still being written may have other values by now.
    return lambda value: value if value is not None and _kind(value) in kinds else None


_READERS: Mapping[Kind, Callable[[Any], Any]] = {
    "truth": _only("truth"),
    "whole": _only("whole"),
    "number": _only("number", "whole"),
    "text": _only("text"),
    "texts": _only("texts"),
    "json": _as_json,
}


def names_shown(names: Iterable[str], most: int = 20) -> str:
    """Return some names as a text, and how many more there are."""
    every = sorted(names)
    more = len(every) - most
    return ", ".join(every[:most]) + (f", and {more:,} more" if more > 0 else "")

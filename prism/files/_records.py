"""Reading untrusted files record by record, with every complaint naming file, line and field."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from prism.errors import InputError, PrismError

_UNCLEAN = re.compile("[\0\ud800-\udfff]")

MOST_FILE_BYTES = 1 << 30
MOST_LINE_CHARACTERS = 4_000_000


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file, and where it stands.

    Args:
        path: The file.
        line: Its first line, counted from 1.
        fields: What it says.
    """

    path: Path
    line: int
    fields: Mapping[str, Any]

    def wrong(self, field: str | None, problem: str) -> InputError:
        """Make the error for one of the record's fields."""
        return InputError(problem, path=self.path, line=self.line, field=field)

    def require_known(self, known: Collection[str]) -> None:
        """Refuse fields that nobody reads, by name: they are misspelt, or meant for something else."""
        for field in self.fields:
            if field not in known:
                raise self.wrong(str(field), f"unknown field; known are {', '.join(known)}")

    def text(self, field: str, default: str | None = None) -> str:
        """Read a text; one without a default must be there and not be empty."""
        value = self.fields.get(field)
        if value is None and default is not None:
            return default
        if value is None:
            raise self.wrong(field, "is missing")
        if not isinstance(value, str):
            raise self.wrong(field, f"must be text, got {brief(value)}")

        self.require_clean(field, [value])
        if default is None and not value.strip():
            raise self.wrong(field, "must not be empty")

        return value

    def texts(self, field: str, *, least: int = 0) -> list[str]:
        """Read a list of texts with at least so many entries."""
        value = self.fields.get(field)
        if value is None and least == 0:
            return []
        if value is None:
            raise self.wrong(field, "is missing")

        if not isinstance(value, list) or not all(
            isinstance(item, str) and item.strip() for item in value
        ):
            raise self.wrong(field, f"must be a list of non-empty texts, got {brief(value)}")

        self.require_clean(field, value)
        if len(value) < least:
            raise self.wrong(field, f"must have at least {least} entry, got an empty list")

        return value

    @contextmanager
    def at(self, field: str) -> Iterator[None]:
        """Place any complaint about a value at this field."""
        try:
            yield
        except PrismError as error:
            raise self.wrong(field, str(error)) from error

    def require_clean(self, field: str, texts: Iterable[str]) -> None:
        """Refuse what an escape sequence can put into a text, though no file can be written with it."""
        for text in texts:
            if _UNCLEAN.search(text):
                raise self.wrong(field, f"holds a NUL or half a surrogate pair: {brief(text)}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what can go wrong with a file into one clear error."""
    try:
        if path.is_dir():
            raise InputError("is a folder, not a file", path=path)
        if path.stat().st_size > MOST_FILE_BYTES:
            raise InputError(f"is larger than {MOST_FILE_BYTES >> 20} MiB: split it", path=path)
        if path.stat().st_size == 0:
            raise InputError("is empty", path=path)

        yield
    except FileNotFoundError:
        raise InputError("there is no such file", path=path) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 text ({error.reason})", path=path, line=_undecodable_line(path)
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None


def _undecodable_line(path: Path) -> int | None:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number

    return None


def json_lines(path: Path) -> Iterator[Record]:
    """Read a JSON Lines file: one object a line; blank lines are passed over."""
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _object(path, number, _parse_line(path, number, line))


def json_array(path: Path) -> Iterator[Record]:
    """Read a JSON file that is one array of objects."""
    text = path.read_text(encoding="utf-8-sig")
    whole = _parse(path, None, text)
    if not isinstance(whole, list):
        raise InputError(
            f"must be one JSON array of objects, got {_kind(whole)}", path=path, line=1
        )

    for value, line in zip(whole, _element_lines(text), strict=True):
        yield _object(path, line, value)


def _parse_line(path: Path, number: int, line: str) -> Any:
    if len(line) > MOST_LINE_CHARACTERS:
        raise InputError(
            f"is longer than {MOST_LINE_CHARACTERS:,} characters", path=path, line=number
        )

    return _parse(path, number, line)


def _parse(path: Path, number: int | None, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once_each)
    except _RepeatedKeyError as error:
        raise InputError(
            "stands twice in one object", path=path, line=number, field=str(error)
        ) from None
    except json.JSONDecodeError as error:
        problem = f"is not valid JSON: {error.msg} (column {error.colno})"
        raise InputError(problem, path=path, line=number or error.lineno) from None
    except ValueError:  # the one other complaint of the parser
        raise InputError("holds a number of too many digits", path=path, line=number) from None
    except RecursionError:
        raise InputError("is nested too deeply", path=path, line=number) from None


class _RepeatedKeyError(Exception):
    """An object has the same key twice; the parser would keep the last without a word."""


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKeyError(
            next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        )

    return found


def _element_lines(text: str) -> Iterator[int]:
    """Return the line on which each element of a (valid) JSON array starts."""
    decoder = json.JSONDecoder()
    position, line = text.index("[") + 1, text.count("\n", 0, text.index("[")) + 1
    while True:
        start = position
        while text[position] in " \t\r\n,":
            position += 1

        line += text.count("\n", start, position)
        if text[position] == "]":
            return

        yield line
        _, end = decoder.raw_decode(text, position)
        line += text.count("\n", position, end)
        position = end


def _object(path: Path, line: int, value: Any) -> Record:
    if not isinstance(value, dict):
        raise InputError(f"must be a JSON object, got {_kind(value)}", path=path, line=line)
    return Record(path, line, value)


def _kind(value: Any) -> str:
    kinds = {
        dict: "an object",
        list: "an array",
        str: "text",
        bool: "true or false",
        type(None): "null",
    }
    return kinds.get(type(value), "a number")

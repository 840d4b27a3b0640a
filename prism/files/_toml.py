"""Reading TOML with the lines of its keys, which the parser of the standard library drops."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from prism.errors import InputError
from prism.files._records import reading

KeyPath = tuple[str | int, ...]
"""Where something stands: the names of tables and keys, and places in arrays of tables, from 0."""


class TomlFile:
    """A file of TOML that knows where each of its keys stands.

    Args:
        path: The file.
        text: What it holds.

    Attributes:
        path: The file.
        data: What it says.
        sha256: The SHA-256 of its content.

    Raises:
        InputError: If it is not valid TOML; names the line.
    """

    def __init__(self, path: Path | None, text: str) -> None:
        self.path = path
        self.sha256: str = sha256(text.encode()).hexdigest()
        self._text = text
        try:
            self.data: dict[str, Any] = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"at line (\d+)", str(error))
            number = int(line.group(1)) if line else len(self._text.splitlines())
            raise InputError(f"is not valid TOML: {error}", path=path, line=number) from None

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        """Read a file.

        Raises:
            InputError: If it cannot be read, or is not valid TOML.
        """
        with reading(path):
            text = path.read_bytes().decode()

        return cls(path, text)

    def line(self, keys: KeyPath) -> int | None:
        """Return the line of a key or table, else of what is in it, else of what it is in."""
        if keys in self._lines:
            return self._lines[keys]

        inside = (line for each, line in self._lines.items() if each[: len(keys)] == keys)
        return next(inside, None) or (self.line(keys[:-1]) if keys else None)

    def error(self, problem: str, keys: KeyPath) -> InputError:
        """Return an error that says where in the file something is wrong."""
        names = [key for key in keys if isinstance(key, str)]
        return InputError(
            problem, path=self.path, line=self.line(keys), field=".".join(names) or None
        )

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        return dict(_lines_of(self._text))


def _lines_of(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield keys and tables with their lines."""
    table: KeyPath = ()
    arrays: dict[KeyPath, int] = {}
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


def _placed(keys: tuple[str, ...], arrays: dict[KeyPath, int]) -> KeyPath:
    """Return where a table stands: of an array of tables, in the last one so far."""
    found: KeyPath = ()
    for key in keys:
        found = (*found, key)
        if found in arrays:
            found = (*found, arrays[found])

    return found


@cache
def _keys_of(line: str) -> tuple[str, ...]:
    """Return the keys that one line leads to; none if it is no key or table."""
    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()

    keys = []
    while isinstance(found, dict) and len(found) == 1:
        ((key, found),) = found.items()
        keys.append(key)

    return tuple(keys)

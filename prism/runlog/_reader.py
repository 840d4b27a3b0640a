"""Reading the log of a run, line by line, decompressed if necessary."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from gzip import BadGzipFile, GzipFile
from os import PathLike
from pathlib import Path
from typing import Any

import orjson

from prism.errors import InputError

LOG_NAME = "events.jsonl"
"""Name of the log in the folder of a run."""

LOG_NAMES = (LOG_NAME, f"{LOG_NAME}.gz")
"""Names that the log may have, plain or compressed."""

GZIP_MAGIC = b"\x1f\x8b"
"""How a file begins that is compressed with gzip."""

OnFault = Callable[[str], object]
"""Receives problems with unreadable parts."""


def locate_log(path: PathLike[str] | str) -> Path:
    """Return the path of the log of a run.

    Args:
        path: The log, plain or compressed with gzip, or the folder of the run; ``-`` is standard
            input.

    Raises:
        InputError: If there is no such file, or no log in the folder.
    """
    given = Path("/dev/stdin" if str(path) == "-" else path)
    try:
        if not given.is_dir():
            given.stat()
            return given
        named = (given / name for name in LOG_NAMES)
        log = next((each for each in named if each.is_file()), None)
    except OSError as error:
        raise _unreadable(given, error) from None
    if log is None:
        problem = f"holds no {LOG_NAME}, plain or .gz: give the folder of a run, or its log"
        raise InputError(problem, path=given)
    return log


def read_lines(path: Path, on_fault: OnFault) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a log with their numbers, from 1.

    A file that starts with the first bytes of gzip is decompressed, whatever its name.

    Args:
        path: The log.
        on_fault: Called if compressed data is damaged or cut off; nothing after it can be read.

    Raises:
        InputError: If the file cannot be opened or read.
    """
    number = 0
    try:
        with path.open("rb") as file:
            is_compressed = file.peek(2)[:2] == GZIP_MAGIC
            for number, line in enumerate(GzipFile(fileobj=file) if is_compressed else file, 1):
                yield number, line
    except (EOFError, BadGzipFile, zlib.error):
        on_fault(f"{path}: the compressed data is damaged or cut off after line {number}")
    except OSError as error:
        raise _unreadable(path, error) from None


def read_line(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line, or None."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


def in_words(value: Any) -> str:
    """Return a value of a log in words: names and values, without braces and quotes."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {in_words(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(in_words, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return "nothing" if value is None else str(value)


def _unreadable(path: Path, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError("there is no such file or folder", path=path)
    return InputError(f"cannot be read: {error.strerror}", path=path)

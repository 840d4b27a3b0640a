"""Finding the log of a run, and reading its lines."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import orjson

from prism.errors import InputError

LOG_NAME = "events.jsonl"
"""Name of the log in the folder of a run."""

LOG_NAMES = (LOG_NAME, f"{LOG_NAME}.gz")
"""Names that the log may have, plain or compressed."""


def locate_log(path: PathLike[str] | str) -> Path:
    """Return the path of the log of a run.

    Args:
        path: The log, plain or compressed with gzip, or the folder of the run.

    Raises:
        InputError: If there is no such file, or no log in the folder.
    """
    path = Path(path)
    try:
        if not path.is_dir():
            path.stat()
            if not path.is_file():
                raise InputError("is a pipe: write it to a file, which is read twice", path=path)
            return path
        named = (path / name for name in LOG_NAMES)
        log = next((each for each in named if each.is_file()), None)
    except OSError as error:
        raise unreadable(path, error) from None
    if log is None:
        problem = f"holds no {LOG_NAME}, plain or .gz: give the folder of a run, or its log"
        raise InputError(problem, path=path)
    return log


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


def unreadable(path: Path, error: OSError) -> InputError:
    """Return why a file or a folder of a run cannot be read."""
    if isinstance(error, FileNotFoundError):
        return InputError("there is no such file or folder", path=path)
    return InputError(f"cannot be read: {error.strerror}", path=path)

"""Finding the log of a run, and reading its lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
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


def unreadable(path: Path, error: OSError) -> InputError:
    """Return why a file or a folder of a run cannot be read."""
    if isinstance(error, FileNotFoundError):
        return InputError("there is no such file or folder", path=path)
    return InputError(f"cannot be read: {error.strerror}", path=path)


ANSWERS_NAME = "answers.jsonl"
"""Name of the file of answers in the folder of a run."""

_ANSWERS = ("decision", "text")


def read_answers(run: PathLike[str] | str) -> Iterator[dict[str, Any]]:
    """Yield the prompts and replies of a run, in the order in which they came.

    The last line may be cut off, as the program may have been killed while it was written.

    Args:
        run: The folder of the run, or the file itself.

    Yields:
        A dict for each decision and text, with its ``id``, ``prompt``, ``reply`` and ``cost``; if
        the model was asked again, ``repairs`` are its useless replies and the prompts after them.

    Raises:
        InputError: If nothing was recorded, or a line is damaged.
    """
    return (each for each in read_journal(run) if each.get("kind", "text") in _ANSWERS)


def read_journal(run: PathLike[str] | str) -> Iterator[dict[str, Any]]:
    """Yield all lines of a run's journal; see `read_answers`."""
    folder = Path(run)
    path = folder / ANSWERS_NAME if folder.is_dir() else folder
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                record = read_line(line)
                if record is not None and "id" in record:
                    yield record
                elif line.endswith(b"\n"):
                    raise InputError("is damaged: not the answer of a run", path=path, line=number)
    except OSError as error:
        raise unreadable(path, error) from None


def find_answers(run: Path, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the prompts and replies of some answers by id, as far as they were recorded.

    Args:
        run: The folder of the run.
        ids: The ids.
    """
    wanted = {*ids}
    # of a damaged file, what is before the damage
    answers: dict[str, dict[str, Any]] = {}
    with suppress(InputError):
        answers.update((line["id"], line) for line in read_answers(run) if line["id"] in wanted)
    return answers

"""What models answered, as a run keeps it beside its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from prism.errors import InputError
from prism.runlog._reader import read_line, unreadable

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
    given = Path(run)
    path = given / ANSWERS_NAME if given.is_dir() else given
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

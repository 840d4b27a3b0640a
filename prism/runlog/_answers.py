"""What models answered, as a run keeps it beside its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from prism.errors import InputError
from prism.runlog._reader import OnFault, read_line, unreadable

ANSWERS_NAME = "answers.jsonl"
"""Name of the file of answers in the folder of a run."""


def read_answers(run: PathLike[str] | str) -> Iterator[dict[str, Any]]:
    """Yield the prompts and replies of a run, in the order in which they came.

    The last line may be cut off, as the program may have been killed while it was written.

    Args:
        run: The folder of the run, or the file itself.

    Yields:
        A dict for each decision and text, with its ``id``, ``prompt``, ``reply`` and ``attempts``.

    Raises:
        InputError: If nothing was recorded, or a line is damaged.
    """
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


def find_answers(run: Path, ids: Iterable[str], on_fault: OnFault) -> dict[str, dict[str, Any]]:
    """Return the prompts and replies of some answers by id, as far as they were recorded.

    Args:
        run: The folder of the run.
        ids: The ids.
        on_fault: Called with what is damaged.
    """
    wanted = {*ids}
    if not (run / ANSWERS_NAME).is_file():
        return {}
    try:
        return {line["id"]: line for line in read_answers(run) if line["id"] in wanted}
    except InputError as error:
        on_fault(str(error))
        return {}

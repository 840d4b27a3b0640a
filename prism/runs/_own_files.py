"""The files of runs, which no command may overwrite."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from prism.errors import InputError
from prism.runlog._prompts import PROMPTS_NAME
from prism.runlog._reader import LOG_NAME
from prism.runs._checkpoints import FOLDER_NAME
from prism.runs._folder import ASIDE_NAME, SUMMARY_NAME

_LOGS = (LOG_NAME, f"{LOG_NAME}.gz")
_OWN = (*_LOGS, SUMMARY_NAME, FOLDER_NAME, PROMPTS_NAME)


def refuse_own_file(out: Path, reads: Iterable[Path] = ()) -> None:
    """Refuse to write to a file that is read, or that belongs to a run, by whatever name.

    Args:
        out: The file to write to.
        reads: What is read: files, and folders of runs.

    Raises:
        InputError: If it is one of them.
    """
    for read in reads:
        if any(_is_same(out, found) for found in _files_of(read)):
            problem = f"is read by this command ({read}): name another file to write to"
            raise InputError(problem, path=out)

    place = Path(os.path.realpath(out))
    if _belongs_to_a_run(place):
        raise InputError("belongs to a run: name another file to write to", path=out)


def _files_of(read: Path) -> Iterator[Path]:
    if not read.is_dir():
        yield read
        return

    yield from (read / name for name in _OWN)
    yield from read.glob(f"{FOLDER_NAME}/*")
    yield from read.glob(f"{ASIDE_NAME}*")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return False


def _belongs_to_a_run(place: Path) -> bool:
    folder = place.parent
    if folder.name == FOLDER_NAME and _holds_a_run(folder.parent):
        return True

    is_own = place.name in _OWN or place.name.startswith(ASIDE_NAME)
    return is_own and _holds_a_run(folder)


def _holds_a_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in (*_LOGS, SUMMARY_NAME))

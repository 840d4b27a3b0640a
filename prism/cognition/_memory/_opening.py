"""Reading a memory's file, whatever is in it, and falling back to a backup."""

from __future__ import annotations

import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from prism.cognition._memory._beside import Backups, copy_whole, link_or_copy
from prism.cognition._memory._contents import Contents, NewerSchemaError
from prism.errors import InputError
from prism.files._source import Source

_DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Opened:
    """A memory's file, as it was read.

    Args:
        contents: What it says.
        content: Its bytes; empty for a memory that has no file yet.
        faults: What was damaged, and what was read instead.
    """

    contents: Contents
    content: bytes = b""
    faults: tuple[str, ...] = ()


def open_file(path: Path, backups: Backups, *, writes: bool) -> Opened:
    """Read a memory: to change it, if its lock is held, or what another process may change.

    One that is damaged is restored from its newest good backup, or that is read.

    Raises:
        InputError: If there is none to read, somebody made a slip in it, or it is damaged and no
            backup is good.
        OSError: If it cannot be read.
    """
    if path.exists() and not path.is_file():
        raise InputError("is not a file: name the file of a memory", path=path)
    if not (path.exists() or backups.paths()):
        if writes:
            return Opened(Contents(Source.of({})))
        raise InputError("this memory does not exist", path=path)

    try:
        return _read(path)
    except NewerSchemaError:
        raise
    except InputError as error:
        _require_no_slip(path, error)
        return _restored(path, backups, error, writes=writes)


def _restored(path: Path, backups: Backups, damage: InputError, *, writes: bool) -> Opened:
    """Restore a damaged memory from its newest good backup, or read that."""
    for backup in backups.paths():
        try:
            found = _read(backup)
        except NewerSchemaError:
            raise
        except InputError:
            continue
        if not writes:
            return Opened(found.contents, found.content, (f"{damage}: read from {backup}",))

        kept = f"; the file is kept as {_set_aside(path)}" if path.exists() else ""
        copy_whole(backup, path)
        fault = f"{damage}: restored from {backup}{kept}"
        return Opened(found.contents, found.content, (fault,))

    raise InputError(
        f"{damage.problem}, and it has no valid backup: repair it, replace it with your own copy, "
        "or move it away to begin a new memory",
        path=path,
        line=damage.line,
        field=damage.field,
    )


def place_of(path: PathLike[str] | str) -> Path:
    """Return where a memory is, whatever links lead to it: its lock and backups are there, too."""
    return Path(os.path.realpath(path))


def _read(path: Path) -> Opened:
    """Read a file.

    Raises:
        InputError: If it is missing, or not a memory; names line, column or key.
    """
    if not path.exists():
        raise InputError("is missing", path=path)
    content = path.read_bytes()
    if not content.strip():
        raise InputError("is empty", path=path)

    try:
        # some editors begin a file with a byte order mark
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("is not UTF-8", path=path, line=line) from None

    return Opened(Contents(Source.parse(text, "json", path=path)), content)


def _require_no_slip(path: Path, error: InputError) -> None:
    """Refuse a text that somebody edited: what was written there is in no backup.

    prism writes a file whole or not at all, so that damage is what makes it no text, or ends it
    early.
    """
    if not path.exists():
        return

    try:
        text = path.read_bytes().decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return
    if not (text.startswith("{") and text.endswith("}")) or "\x00" in text:
        return

    problem = f"{error.problem}: correct it there"
    raise InputError(problem, path=path, line=error.line, field=error.field) from None


def _set_aside(path: Path) -> Path:
    """Give a damaged file a second name under which it is kept, and return that.

    The file stays where it is until another takes its place, so that there is always one.
    """
    numbers = ("", *(f".{number}" for number in range(2, 10_000)))
    names = (path.with_name(f"{path.name}.{_DAMAGED}{number}") for number in numbers)
    aside = next(name for name in names if not name.exists())
    link_or_copy(path, aside)

    return aside

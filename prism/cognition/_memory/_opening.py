"""Reading a memory's file, whatever is in it, and falling back to a backup."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from prism.cognition._memory._beside import Backups, copy_whole, link_or_copy
from prism.cognition._memory._contents import Contents, NewerSchemaError, StorageKind
from prism.cognition._memory._sqlite_storage import (
    HEADER,
    SqliteStorage,
    make_database,
    set_aside_beside,
)
from prism.cognition._memory._storage import JsonStorage
from prism.errors import InputError
from prism.files._source import Source

_DAMAGED = "damaged"


AnyStorage = JsonStorage | SqliteStorage


def open_storage(
    path: Path, kind: StorageKind | None, backups: Backups, *, writes: bool
) -> tuple[AnyStorage, tuple[str, ...]]:
    """Open a memory: to change it, if its lock is held, or to read what another process may change.

    One that is damaged is restored from its newest good backup, or that is read.

    Returns:
        What is stored, and what was damaged, with what was read instead.

    Raises:
        InputError: If there is none to read, somebody made a slip in it, it is damaged and no
            backup is good, or it is of another kind than is wanted.
        OSError: If it cannot be read.
    """
    if path.exists() and not path.is_file():
        raise InputError("is not a file: name the file of a memory", path=path)
    if not (path.exists() or backups.paths()):
        if writes:
            return new_storage(path, kind or "json", backups), ()
        raise InputError("this memory does not exist", path=path)

    try:
        return _opened(path, kind, backups if writes else None), ()
    except (NewerSchemaError, OtherKindError):
        raise
    except InputError as error:
        _require_no_slip(path, error)
        return _restored(path, kind, backups, error, writes=writes)


def _restored(
    path: Path, kind: StorageKind | None, backups: Backups, damage: InputError, *, writes: bool
) -> tuple[AnyStorage, tuple[str, ...]]:
    """Restore a damaged memory from its newest good backup, or read that."""
    for backup in backups.paths():
        try:
            found = _opened(backup, kind, None)
        except NewerSchemaError:
            raise
        except InputError:
            continue
        if not writes:
            return found, (f"{damage}: read from {backup}",)

        found.close()
        kept = f"; the file is kept as {set_aside(path)}" if path.exists() else ""
        copy_whole(backup, path)
        return _opened(path, kind, backups), (f"{damage}: restored from {backup}{kept}",)

    raise InputError(
        f"{damage.problem}, and it has no valid backup: repair it with 'prism memory edit', "
        "replace it with your own copy, or move it away to begin a new memory",
        path=path,
        line=damage.line,
        field=damage.field,
    )


def new_storage(path: Path, kind: StorageKind, backups: Backups) -> AnyStorage:
    """Return the storage of a new memory, of which JSON has no file before it is committed."""
    if kind == "json":
        return JsonStorage(Contents(Source.of({})), path, backups)

    make_database(path)
    return SqliteStorage(path, backups)


def place_of(path: PathLike[str] | str) -> Path:
    """Return where a memory is, whatever links lead to it: its lock and backups are there, too."""
    return Path(os.path.realpath(path))


def read_json(content: bytes, path: Path | None = None) -> Contents:
    """Return the contents of a memory in JSON.

    Raises:
        InputError: If it is not one; names line, column or key.
    """
    if not content.strip():
        raise InputError("is empty", path=path)

    try:
        # some editors begin a file with a byte order mark
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("is not UTF-8", path=path, line=line) from None

    return Contents(Source.parse(text, "json", path=path))


class OtherKindError(InputError):
    """A memory is kept in another way than is wanted."""


def _opened(path: Path, kind: StorageKind | None, backups: Backups | None) -> AnyStorage:
    """Open a file; without backups for reading only."""
    if not path.exists():
        raise InputError("is missing", path=path)

    found = kind_of(path)
    if found == "sqlite":
        _require_kind(path, found, kind)
        storage = SqliteStorage(path, backups)
        # after a kill: whoever closes it makes one
        storage.back_up()
        return storage

    content = path.read_bytes()
    contents = read_json(content, path)
    _require_kind(path, found, kind)

    return JsonStorage(contents, path, backups, content)


def kind_of(path: Path) -> StorageKind:
    """Return how the memory of a file is kept, whatever it is called."""
    with path.open("rb") as file:
        return "sqlite" if file.read(len(HEADER)) == HEADER else "json"


def _require_kind(path: Path, found: StorageKind, wanted: StorageKind | None) -> None:
    if wanted is not None and found != wanted:
        problem = f"is stored as {found}, not {wanted}: leave storage out, or export it as {wanted}"
        raise OtherKindError(problem, path=path)


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

    problem = f"{error.problem}: correct it there, or with 'prism memory edit'"
    raise InputError(problem, path=path, line=error.line, field=error.field) from None


def set_aside(path: Path) -> Path:
    """Give a damaged file a second name under which it is kept, and return that.

    The file stays where it is until another takes its place, so that there is always one.
    """
    numbers = ("", *(f".{number}" for number in range(2, 10_000)))
    names = (path.with_name(f"{path.name}.{_DAMAGED}{number}") for number in numbers)
    aside = next(name for name in names if not name.exists())
    link_or_copy(path, aside)
    set_aside_beside(path, aside)

    return aside

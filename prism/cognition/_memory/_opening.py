"""Reading a memory's file, whatever is in it, and falling back to a backup."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from prism.cognition._memory._beside import Backups, copy_whole
from prism.cognition._memory._contents import (
    Contents,
    NewerSchemaError,
    StorageKind,
    checked_document,
    storage_of,
    versions_of,
)
from prism.cognition._memory._json_storage import JsonStorage
from prism.cognition._memory._sqlite_file import HEADER, MemoryDatabase, set_aside_beside
from prism.cognition._memory._sqlite_storage import SqliteStorage
from prism.errors import InputError
from prism.files import parse_json

_DAMAGED = "damaged"

# on file systems without hard links, and for a file with too many
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)


@dataclass(frozen=True, slots=True)
class Opened:
    """A memory that was read.

    Args:
        contents: All but the storage.
        storage: The storage.
        faults: What was damaged, and what was read instead.
    """

    contents: Contents
    storage: JsonStorage | SqliteStorage
    faults: tuple[str, ...] = ()


def open_memory(path: Path, kind: StorageKind | None, backups: Backups, *, writes: bool) -> Opened:
    """Open a memory: to change it, if its lock is held, or to read what another process may change.

    One that is damaged is restored from a backup, or a backup is read.

    Raises:
        InputError: If there is none to read, somebody made a slip in it, it is damaged and no
            backup is good, or it is of another kind than is wanted.
        OSError: If it cannot be read.
    """
    _require_file(path)
    if not path.exists() and not backups.paths():
        if writes:
            return _new(path, kind or "json", backups)
        raise InputError("this memory does not exist", path=path)

    try:
        return _opened(path, kind, backups if writes else None)
    except (NewerSchemaError, OtherKindError):
        raise
    except InputError as error:
        _require_no_slip(path, error)
        damage = error

    good = _good_backup(path, kind, backups, damage)
    if writes:
        kept = _restore(path, good)
        opened = _opened(path, kind, backups)
        how = f"restored from {good}" + (f"; the file is kept as {kept}" if kept else "")
    else:
        opened, how = _opened(good, kind, None), f"read from {good}"

    return Opened(opened.contents, opened.storage, (f"{damage}: {how}",))


def make_memory(
    path: Path, document: dict[str, Any], kind: StorageKind, backups: Backups
) -> Opened:
    """Make a memory of a document, not yet committed."""
    new = _new(path, kind, backups)
    new.storage.put(storage_of(document))
    new.storage.put_versions(versions_of(document))

    return Opened(Contents(document), new.storage)


def place_of(path: PathLike[str] | str) -> Path:
    """Return where a memory is, whatever links lead to it: its lock and backups are there, too."""
    return Path(os.path.realpath(path))


def read_json(content: bytes, path: Path | None = None) -> dict[str, Any]:
    """Return the document of a memory in JSON, checked.

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

    return checked_document(parse_json(text, path=path), path)


class OtherKindError(InputError):
    """A memory is kept in another way than is wanted."""


def _new(path: Path, kind: StorageKind, backups: Backups) -> Opened:
    if kind == "json":
        return Opened(Contents({}), JsonStorage({}, path, backups))

    MemoryDatabase.make(path)
    return Opened(Contents({}), SqliteStorage(MemoryDatabase(path, backups)))


def _opened(path: Path, kind: StorageKind | None, backups: Backups | None) -> Opened:
    """Open a file; without backups for reading only."""
    if not path.exists():
        raise InputError("is missing", path=path)

    found = kind_of(path)
    if found == "sqlite":
        _require_kind(path, found, kind)
        database = MemoryDatabase(path, backups)
        if backups is not None:
            # after a kill: whoever closes it makes one
            database.back_up()
        return Opened(Contents(database.document), SqliteStorage(database))

    content = path.read_bytes()
    document = read_json(content, path)
    _require_kind(path, found, kind)
    revision = sha256(content).hexdigest()
    entries, versions = storage_of(document), versions_of(document)

    return Opened(Contents(document), JsonStorage(entries, path, backups, revision, versions))


def kind_of(path: Path) -> StorageKind:
    """Return how the memory of a file is kept, whatever it is called."""
    with path.open("rb") as file:
        return "sqlite" if file.read(len(HEADER)) == HEADER else "json"


def _require_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise InputError("is not a file: name the file of a memory", path=path)


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

    line = _line_of(text, error.field) if error.line is None else error.line
    problem = f"{error.problem}: correct it there, or with 'prism memory edit'"
    raise InputError(problem, path=path, line=line, field=error.field) from None


def _line_of(text: str, field: str | None) -> int | None:
    """Return the line of a key, if it stands in one place only."""
    lines = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if field is not None and f'"{field}"' in line
    ]
    return lines[0] if len(lines) == 1 else None


def _good_backup(
    path: Path, kind: StorageKind | None, backups: Backups, damage: InputError
) -> Path:
    """Return the newest backup that is whole.

    Raises:
        InputError: If there is none.
    """
    for backup in backups.paths():
        try:
            _opened(backup, kind, None).storage.close()
        except NewerSchemaError:
            raise
        except InputError:
            continue
        return backup

    raise InputError(
        f"{damage.problem}, and it has no valid backup: repair it with 'prism memory edit', "
        "replace it with your own copy, or move it away to begin a new memory",
        path=path,
        line=damage.line,
        field=damage.field,
    )


def _restore(path: Path, backup: Path) -> Path | None:
    """Put a backup in the place of a memory; return where the damaged file is kept, if any."""
    aside = set_aside(path) if path.exists() else None
    copy_whole(backup, path)

    return aside


def set_aside(path: Path) -> Path:
    """Give a damaged file a second name under which it is kept, and return that.

    The file stays where it is until another takes its place, so that there is always one.
    """
    aside = _free_name(path)
    try:
        os.link(path, aside)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        copy_whole(path, aside)
    set_aside_beside(path, aside)

    return aside


def _free_name(path: Path) -> Path:
    free = path.with_name(f"{path.name}.{_DAMAGED}")
    number = 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}.{_DAMAGED}.{number}")

    return free

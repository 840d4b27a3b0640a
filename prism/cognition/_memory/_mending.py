"""Changing a memory by hand, and tidying its files."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from prism.cognition._memory._beside import Backups, Lock
from prism.cognition._memory._contents import Contents, NewerSchemaError
from prism.cognition._memory._memory import DEFAULT_BACKUPS, Memory
from prism.cognition._memory._opening import kind_of, place_of, read_json, set_aside
from prism.cognition._memory._storage import JsonStorage
from prism.cognition._memory._values import to_json
from prism.errors import InputError
from prism.files._source import Source


class MemoryText:
    """A memory as a text of JSON, locked while somebody edits it.

    Args:
        path: The memory.

    Raises:
        InputError: If another process has it open, or it cannot be read at all.

    Attributes:
        text: The text; a damaged JSON file as it is.
        damage: What is wrong with it, or nothing.
    """

    def __init__(self, path: Path) -> None:
        self._place = place_of(path)
        self.damage: str = _damage_of(self._place)
        if self.damage:
            self._memory = Memory(
                JsonStorage(Contents(Source.of({})), self._place), lock=Lock(self._place)
            )
            self.text: str = self._place.read_bytes().decode("utf-8", "surrogateescape")
        else:
            self._memory = Memory.open(self._place)
            self.text = to_json(self._memory.to_dict()).decode()

    def write(self, text: str) -> None:
        """Make the memory what a text says; a damaged file is kept beside it.

        Raises:
            InputError: If it is not that of a memory; names line or key. Nothing is changed.
            OSError: If it cannot be written.
        """
        contents = read_json(text.encode("utf-8", "surrogateescape"))
        if self.damage:
            set_aside(self._place)
        self._memory._become(contents)
        self._memory.commit()

    def close(self) -> None:
        """Let others open the memory."""
        self._memory.close()

    def __enter__(self) -> Self:
        """Return the text itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Let others open the memory."""
        self.close()


def compact_memory(
    path: Path, backups: int | None = None, versions: int | None = None
) -> tuple[int, int, list[Path]]:
    """Make the file of a memory as small as possible, without losing any current value.

    Args:
        path: The memory.
        backups: Remove the backups beyond the newest so many; None for none of them.
        versions: Drop the versions of each memory beyond the newest so many; None for none.

    Returns:
        The bytes of its file before and now, and the files that were removed.

    Raises:
        InputError: If it cannot be opened.
        OSError: If it cannot be written.
    """
    place = place_of(path)
    before = place.stat().st_size if place.exists() else 0
    with Memory.open(place, backups=DEFAULT_BACKUPS if backups is None else backups) as memory:
        memory.compact(versions=versions)
        removed = list(_unfinished(place))
        for file in removed:
            file.unlink(missing_ok=True)

    if backups is not None:
        removed += Backups(place, backups).discard_surplus()

    return before, place.stat().st_size, removed


def _damage_of(place: Path) -> str:
    """Return what is wrong with a memory in JSON; nothing for one in SQLite."""
    if kind_of(place) == "sqlite":
        return ""

    try:
        read_json(place.read_bytes(), place)
    except NewerSchemaError:
        raise
    except InputError as error:
        return str(error)

    return ""


def _unfinished(place: Path) -> list[Path]:
    """Return what killed processes left of files that they were writing."""
    names = (f".{place.name[:60]}.part", f".{place.name[:60]}.bak.part")
    return [file for file in map(place.with_name, names) if file.exists()]

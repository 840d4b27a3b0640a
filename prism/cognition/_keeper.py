"""Where the memory of a run is, and the copies that are kept of what it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prism.cognition._memory._contents import StorageKind
from prism.cognition._memory._memory import DEFAULT_BACKUPS, Memory
from prism.errors import InputError, ReplayError
from prism.files import parse_json, reading
from prism.files._durable import write_durably
from prism.runs._dry_run import is_dry_run

BEFORE_NAME = "memory_before.json"
"""What the memory was when the run began."""

_AFTER_NAME = "memory_after_{:08}.json"
"""What it was when the run went on after a round, where somebody else had changed it."""

_REPEATED_NAMES = {"json": "memory.json", "sqlite": "memory.sqlite"}


class Keeper:
    """Opens the memory of a run, and keeps copies of what it was.

    Args:
        path: The memory's file.
        storage: How it is stored; None for whatever the file is.

    Attributes:
        folder: The run's folder; None if the run is not kept.
    """

    def __init__(
        self, path: Path, storage: StorageKind | None, *, backups: int = DEFAULT_BACKUPS
    ) -> None:
        self.folder: Path | None = None
        self._path = path
        self._storage = storage
        self._backups = backups

    def open(self, *, is_new: bool) -> Memory:  # noqa: ARG002 - a repeated run has to know
        """Open the memory.

        Args:
            is_new: Whether the run is at its beginning.
        """
        if is_dry_run():  # which may change nothing
            return self._copy()
        return Memory.open(self._path, storage=self._storage, backups=self._backups)

    def _copy(self) -> Memory:
        """Return a copy of the memory, without a file."""
        if not self._path.exists():
            return Memory.in_memory()
        with Memory.read(self._path) as memory:
            return Memory.in_memory(memory.to_dict())

    def keep(self, memory: Memory, after: int | None) -> None:
        """Keep a copy of the memory, if the run is kept.

        Args:
            memory: The memory.
            after: The round after which the run continues; None at its beginning.
        """
        if self.folder is not None:
            text = json.dumps(memory.to_dict(), ensure_ascii=False, indent=2)
            write_durably(self.folder / _name(after), text.encode("utf-8", "surrogatepass"))

    def forget(self) -> None:
        """Remove what a run has left in its folder that did not begin after all."""
        if self.folder is not None:
            (self.folder / BEFORE_NAME).unlink(missing_ok=True)

    def go_on_after(self, memory: Memory, number: int) -> None:
        """Make the memory what a repeated run goes on with after a round."""


class RepeatingKeeper(Keeper):
    """Keeps the memory of a repeated run, which begins with a copy of the first one's.

    It is in the folder of the repeated run, or nowhere if that is not kept.

    Args:
        recorded: The folder of the first run.
        storage: How that stored its memory.

    Raises:
        InputError: If there is no copy in it.
    """

    def __init__(self, recorded: Path, storage: StorageKind | None) -> None:
        super().__init__(Path(), storage or "json", backups=0)
        self._recorded = recorded
        self._read(None)

    def open(self, *, is_new: bool) -> Memory:
        """Open the memory; at the beginning it is the copy."""
        if self.folder is None:
            return Memory.in_memory(self._read(None))

        self._path = self.folder / _REPEATED_NAMES[self._storage or "json"]
        memory = super().open(is_new=is_new)
        if is_new:
            self._replace(memory, None)

        return memory

    def go_on_after(self, memory: Memory, number: int) -> None:
        """Make the memory what the first run found when it went on after a round."""
        self._replace(memory, number)

    def forget(self) -> None:
        """Remove the memory, too."""
        super().forget()
        if self.folder is not None:
            self._path.unlink(missing_ok=True)

    def _replace(self, memory: Memory, after: int | None) -> None:
        memory.replace(self._read(after))
        memory.commit()

    def _read(self, after: int | None) -> Mapping[str, Any]:
        path = self._recorded / _name(after)
        if not path.exists():
            raise ReplayError(
                f"{self._recorded} holds no {path.name}, with which the run began: give the "
                "complete folder of a run of cycles"
            )

        with reading(path):
            data = parse_json(path.read_bytes().decode("utf-8", "surrogatepass"), path=path)
        if not isinstance(data, dict):
            raise InputError("is damaged: it must hold a JSON object", path=path)

        return data


def _name(after: int | None) -> str:
    return BEFORE_NAME if after is None else _AFTER_NAME.format(after)

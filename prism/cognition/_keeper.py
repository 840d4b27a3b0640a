"""The place of a run's memory, and the copies of its earlier contents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prism.cognition._memory._contents import StorageKind
from prism.cognition._memory._memory import Memory, document_of
from prism.cognition._memory._values import to_json
from prism.errors import ReplayError
from prism.files._durable import write_durably


class Keeper:
    """Opens the memory of a run, and keeps copies of what it was.

    A repeated run begins with a copy of the first one's memory, which is in its own folder, or
    nowhere if that is not kept.

    Args:
        path: The memory's file; of a repeated run, the folder of the first one.
        storage: How it is stored; None for whatever the file is.
        changed: Of a repeated run, where the first one found its memory changed by somebody else:
            what it said of that, by the round before.

    Raises:
        InputError: If there is no copy in the folder of the first run.

    Attributes:
        folder: The run's folder; None if the run is not kept.
        changed: As above.
    """

    def __init__(
        self,
        path: Path,
        storage: StorageKind | None,
        changed: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> None:
        self.folder: Path | None = None
        self.changed: Mapping[int, Mapping[str, Any]] = changed or {}
        self._path = path
        self._storage = storage
        self._is_repeated = changed is not None
        if self._is_repeated:
            self._recorded(None)

    def open(self, *, is_new: bool) -> Memory:
        """Open the memory.

        Args:
            is_new: Whether the run is at its beginning.
        """
        if self._is_repeated and self.folder is not None:
            memory = Memory.open(self._repeated, storage=self._storage or "json", backups=0)
            if is_new:
                self.go_on_after(memory, None)
            return memory

        if self._is_repeated:
            return Memory.in_memory(self._recorded(None))
        return Memory.open(self._path, storage=self._storage)

    def keep(self, memory: Memory, after: int | None) -> None:
        """Keep a copy of the memory, if the run is kept.

        Args:
            memory: The memory.
            after: The round after which the run continues; None at its beginning.
        """
        if self.folder is not None:
            write_durably(self.folder / _name(after), to_json(memory.to_dict()))

    def forget(self) -> None:
        """Remove what a run has left in its folder that did not begin after all."""
        if self.folder is not None:
            (self.folder / _name(None)).unlink(missing_ok=True)
            if self._is_repeated:
                self._repeated.unlink(missing_ok=True)

    def go_on_after(self, memory: Memory, after: int | None) -> None:
        """Make the memory of a repeated run what the first one had when it went on after a round.

        Args:
            memory: The memory.
            after: The round; None for the beginning.
        """
        memory.replace(self._recorded(after))
        memory.commit()

    @property
    def _repeated(self) -> Path:
        """The memory of a repeated run that is kept."""
        assert self.folder is not None
        return self.folder / f"memory.{self._storage or 'json'}"

    def _recorded(self, after: int | None) -> Mapping[str, Any]:
        """Return the copy that the first run kept."""
        path = self._path / _name(after)
        if not path.exists():
            raise ReplayError(
                f"{self._path} holds no {path.name}, with which the run began: give the "
                "complete folder of a run of cycles"
            )

        return document_of(path)


def _name(after: int | None) -> str:
    """Return the file of a copy: as it was at the beginning, or where somebody else changed it."""
    return "memory_before.json" if after is None else f"memory_after_{after:08}.json"

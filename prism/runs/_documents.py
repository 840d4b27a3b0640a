"""What agents remember besides the log: whose files a run may change, and what its folder keeps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from prism.files._durable import make_folder, write_durably

DOCUMENTS_NAME = "memories"
_BEFORE = "before"


@dataclass(slots=True)
class Documents:
    """The documents of a run's agents, which its folder keeps as they were and as they became.

    Args:
        folder: Where the run is kept, if it is.
        recorded: The folder of the run that it repeats, if it repeats one.
        is_trial: Whether no file outside the folder may be changed.
        held: Each agent's document, by the agent's name.
    """

    folder: Path | None = None
    recorded: Path | None = None
    is_trial: bool = True
    held: dict[str, Callable[[], bytes]] = field(default_factory=dict)

    def keep_before(self) -> None:
        """Keep what the documents are before the first round."""
        self._keep(_BEFORE)

    def keep(self) -> None:
        """Keep what the documents are in the end."""
        self._keep("")

    def _keep(self, when: str) -> None:
        if self.folder is None or not self.held:
            return

        place = self.folder / DOCUMENTS_NAME / when
        make_folder(place)
        for name, document in self.held.items():
            write_durably(place / _file_of(name), document())


_CURRENT: ContextVar[Documents | None] = ContextVar("_CURRENT", default=None)


@contextmanager
def documents(
    folder: Path | None = None, recorded: Path | None = None, *, is_trial: bool = True
) -> Iterator[Documents]:
    """Collect the documents of a run that is made and carried out meanwhile.

    Args:
        folder: Where it is kept, if it is.
        recorded: The folder of the run that it repeats, if it repeats one.
        is_trial: Whether it may change no file outside its folder, as a rehearsal, a dry run or a
            repetition may not.
    """
    found = Documents(folder, recorded, is_trial)
    token = _CURRENT.set(found)
    try:
        yield found
    finally:
        _CURRENT.reset(token)


def may_change(path: Path) -> bool:
    """Return whether what is carried out may change a file of the user's."""
    current = _CURRENT.get()
    if current is None or not current.is_trial:
        return True

    folder = current.folder
    return folder is not None and path.is_relative_to(os.path.realpath(folder))


def hold(name: str, document: Callable[[], bytes]) -> Path | None:
    """Let the run that is being made keep an agent's document.

    Args:
        name: The agent's name.
        document: Returns the document as it is then.

    Returns:
        What it was at the beginning of the run that this one repeats, if that kept it.
    """
    current = _CURRENT.get()
    if current is None:
        return None

    current.held[name] = document
    before = None
    if current.recorded is not None:
        before = current.recorded / DOCUMENTS_NAME / _BEFORE / _file_of(name)

    return before if before is not None and before.exists() else None


def _file_of(name: str) -> str:
    return f"{quote(name, safe=' ')}.json"

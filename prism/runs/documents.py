"""What agents remember besides the log: whose files a run may change, and what its folder keeps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from prism.files.durable import make_folder, write_durably

DOCUMENTS_NAME = "memories"
BEFORE = "before"


@dataclass(slots=True)
class Documents:
    """The documents of a run's agents, which its folder keeps as they were and as they became.

    Args:
        folder: Where the run is kept, if it is.
        recorded: The folder of the run that it repeats, if it repeats one.
        is_trial: Whether nothing outside the folder may be changed.
        held: Each agent's document, by the agent's name.
    """

    folder: Path | None = None
    recorded: Path | None = None
    is_trial: bool = True
    held: dict[str, Callable[[], bytes]] = field(default_factory=dict)

    def keep(self, when: str = "") -> None:
        """Keep what the documents are, at the end or, in a folder of that name, at another time."""
        if self.folder is None or not self.held:
            return
        folder = self.folder / DOCUMENTS_NAME / when
        make_folder(folder)
        for name, document in self.held.items():
            write_durably(folder / _file_of(name), document())


_CURRENT: ContextVar[Documents | None] = ContextVar("_CURRENT", default=None)


@contextmanager
def documents(
    folder: Path | None = None, recorded: Path | None = None, *, is_trial: bool = True
) -> Iterator[Documents]:
    """Collect the documents of a run that is made and carried out meanwhile; see `Documents`."""
    current = Documents(folder, recorded, is_trial)
    token = _CURRENT.set(current)
    try:
        yield current
    finally:
        _CURRENT.reset(token)


def is_trial() -> bool:
    """Return whether a dry run or a repetition is made, which acts on nothing outside."""
    current = _CURRENT.get()
    return current is not None and current.is_trial


def may_change(path: Path) -> bool:
    """Return whether what is carried out may change a file of the user's."""
    current = _CURRENT.get()
    folder = None if current is None else current.folder
    is_within = folder is not None and path.is_relative_to(os.path.realpath(folder))
    return is_within or not is_trial()


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
    if current.recorded is None:
        return None
    before = current.recorded / DOCUMENTS_NAME / BEFORE / _file_of(name)
    return before if before.exists() else None


def _file_of(name: str) -> str:
    return f"{quote(name, safe=' ')}.json"

"""Notes on a log: what is wrong with it, or worth knowing about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NoteKind = Literal[
    "action_failed",
    "broken_chain",
    "corrupt",
    "empty",
    "foreign_events",
    "guard_failed",
    "mixed_runs",
    "newer_schema",
    "no_feed",
    "no_follows",
    "not_weighed",
    "out_of_order",
    "truncated",
    "unfinished",
    "unreadable",
]


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a log that bears on what its tables say.

    Args:
        kind: What it is, for programs.
        path: The log.
        line: Number of the line it is about, counted from 1; None if it is about the whole log.
        message: What it is, for people.
    """

    kind: NoteKind
    path: str
    line: int | None
    message: str

    def __str__(self) -> str:
        """Return the note as ``file, line 3: message``."""
        where = self.path if self.line is None else f"{self.path}, line {self.line:,}"
        return f"{where}: {self.message}"

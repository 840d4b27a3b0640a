"""What a reader of a log should know beside its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NoteKind = Literal[
    "broken_chain",
    "corrupt",
    "empty",
    "foreign_events",
    "mixed_runs",
    "newer_schema",
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
        line: Line number in it, counted from 1, if it is about one line.
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

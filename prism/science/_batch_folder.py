"""The folder of a batch: its plan, and a row for each run that has ended."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from prism._version import __version__
from prism.errors import InputError
from prism.files import make_folder, write_durably
from prism.files.durable import lock
from prism.files.source import Source
from prism.runlog.reader import read_line
from prism.runs.folder import SUMMARY_NAME, require_nothing_else

Keep = Literal["logs", "tables"]
"""What a batch keeps of each run: its folder with its log, or only its rows of the tables."""

PLAN_NAME = "plan.json"
ROWS_NAME = "runs.jsonl"

Row = Mapping[str, Any]
"""A line of ``runs.jsonl``: ``run``, and either ``config``, ``results`` and ``spent``, or
``error``."""


class BatchFolder:
    """The folder of one batch.

    ``plan.json`` describes the batch, and exists once it has begun. ``runs.jsonl`` has a row for
    each run that is complete or has failed. Each run has a folder below, named by its configuration
    and seed, unless only tables are kept.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_begun(self) -> bool:
        """Whether there is a batch that can be resumed."""
        return (self.path / PLAN_NAME).exists()

    def require_free(self) -> None:
        """Refuse anything but an empty or new folder.

        Raises:
            InputError: If it holds another batch or run, or anything else.
        """
        if self.path.exists() and not self.path.is_dir():
            raise InputError("is a file, not a folder: choose another folder", path=self.path)
        for name, what in ((PLAN_NAME, "a batch"), (SUMMARY_NAME, "a run")):
            if (self.path / name).exists():
                problem = f"already holds {what} ({name}): choose another folder, or resume it"
                raise InputError(problem, path=self.path)

        require_nothing_else(self.path)

    def begin(self, description: Mapping[str, Any]) -> None:
        """Write ``plan.json``.

        Args:
            description: ``plan``, ``inputs`` (the SHA-256 of every file that its runs read), and
                whatever else resuming it needs.
        """
        try:
            make_folder(self.path)
        except OSError as error:
            raise InputError(f"cannot be written to: {error.strerror}", path=self.path) from None
        text = json.dumps({"prism": __version__, **description}, indent=2, allow_nan=False) + "\n"
        write_durably(self.path / PLAN_NAME, text.encode())

    def read(self) -> dict[str, Any]:
        """Return ``plan.json``.

        Raises:
            InputError: If there is no batch, or its description is damaged.
        """
        path = self.path / PLAN_NAME
        if not self.is_begun:
            problem = f"holds no batch to resume (no {PLAN_NAME}): begin one"
            raise InputError(problem, path=self.path)
        described = Source.read(path, "json").value
        if not isinstance(described, dict) or not {"plan", "inputs"} <= described.keys():
            raise InputError("is damaged: it describes no batch", path=path)
        return described

    def rows(self) -> dict[str, Row]:
        """Return the rows of the runs that have ended, by name.

        Raises:
            InputError: If a line is damaged.
        """
        path = self.path / ROWS_NAME
        # the part after the last line break is a row that a killed process left incomplete
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        rows = [read_line(line) for line in lines]
        for number, row in enumerate(rows, 1):
            if row is None or "run" not in row:
                raise InputError("is damaged: not the row of a run", path=path, line=number)
        return {str(row["run"]): row for row in rows if row}

    def add_row(self, row: Row) -> None:
        """Add the row of a run that has ended."""
        with (self.path / ROWS_NAME).open("ab") as file:
            file.write(_line(row))

    def replace_rows(self, rows: Sequence[Row]) -> None:
        """Replace all rows."""
        write_durably(self.path / ROWS_NAME, b"".join(map(_line, rows)))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder, so that no other process carries out the batch.

        Raises:
            InputError: If another process holds it.
        """
        folder = os.open(self.path, os.O_RDONLY)
        try:
            lock(folder)
            yield
        except BlockingIOError:
            problem = "is being carried out by another process: wait for it"
            raise InputError(problem, path=self.path) from None
        finally:
            os.close(folder)


def _line(row: Row) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"

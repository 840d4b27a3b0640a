"""The folder that a run leaves behind: its log and a summary."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from prism.errors import InputError
from prism.runlog import RunLog, SimulatedClock

LOG_NAME = "events.jsonl"
SUMMARY_NAME = "run.json"


class RunFolder:
    """A folder for one run; a run that is there already is never overwritten.

    Args:
        path: The folder; it is made if it does not exist.

    Raises:
        InputError: If it holds a run already, is no folder, or cannot be written to. Nothing is left behind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            _require_free(path)
            _require_writable(path)
        except OSError as error:
            raise _unwritable(path, error) from None

    def open_log(self, clock: SimulatedClock) -> RunLog:
        """Make the folder and begin the run's log in it.

        Raises:
            InputError: If that fails.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            return RunLog(self.path / LOG_NAME, clock)
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def discard(self) -> None:
        """Remove the run that was begun here, and the folder if there is nothing else in it."""
        (self.path / LOG_NAME).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write ``run.json``, whole or not at all."""
        unfinished = self.path / f".{SUMMARY_NAME}.part"
        unfinished.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(self.path / SUMMARY_NAME)


def _require_free(path: Path) -> None:
    held = [name for name in (LOG_NAME, SUMMARY_NAME) if (path / name).exists()]
    if held:
        raise InputError(f"already holds a run ({', '.join(held)}): choose another --out", path=path)
    if path.exists() and not path.is_dir():
        raise InputError("is a file, not a folder: choose another --out", path=path)


def _require_writable(path: Path) -> None:
    """Try the nearest folder that exists, so that a run does not begin only to find this out."""
    nearest = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        raise InputError(f"cannot be made: {nearest} is a file, not a folder", path=path)
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"cannot be written to: no permission for {nearest}", path=path)


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written to: {error.strerror}", path=path)

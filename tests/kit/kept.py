"""Runs in folders: stopped after a round, and compared byte by byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


class StoppedError(BaseException):
    """Stands for whatever stops a process, which no run survives."""


def stop_after(last: int) -> Callable[[Any], None]:
    """Return what stops a run when a round has ended."""

    def stop(ended: Any) -> None:
        if ended.number == last:
            raise StoppedError

    return stop


def tree(path: Path) -> dict[str, bytes | None]:
    """Return everything below a folder, files with their bytes, by its place in the folder."""
    return {
        str(found.relative_to(path)): found.read_bytes() if found.is_file() else None
        for found in path.rglob("*")
    }

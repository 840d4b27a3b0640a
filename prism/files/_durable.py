"""Writing files that are whole or not there, also when the machine fails in the middle."""

from __future__ import annotations

import os
from pathlib import Path


def write_durably(path: Path, content: bytes) -> None:
    """Put a file in its place at once, and do not return before the disk has it.

    Raises:
        OSError: If that fails; an earlier file of the name is left as it was, and nothing else is
            left behind.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise

    save_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, so that the disk has them all.

    Raises:
        OSError: If that fails, or a file is in the way.
    """
    if path.is_dir():
        return

    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    save_folder(path.parent)


def save_folder(path: Path) -> None:
    """Have the disk keep what is in a folder: names that were added, replaced and removed."""
    if os.name == "nt":  # cannot open a folder, and keeps its names by itself
        return

    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

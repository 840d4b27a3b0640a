"""Writing files that exist whole or not at all, even if the machine crashes in the middle."""

from __future__ import annotations

import os
from pathlib import Path


def write_durably(path: Path, content: bytes) -> None:
    """Write or replace a file in one step, and return once it is safely on the disk.

    Raises:
        OSError: If that fails; an existing file of that name stays as it was.
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
    """Make a folder and its missing parents, safely on the disk.

    Raises:
        OSError: If that fails, for instance because a file is in the way.
    """
    if path.is_dir():
        return

    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    save_folder(path.parent)


def save_folder(path: Path) -> None:
    """Flush a folder's entries to the disk: the names that were added, replaced or removed.

    Raises:
        OSError: If that fails.
    """
    # Windows cannot open a folder, and saves its entries by itself.
    if os.name == "nt":
        return

    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

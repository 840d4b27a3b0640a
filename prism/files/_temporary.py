"""Copies of pipes, which can be read only once, in temporary files."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import copyfileobj
from tempfile import mkstemp
from weakref import finalize

from prism.errors import InputError


class TemporaryCopy:
    """A temporary file with all that came through a pipe; deleted when nobody uses it any more.

    Args:
        source: The pipe.

    Attributes:
        path: The file.

    Raises:
        InputError: If the pipe cannot be read, or the copy cannot be written.
    """

    def __init__(self, source: Path) -> None:
        try:
            descriptor, name = mkstemp(prefix="prism-")
            self.path: Path = Path(name)
            finalize(self, self.path.unlink, missing_ok=True)
            with source.open("rb") as file, os.fdopen(descriptor, "wb") as copy:
                copyfileobj(file, copy)
        except OSError as error:
            problem = f"cannot be copied to a temporary file: {error.strerror}"
            raise InputError(problem, path=source) from None

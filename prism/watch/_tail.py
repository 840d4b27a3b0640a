"""Following a log that grows: what was added, and whether it is still the same file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from prism.errors import InputError
from prism.runlog.reader import locate_log

BLOCK_BYTES = 8 << 20
"""Size of a block, and of the longest line that is read."""

_TAIL_BYTES = 256


class Changed(Exception):  # noqa: N818 - it is no error, but what happened to a file
    """The log is not the one that was read until now, so that it must be read again."""


class Tail:
    """A log, read as far as it is written.

    Args:
        run: The folder of the run, or its log.

    Raises:
        InputError: If there is no log, or it cannot be read.

    Attributes:
        path: The log.
        position: Bytes that were read.
        size: Bytes that the log had at the last look.
    """

    def __init__(self, run: Path) -> None:
        self.path: Path = locate_log(run)
        self.position: int = 0
        self.size: int = 0
        self._skipping = False
        self._tail = b""
        try:
            self._file: BinaryIO = self.path.open("rb", buffering=0)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", path=self.path) from None
        self.size = os.fstat(self._file.fileno()).st_size
        if self._file.read(2) == b"\x1f\x8b":  # gzip
            self._file.close()
            raise InputError("is compressed: unpack it to watch it", path=self.path)

    def blocks(self) -> Iterator[bytes]:
        """Yield what was added, in blocks of whole lines; an empty one for a line that is too long.

        Raises:
            Changed: If the log was cut back, replaced or rewritten.
            InputError: If it is gone, or cannot be read.
        """
        self._check()
        # what comes meanwhile waits for the next look: each block costs, however few its lines
        while self.position < self.size:
            data = self._read(self.position, self.position + BLOCK_BYTES)
            whole = data[: data.rfind(b"\n") + 1]
            if not whole and len(data) < BLOCK_BYTES:
                return

            read, was_skipping = whole or data, self._skipping
            self.position += len(read)
            self._tail = (self._tail + read[-_TAIL_BYTES:])[-_TAIL_BYTES:]
            self._skipping = not whole
            if not whole and not was_skipping:
                yield b""
            lines = whole[whole.find(b"\n") + 1 :] if was_skipping else whole
            if lines:
                yield lines

    def pass_over(self) -> None:
        """Take all that is there for read."""
        self.position = self.size
        self._tail = self._read(max(self.size - _TAIL_BYTES, 0), self.size)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, begin: int, end: int) -> bytes:
        return os.pread(self._file.fileno(), max(end - begin, 0), begin)

    def _check(self) -> None:
        try:
            is_same = os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))
        except OSError as error:
            problem = f"is gone ({error.strerror}): it was moved, packed or deleted"
            raise InputError(problem, path=self.path) from None
        if not is_same:
            raise Changed("was replaced by another file")

        self.size = os.fstat(self._file.fileno()).st_size
        if self.size < self.position:
            raise Changed("was truncated, as when a run is resumed")

        # a log that was cut back may have grown beyond the old place since the last look
        begin = self.position - len(self._tail)
        if self._read(begin, self.position) != self._tail:
            raise Changed("has different lines, as when a run is resumed")

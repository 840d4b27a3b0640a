"""Following a log that grows: what was added, and whether it is still the same file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from prism.errors import InputError
from prism.runlog._reader import BLOCK_BYTES, GZIP_MAGIC, TOO_LONG, Block, locate_log

_MARK_BYTES = 256


class Changed(Exception):  # noqa: N818 - it is no error, but what happened to a file
    """The log is not the one that was read until now, so that it is to be read anew."""


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
        self._line = 1
        self._skipping = False
        self._mark = b""
        try:
            self._file: BinaryIO = self.path.open("rb", buffering=0)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", path=self.path) from None
        if self._file.read(2) == GZIP_MAGIC:
            self._file.close()
            raise InputError("is compressed: unpack it to watch it", path=self.path)

    def blocks(self) -> Iterator[Block]:
        """Yield what was added, in blocks of whole lines.

        Raises:
            Changed: If the log was cut back, replaced or rewritten.
            InputError: If it is gone, or cannot be read.
        """
        self._check()
        # what comes meanwhile waits for the next look: each block costs, however few its lines
        while self.position < self.size and (block := self._next()) is not None:
            yield block

    def read(self, begin: int, end: int) -> bytes:
        """Return some bytes of the log, fewer where it ends before."""
        return os.pread(self._file.fileno(), max(end - begin, 0), begin)

    def last_line(self, holding: bytes, most: int) -> bytes | None:
        """Return the last whole line that holds a text, looking back from the end of the log.

        Args:
            holding: The text.
            most: Most blocks to look at.
        """
        self.size = os.fstat(self._file.fileno()).st_size
        for data in islice(blocks_back(self.read, self.size), most):
            # the last line may have no end yet
            whole = data[: data.rfind(b"\n") + 1]
            place = whole.rfind(holding)
            if place >= 0:
                return whole[whole.rfind(b"\n", 0, place) + 1 : whole.find(b"\n", place)]

        return None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _check(self) -> None:
        try:
            is_same = os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))
        except OSError as error:
            said = f"is gone ({error.strerror}): it was moved, packed or deleted"
            raise InputError(said, path=self.path) from None
        if not is_same:
            raise Changed("was replaced by another file")

        self.size = os.fstat(self._file.fileno()).st_size
        if self.size < self.position:
            raise Changed("was truncated, as when a run is resumed")

        # a log that was cut back may have grown beyond the old place since the last look
        begin = self.position - len(self._mark)
        if self.read(begin, self.position) != self._mark:
            raise Changed("has different lines, as when a run is resumed")

    def _next(self) -> Block | None:
        data = self.read(self.position, self.position + BLOCK_BYTES)
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and len(data) < BLOCK_BYTES:
            return None

        taken, first, was_skipping = whole or data, self._line, self._skipping
        self.position += len(taken)
        self._mark = (self._mark + taken[-_MARK_BYTES:])[-_MARK_BYTES:]
        self._skipping = not whole
        if not whole:
            return Block(b"", first, 0) if was_skipping else Block(b"", first, 1, TOO_LONG)

        lines = whole[whole.find(b"\n") + 1 :] if was_skipping else whole
        first, count = first + was_skipping, lines.count(b"\n")
        self._line = first + count

        return Block(lines, first, count)


def blocks_back(
    read: Callable[[int, int], bytes], stop: int, size: int | None = None
) -> Iterator[bytes]:
    """Yield whole lines from a place back to the beginning, a block at a time.

    Args:
        read: Reads from one place to another.
        stop: The place, behind a line or at the end.
        size: Bytes of a block; by default, as many as are read at once.
    """
    while stop > 0:
        begin = max(stop - (size or BLOCK_BYTES), 0)
        data = read(begin, stop)
        first = data.find(b"\n") + 1 if begin else 0
        # what has no line feed is the end of a line that is longer than a block
        stop = begin + first if first < len(data) else begin
        if first < len(data):
            yield data[first:]

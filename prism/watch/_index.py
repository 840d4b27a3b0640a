"""An index of a log's lines by agent, so that one agent is read without the others."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import accumulate
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile

import polars as pl

from prism.runlog._reader import Block
from prism.telemetry.events import POST_LIKED, POST_PUBLISHED

NAMING = ("agent_id", "post_id", "parent_id", "root_id", "author_id")
"""Columns of what a line may name."""

_BITS = 32
_PIECE_BYTES = 1 << 10
_LINE_BYTES = 512

Read = Callable[[int, int], bytes]
"""Returns the bytes of the log from one place to another."""


class Lines:
    """The places where the lines of a block begin: the lines that end before each small piece.

    Args:
        block: The block.
        offset: The place in the log where it begins, in bytes.
    """

    def __init__(self, block: Block, offset: int) -> None:
        data = block.data
        places = range(0, len(data), _PIECE_BYTES)
        counts = (data.count(b"\n", place, place + _PIECE_BYTES) for place in places)
        self._ended = array("I", accumulate(counts, initial=0))
        self._offset = offset
        self._first = block.first_line

    def find(self, number: int, read: Read) -> tuple[int, bytes]:
        """Return the place in the log where a line begins, and the line with its line feed."""
        before = number - self._first
        piece = max(bisect_left(self._ended, before) - 1, 0)
        begin, start = self._offset + piece * _PIECE_BYTES, 0
        data = read(begin, begin + _PIECE_BYTES)
        for _ in range(before - self._ended[piece]):
            start = data.find(b"\n", start) + 1
        while (end := data.find(b"\n", start) + 1) == 0 and (
            more := read(begin + len(data), begin + len(data) + max(len(data) - start, _LINE_BYTES))
        ):
            data += more

        return begin + start, data[start:end] if end else data[start:]


class Index:
    """The lines of a log by what they name: an agent, or a post that is published or answered.

    An entry is half a hash of the name and the number of the line. The entries of each block stand
    sorted in a temporary file, which costs a log of two gigabytes no memory. Two names may share a
    hash: whoever reads the lines checks what they name.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile(buffering=0)  # noqa: SIM115 - closed with the index
        self._parts: list[tuple[Lines, int]] = []

    def add(self, lines: Lines, frame: pl.DataFrame, rare: pl.DataFrame) -> None:
        """Add some lines.

        Args:
            lines: The lines.
            frame: Their events, with ``line``, ``event`` and the columns of `NAMING`.
            rare: Those of them that are no moves, decisions or looks at a post.
        """
        posts, likes = rare.filter(event=POST_PUBLISHED), rare.filter(event=POST_LIKED)
        naming = [(frame, "agent_id"), (likes, "author_id")]
        naming += [(posts, each) for each in ("post_id", "parent_id", "root_id")]
        names = pl.concat([rows.select("line", name=each) for rows, each in naming]).drop_nulls()
        firsts = (names["name"].hash() // (1 << _BITS)) * (1 << _BITS)
        entries = (firsts + names["line"]).sort()

        self._file.write(array("Q", entries.to_list()).tobytes())
        self._parts.append((lines, entries.len()))

    def lines(self, names: Iterable[str], read: Read) -> dict[int, bytes]:
        """Return the lines that seem to name one of some things, by where they begin."""
        firsts = [one >> _BITS << _BITS for one in pl.Series(list(names), dtype=pl.String).hash()]
        if not any(count for _, count in self._parts):
            return {}

        found: dict[int, bytes] = {}
        begin = 0
        # of a file that is mapped, only the pages are read that the search comes by
        with (
            mmap(self._file.fileno(), 0, access=ACCESS_READ) as data,
            memoryview(data).cast("Q") as entries,
        ):
            for lines, count in self._parts:
                end = begin + count
                for first in firsts:
                    place = bisect_left(entries, first, begin, end)
                    while place < end and entries[place] - first < 1 << _BITS:
                        found.update([lines.find(entries[place] - first, read)])
                        place += 1
                begin = end

        return dict(sorted(found.items()))

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

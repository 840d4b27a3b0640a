"""Where the lines of a log are that name an agent, so that one agent is read without the others."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile

import polars as pl

from prism.runlog._reader import Block
from prism.telemetry.events import POST_LIKED, POST_PUBLISHED

_BITS = 32


NAMING = ("agent_id", "post_id", "parent_id", "root_id", "author_id")
"""Columns of what a line may name."""


class Lines:
    """The lines of a block, by their numbers in the log.

    Args:
        block: The block.
        offset: The place in the log where it begins, in bytes.
    """

    def __init__(self, block: Block, offset: int) -> None:
        self.offset = offset
        self._first = block.first_line
        self._data = block.data
        lengths = pl.Series(list(map(len, block.data.split(b"\n"))), dtype=pl.UInt64)
        self._begins = pl.concat([pl.Series([0], dtype=pl.UInt64), (lengths + 1).cum_sum()])

    def text(self, line: int) -> bytes:
        """Return a line with its line feed."""
        place = line - self._first
        return self._data[self._begins[place] : self._begins[place + 1]]

    def begin(self, line: int) -> int:
        """Return the place in the log where a line begins."""
        return self.offset + int(self._begins[line - self._first])

    def places(self, lines: pl.Series) -> pl.Series:
        """Return the places in the block where lines begin."""
        return self._begins.gather(lines.cast(pl.Int64) - self._first)


class Index:
    """The places of lines by what they name: an agent, or a post that is published or answered.

    An entry is half a hash of the name and the place of the line in its block. The entries of each
    block stand sorted in a temporary file, which costs a log of two gigabytes no memory. Two names
    may share a hash: whoever reads the lines checks what they name.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile(buffering=0)  # noqa: SIM115 - closed with the index
        self._parts: list[tuple[int, int]] = []

    def add(self, lines: Lines, frame: pl.DataFrame) -> None:
        """Add some lines.

        Args:
            lines: The lines.
            frame: Their events, with ``line``, ``event`` and the columns of `NAMING`.
        """
        posts, likes = frame.filter(event=POST_PUBLISHED), frame.filter(event=POST_LIKED)
        naming = [(frame, "agent_id"), (likes, "author_id")]
        naming += [(posts, each) for each in ("post_id", "parent_id", "root_id")]
        names = pl.concat([rows.select("line", name=each) for rows, each in naming]).drop_nulls()
        places = lines.places(names["line"])
        firsts = (names["name"].hash() // (1 << _BITS)) * (1 << _BITS)
        entries = (firsts + places).sort()

        self._file.write(array("Q", entries.to_list()).tobytes())
        self._parts.append((lines.offset, entries.len()))

    def places(self, names: Iterable[str]) -> Iterator[int]:
        """Yield where the lines begin that seem to name one of some things."""
        firsts = [one >> _BITS << _BITS for one in pl.Series(list(names), dtype=pl.String).hash()]
        if not any(count for _, count in self._parts):
            return

        begin = 0
        # of a file that is mapped, only the pages are read that the search comes by
        with (
            mmap(self._file.fileno(), 0, access=ACCESS_READ) as data,
            memoryview(data).cast("Q") as entries,
        ):
            for offset, count in self._parts:
                end = begin + count
                for first in firsts:
                    place = bisect_left(entries, first, begin, end)
                    while place < end and entries[place] - first < 1 << _BITS:
                        yield offset + entries[place] - first
                        place += 1
                begin = end

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

"""Where the lines of a log are that name an agent, so that one agent is read without the others."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from tempfile import TemporaryFile

import polars as pl

from prism.runlog._reader import Block
from prism.telemetry.events import POST_LIKED, POST_PUBLISHED

INDEXED = ("agent_id", "author_id", "parent_id")
"""Columns that name what a line can be found by."""

_BITS = 32
_ENTRY_BYTES = 8


class Index:
    """The places of lines by what they name: an agent, or the post that a reply answers.

    An entry is half a hash of the name and the place of the line in its block. The entries of each
    block stand sorted in a temporary file, which costs a log of two gigabytes no memory. Two names
    may share a hash: whoever reads the lines checks what they name.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile(buffering=0)  # noqa: SIM115 - closed with the index
        self._parts: list[tuple[int, int]] = []

    def add(self, block: Block, offset: int, frame: pl.DataFrame) -> None:
        """Add some lines.

        Args:
            block: The lines.
            offset: Where they begin in the log, in bytes.
            frame: Their events, with ``line``, ``event`` and `INDEXED`.
        """
        lengths = accumulate(map(len, block.data.split(b"\n")), initial=0)
        starts = pl.Series(array("Q", lengths), dtype=pl.UInt64)
        of_event = {"author_id": POST_LIKED, "parent_id": POST_PUBLISHED}
        named = [frame.select("line", name="agent_id")]
        for column, event in of_event.items():
            named.append(frame.filter(event=event).select("line", name=column))
        names = pl.concat(named).drop_nulls()
        place = names["line"].cast(pl.Int64) - block.first_line
        # each line before it has a line feed
        places = starts.gather(place) + place.cast(pl.UInt64)
        entries = ((names["name"].hash() // (1 << _BITS)) * (1 << _BITS) + places).sort()

        self._file.write(array("Q", entries.to_list()).tobytes())
        self._parts.append((offset, entries.len()))

    def places(self, names: Iterable[str]) -> Iterator[int]:
        """Yield where the lines begin that seem to name one of some things."""
        firsts = [one >> _BITS << _BITS for one in pl.Series(list(names), dtype=pl.String).hash()]
        position = 0
        for offset, count in self._parts:
            entries = array("Q")
            entries.frombytes(os.pread(self._file.fileno(), count * _ENTRY_BYTES, position))
            position += count * _ENTRY_BYTES
            for first in firsts:
                begin, end = bisect_left(entries, first), bisect_left(entries, first + (1 << _BITS))
                yield from (offset + entry - first for entry in entries[begin:end])

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

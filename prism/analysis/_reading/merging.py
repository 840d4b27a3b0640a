"""Putting small tables, one of each block of a log, together into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

_MOST_ROWS_WAITING = 1_000_000


class TableMerger:
    """Small tables that are merged now and then, so that memory holds little more than the merged one.

    Args:
        merge: Makes one table of several that were put below each other. Merging merged ones must
            give the same as merging all at once.
    """

    def __init__(self, merge: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        self._merge = merge
        self._merged: pl.DataFrame | None = None
        self._waiting: list[pl.DataFrame] = []
        self._rows = 0

    def add(self, table: pl.DataFrame) -> None:
        """Add the table of the next block."""
        self._waiting.append(table)
        self._rows += table.height
        if self._rows > _MOST_ROWS_WAITING + (0 if self._merged is None else self._merged.height):
            self._settle()

    def table(self) -> pl.DataFrame:
        """Return all of them, merged.

        Raises:
            ValueError: If none was added, so that not even the columns are known.
        """
        self._settle()
        if self._merged is None:
            raise ValueError("no table was added")
        return self._merged

    def _settle(self) -> None:
        if not self._waiting:
            return

        together = pl.concat(
            self._waiting if self._merged is None else [self._merged, *self._waiting]
        )
        self._merged = self._merge(together).select(together.columns)
        self._waiting, self._rows = [], 0


def merge_by_sum(keys: Sequence[str]) -> TableMerger:
    """Gather tables whose other columns are counts, to be added up for equal keys."""
    return TableMerger(lambda tables: tables.group_by(keys).agg(pl.all().sum()))


def merge_by_first(keys: Sequence[str]) -> TableMerger:
    """Gather tables of which the first row of equal keys is kept."""
    return TableMerger(lambda tables: tables.unique(keys, keep="first", maintain_order=True))

"""Merging small tables, one of each block of a log, into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

COUNT: pl.Expr = pl.len().cast(pl.Int64)
"""The number of rows, in a type whose sums cannot overflow."""

_MOST_ROWS_WAITING = 250_000


class TableMerger:
    """Merges tables from time to time, so that memory holds little more than the result.

    Args:
        merge: Makes one table of several that were concatenated. Merging merged tables must give
            the same as merging all tables at once.
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

        # Waiting for as many new rows as there are merged ones keeps the total work linear.
        merged = 0 if self._merged is None else self._merged.height
        if self._rows > _MOST_ROWS_WAITING + merged:
            self._settle()

    def table(self) -> pl.DataFrame:
        """Return all tables, merged.

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

        parts = self._waiting if self._merged is None else [self._merged, *self._waiting]
        together = pl.concat(parts)
        self._merged = self._merge(together).select(together.columns)
        self._waiting, self._rows = [], 0


def merge_by_sum(keys: Sequence[str]) -> TableMerger:
    """Return a merger that adds up all other columns for equal keys."""
    return TableMerger(lambda tables: tables.group_by(keys).agg(pl.all().sum()))


def merge_by_first(keys: Sequence[str]) -> TableMerger:
    """Return a merger that keeps the first row of equal keys."""
    return TableMerger(lambda tables: tables.unique(keys, keep="first", maintain_order=True))


def merge_by_last(keys: Sequence[str]) -> TableMerger:
    """Return a merger that keeps the last row of equal keys."""
    return TableMerger(lambda tables: tables.unique(keys, keep="last", maintain_order=True))

"""Queries over tables that are made while they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import polars as pl
from polars.io.plugins import register_io_source


def query_of(make: Callable[[], Iterable[pl.DataFrame]], *, schema: pl.Schema) -> pl.LazyFrame:
    """Give parts of a table as one polars query, which holds no more than a few of them at a time.

    Args:
        make: Begins to make the parts, in order; called whenever the query is run.
        schema: Their columns and types.
    """

    def source(
        wanted: list[str] | None, predicate: pl.Expr | None, most: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        for frame in make():
            part = frame if predicate is None else frame.filter(predicate)
            part = part.select(wanted or frame.columns)
            yield part if most is None else part.head(most)
            if most is not None and (most := most - part.height) <= 0:
                return

    return register_io_source(source, schema=schema)

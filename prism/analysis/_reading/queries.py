"""Polars queries over tables that are made part by part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import polars as pl
from polars.io.plugins import register_io_source


def query_of(
    make: Callable[[Collection[str]], Iterable[pl.DataFrame]], *, schema: Mapping[str, pl.DataType]
) -> pl.LazyFrame:
    """Return a polars query over the parts of a table, with few of them in memory at a time.

    Args:
        make: Begins to make the parts, in order. Called with the needed columns whenever the query
            is run; parts may have other columns besides.
        schema: Columns and types of the table.
    """

    def source(
        wanted: list[str] | None, predicate: pl.Expr | None, most: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        columns = wanted or list(schema)
        needed = {*columns, *(() if predicate is None else predicate.meta.root_names())}

        for frame in make(needed):
            part = (frame if predicate is None else frame.filter(predicate)).select(columns)
            if most is None:
                yield part
                continue

            yield part.head(most)
            most -= part.height
            if most <= 0:
                return

    return register_io_source(source, schema=pl.Schema(schema))

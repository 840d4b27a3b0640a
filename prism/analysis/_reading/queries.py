"""Queries over tables that are made while they are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import polars as pl
from polars.io.plugins import register_io_source


def query_of(
    make: Callable[[Collection[str]], Iterable[pl.DataFrame]], *, schema: Mapping[str, pl.DataType]
) -> pl.LazyFrame:
    """Return parts of a table as one polars query, which holds no more than a few of them at a time.

    Args:
        make: Begins to make the parts, in order; called whenever the query is run, with the columns
            that it needs. Others that the parts have are left out.
        schema: Columns and types of the table.
    """

    def source(
        wanted: list[str] | None, predicate: pl.Expr | None, most: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        needed = {*(wanted or schema), *(() if predicate is None else predicate.meta.root_names())}
        for frame in make(needed):
            part = frame if predicate is None else frame.filter(predicate)
            part = part.select(wanted or list(schema))
            yield part if most is None else part.head(most)
            if most is not None and (most := most - part.height) <= 0:
                return

    return register_io_source(source, schema=pl.Schema(schema))

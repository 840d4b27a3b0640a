"""Queries over tables that are made part by part."""

from collections.abc import Collection, Iterator

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from prism.analysis._reading.queries import query_of

SCHEMA = {"a": pl.Int64(), "b": pl.Int64()}


class Parts:
    """A table made in parts, which notes what was asked of it."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.needed: set[str] = set()
        self.made = 0

    def whole(self) -> pl.DataFrame:
        """Return the table at once."""
        total = sum(self.sizes)
        return pl.DataFrame({"a": range(total), "b": [a % 3 for a in range(total)]}, schema=SCHEMA)

    def __call__(self, needed: Collection[str]) -> Iterator[pl.DataFrame]:
        """Make the parts, with a column that nobody asked for."""
        self.needed, start = set(needed), 0
        for size in self.sizes:
            self.made += 1
            yield self.whole().slice(start, size).with_columns(extra=pl.lit(1))
            start += size


@given(sizes=st.lists(st.integers(0, 5), max_size=5), most=st.integers(0, 12))
def test_query_of_parts_equals_the_whole_table(sizes: list[int], most: int) -> None:
    """Filters, columns and heads of a query are those of the whole table."""
    parts = Parts(sizes)
    query, whole = query_of(parts, schema=SCHEMA), parts.whole()
    is_even = pl.col("a") % 2 == 0
    assert query.collect().equals(whole)
    assert query.filter(is_even).select("b").collect().equals(whole.filter(is_even).select("b"))
    assert query.filter(is_even).head(most).collect().equals(whole.filter(is_even).head(most))


def test_query_makes_only_what_it_needs() -> None:
    """A query asks for the columns of its result and its filter, and stops after its rows."""
    parts = Parts([2, 2, 2, 2])
    assert query_of(parts, schema=SCHEMA).select("a").head(3).collect()["a"].to_list() == [0, 1, 2]
    assert parts.needed == {"a"}
    assert parts.made == 2
    query_of(parts, schema=SCHEMA).filter(pl.col("b") == 1).select("a").collect()
    assert parts.needed == {"a", "b"}

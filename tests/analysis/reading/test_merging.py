"""Putting small tables together."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.analysis._reading.merging import TableMerger, merge_by_first, merge_by_sum

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=12)
SCHEMA = {"key": pl.String, "count": pl.Int64}


def table(rows: list[tuple[str, int]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@settings(max_examples=2 * settings().max_examples)
@given(parts=st.lists(ROWS, min_size=1, max_size=6))
def test_merged_parts_equal_the_whole(parts: list[list[tuple[str, int]]]) -> None:
    """Sums and first rows of parts are those of all rows together."""
    sums, firsts = merge_by_sum(["key"]), merge_by_first(["key"])
    for part in parts:
        sums.add(table(part))
        firsts.add(table(part))
    rows = [row for part in parts for row in part]
    assert dict(sums.table().iter_rows()) == {
        key: sum(n for k, n in rows if k == key) for key, _ in rows
    }
    assert firsts.table().rows() == [
        (key, next(n for k, n in rows if k == key)) for key in dict(rows)
    ]


def test_many_rows_are_merged_before_the_end() -> None:
    """Rows that wait to be merged are bounded, and merging in between changes nothing."""
    calls: list[int] = []

    def merge(tables: pl.DataFrame) -> pl.DataFrame:
        calls.append(tables.height)
        return tables.group_by("key").agg(pl.col("count").sum())

    merger = TableMerger(merge)
    part = pl.DataFrame({"key": ["a", "b"] * 25_000, "count": [1, 2] * 25_000})
    for _ in range(12):
        merger.add(part)
    assert dict(merger.table().iter_rows()) == {"a": 300_000, "b": 600_000}
    assert len(calls) == 2
    assert max(calls) < 8 * part.height

"""Tables as HTML."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import polars as pl

from prism.report._figures.html_table import html_table


def test_cells_keep_exact_values(parse: Callable[[str], Any]) -> None:
    """A cell shows a short number and keeps the exact one; a missing value is empty."""
    table = pl.DataFrame(
        {
            "name": ["<b>", None],
            "count": [1234567, None],
            "mean": [1 / 3, None],
            "share": [1 / 3, 0.0],
            "time": [datetime(2026, 1, 1, 12, tzinfo=UTC), None],
        }
    )
    page = parse(html_table("x", table, {"count": "how many"}))
    assert [head.text for head in page.all("th")] == ["name", "how many", "mean", "share", "time"]
    cells = page.all("td")
    assert [cell.text for cell in cells[:5]] == [
        "<b>",
        "1,234,567",
        "0.3333",
        "33.3%",
        "2026-01-01 12:00:00",
    ]
    assert [cell.attributes.get("data-value") for cell in cells[:5]] == [
        None,
        "1234567",
        repr(1 / 3),
        repr(1 / 3),
        None,
    ]
    assert [cell.text for cell in cells[5:]] == ["", "", "", "0.0%", ""]
    assert [cell.attributes["class"] for cell in cells[:5]] == [
        "",
        "number",
        "number",
        "number",
        "",
    ]


def test_a_long_table_says_what_it_leaves_out(parse: Callable[[str], Any]) -> None:
    """A long table is cut, with a line saying of how many rows; a short one has no such line."""
    table = pl.DataFrame({"n": range(2000)})
    assert "20 of 2,000 are shown." in html_table("x", table, most=20)
    assert len(parse(html_table("x", table, most=20)).all("td")) == 20
    assert "shown" not in html_table("x", table.head(20), most=20)

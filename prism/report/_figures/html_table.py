"""Data frames as HTML tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl
from markupsafe import Markup

_WIDE = ("text", "reason")
_SHARES = (
    *("share", "probability", "fallback_share", "timeout_share", "entropy_share"),
    *("active", "top_1_percent", "top_10_percent"),
)
_NOTHING = Markup("")


def html_table(
    name: str,
    table: pl.DataFrame,
    headings: Mapping[str, str] | None = None,
    *,
    most: int | None = None,
) -> Markup:
    """Return a table as HTML, numbers aligned and shortened for people; what they are exactly stands in ``data-value``.

    Args:
        name: What it is of, for its id.
        table: The rows.
        headings: What to call columns, where not by their names.
        most: Rows to show at the most; a line below says how many there are.
    """
    shown = table if most is None else table.head(most)
    heads = [
        Markup('<th scope="col" class="{}">{}</th>').format(
            _class(table, column), (headings or {}).get(column, column.replace("_", " "))
        )
        for column in table.columns
    ]
    classes = [_class(table, column) for column in table.columns]
    rows = [
        _NOTHING.join(map(cell, row, classes, [column in _SHARES for column in table.columns]))
        for row in shown.iter_rows()
    ]
    body = _NOTHING.join(Markup("<tr>{}</tr>").format(row) for row in rows)
    more = Markup('<p class="soft">{:,} of {:,} are shown.</p>').format(shown.height, table.height)

    return Markup(
        '<div class="scroll"><table id="table-{}"><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>{}'
    ).format(name, _NOTHING.join(heads), body, more if shown.height < table.height else _NOTHING)


def cell(value: Any, kind: str = "number", is_share: bool = False) -> Markup:
    """Return one cell.

    Args:
        value: What is in it; None leaves it empty.
        kind: Class of the cell.
        is_share: Whether it is a share, 0 to 1, to be shown in percent.
    """
    if value is None:
        return Markup('<td class="{}"></td>').format(kind)
    if isinstance(value, datetime):
        value = value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, str):
        return Markup('<td class="{}">{}</td>').format(kind, value)

    return Markup('<td class="{}" data-value="{!r}">{}</td>').format(
        kind, value, shown(value, is_share=is_share)
    )


def shown(value: float, *, is_share: bool = False) -> str:
    """Write a number for people: whole numbers in full, others with four digits, shares in percent."""
    if is_share:
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _class(table: pl.DataFrame, column: str) -> str:
    if table.schema[column].is_numeric():
        return "number"
    return "wide" if column in _WIDE else ""

"""Data frames as HTML tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import polars as pl
from markupsafe import Markup

_WIDE = ("text", "reason", "error")
_SHARES = (
    *("share", "probability", "fallback_share", "timeout_share", "entropy_share"),
    *("silent", "writing", "creating", "liking", "top_1", "next_9", "other_90"),
)
_NOTHING = Markup("")


def html_table(
    name: str,
    table: pl.DataFrame,
    headings: Mapping[str, str] | None = None,
    *,
    most: int | None = None,
) -> Markup:
    """Return a table as HTML, with numbers shortened for people and exact in ``data-value``.

    Args:
        name: Name of the table, for its id.
        table: The rows.
        headings: Headings of columns, if they differ from the names.
        most: Most rows to show; a line below the table gives their number.
    """
    headings = headings or {}
    first = table if most is None else table.head(most)
    classes = [_class(table, column) for column in table.columns]
    are_shares = [column in _SHARES for column in table.columns]

    heads = [
        Markup('<th scope="col" class="{}">{}</th>').format(
            kind, headings.get(column, column.replace("_", " "))
        )
        for column, kind in zip(table.columns, classes, strict=True)
    ]
    rows = [
        Markup("<tr>{}</tr>").format(_NOTHING.join(map(cell, row, classes, are_shares)))
        for row in first.iter_rows()
    ]

    more = _NOTHING
    if first.height < table.height:
        more = Markup('<p class="soft">{:,} of {:,} are shown.</p>').format(
            first.height, table.height
        )

    return framed(name, heads, rows) + more


def framed(name: str, heads: Iterable[Markup], rows: Iterable[Markup]) -> Markup:
    """Return rows as a table that scrolls.

    Args:
        name: Name of the table, for its id.
        heads: The cells of its first row.
        rows: Its rows.
    """
    return Markup(
        '<div class="scroll"><table id="table-{}"><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(name, _NOTHING.join(heads), _NOTHING.join(rows))


def headed(name: str, cells: Iterable[Markup]) -> Markup:
    """Return a row that begins with its name."""
    return Markup('<tr><th scope="row">{}</th>{}</tr>').format(name, _NOTHING.join(cells))


def cell(value: Any, kind: str = "number", is_share: bool = False) -> Markup:
    """Return one cell.

    Args:
        value: Its value; None leaves it empty.
        kind: Its class.
        is_share: Whether the value is a share, 0 to 1, to be shown in percent.
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
    """Return whole numbers in full, others with four digits, and shares in percent."""
    if is_share:
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _class(table: pl.DataFrame, column: str) -> str:
    if table.schema[column].is_numeric():
        return "number"
    return "wide" if column in _WIDE else ""

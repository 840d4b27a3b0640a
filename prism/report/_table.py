"""Rows as HTML tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from duckdb import DuckDBPyRelation
from markupsafe import Markup

from prism.drawing import showable

Rows = Sequence[Mapping[str, Any]]
"""Rows of a table: values by the names of columns, the same in each row."""

MOST_CHARACTERS = 500
"""Most characters of a text in a cell."""

_MOST_FLAT = 20
_WIDE = ("text", "thought", "content", "reason", "error")
_SHARES = (
    *("share", "probability", "fallback_share", "timeout_share", "entropy_share"),
    *(
        "silent",
        "writing",
        "creating",
        "liking",
        "top_1",
        "next_9",
        "other_90",
        "share of fallbacks",
    ),
)
_SEARCH = Markup(
    '<p><input type="search" placeholder="Search" aria-label="Search the table"> '
    '<span class="soft" role="status"></span></p>'
)


def rows_of(relation: DuckDBPyRelation) -> list[dict[str, Any]]:
    """Return the rows of a query as plain data."""
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def html_table(
    name: str,
    rows: Rows,
    headings: Mapping[str, str] | None = None,
    *,
    most: int = 40,
    searchable: bool = False,
) -> Markup:
    """Return rows as a table, with numbers shortened for people and exact in ``data-value``.

    Args:
        name: Name of the table, for its id.
        rows: The rows.
        headings: Headings of columns, if they differ from the names.
        most: Most rows to show; a line below the table gives their number.
        searchable: Whether readers can search the table, and sort it by its headings.
    """
    headings = headings or {}
    shown = rows[:most]
    columns = list(rows[0]) if rows else []
    kinds = {column: _kind(column, shown) for column in columns}
    pressed = '<button type="button">{}</button>' if searchable else "{}"
    head = Markup("").join(
        Markup(f'<th scope="col" class="{{}}">{pressed}</th>').format(
            kinds[column], headings.get(column, column.replace("_", " "))
        )
        for column in columns
    )
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                _cell(row[column], kinds[column], column in _SHARES) for column in columns
            )
        )
        for row in shown
    )
    table = Markup(
        '<div class="scroll{}" tabindex="0"><table id="table-{}"><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(" tall" if len(shown) > _MOST_FLAT else "", name, head, body)
    if len(rows) > len(shown):
        table += Markup('<p class="soft">{:,} of {:,} are shown.</p>').format(len(shown), len(rows))

    return (
        Markup('<div class="searchable">{}{}</div>').format(_SEARCH, table) if searchable else table
    )


def turned(rows: Rows, key: str = "run") -> Rows:
    """Return a row for each column that has a value, and a column for each row.

    Args:
        rows: The rows.
        key: Column that names them.
    """
    named = [str(row.get(key, "")) for row in rows]
    names = dict.fromkeys(name for row in rows for name in row if name != key)
    turned_rows = (
        {
            " ": name.replace("_", " "),
            **{run: row.get(name) for run, row in zip(named, rows, strict=True)},
        }
        for name in names
    )
    return [
        row for row in turned_rows if any(value is not None for value in list(row.values())[1:])
    ]


def short(text: str) -> str:
    """Return a text that a page can show, shortened if it is long."""
    left = len(text) - MOST_CHARACTERS
    return showable(text if left <= 0 else f"{text[:MOST_CHARACTERS]}…")


def _kind(column: str, rows: Rows) -> str:
    values = [row[column] for row in rows if row[column] is not None]
    if values and all(isinstance(value, int | float) for value in values):
        return "number"
    return "wide" if column in _WIDE else ""


def _cell(value: Any, kind: str, is_share: bool) -> Markup:
    if value is None:
        return Markup('<td class="{}"></td>').format(kind)
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = (
            f"{value:.1%}"
            if is_share
            else f"{value:,}"
            if isinstance(value, int)
            else f"{value:,.4g}"
        )
        return Markup('<td class="number" data-value="{!r}">{}</td>').format(value, text)
    if isinstance(value, datetime):
        value = f"{value:%Y-%m-%d %H:%M:%S}"

    return Markup('<td class="{}">{}</td>').format(kind, short(str(value)))

"""Rows as HTML tables, and texts and names of a log as a page shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from prism.drawing import number_text, showable
from prism.reasoner.prompts import in_words

Rows = Sequence[Mapping[str, Any]]
"""Rows of a table: values by the names of columns, the same in each row."""

MOST_CHARACTERS = 4000
_MOST_IN_A_CELL = 500
_MOST_FLAT = 20
_WIDE = ("text", "thought", "content", "reason", "error")
_SHARES = (
    "share", "probability", "fallback_share", "timeout_share", "entropy_share",
    "share of fallbacks",
)  # fmt: skip
_SEARCH = Markup(
    '<p><input type="search" placeholder="Search" aria-label="Search the table"> '
    '<span class="soft" role="status"></span></p>'
)


def with_values(rows: Rows) -> list[dict[str, Any]]:
    """Return rows without columns that have no value, or one ``chart`` for all."""
    hidden = {"chart"} if len({row.get("chart") for row in rows}) == 1 else set()
    names = [
        name
        for name in (rows[0] if rows else ())
        if name not in hidden and any(row[name] is not None for row in rows)
    ]
    return [
        {name: short(row[name]) if isinstance(row[name], str) else row[name] for name in names}
        for row in rows
    ]


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
    visible = rows[:most]
    columns = list(rows[0]) if rows else []
    kinds = {column: _kind(column, visible) for column in columns}
    pressed = '<button type="button">{}</button>' if searchable else "{}"
    head = joined(
        Markup(f'<th scope="col" class="{{}}">{pressed}</th>').format(
            kinds[column], (headings or {}).get(column, column.replace("_", " "))
        )
        for column in columns
    )
    body = joined(
        Markup("<tr>{}</tr>").format(
            joined(_cell(row[column], column, kinds[column]) for column in columns)
        )
        for row in visible
    )
    table = Markup(
        '<div class="scroll{}" tabindex="0"><table id="table-{}"><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(" tall" if len(visible) > _MOST_FLAT else "", name, head, body)
    if len(rows) > len(visible):
        table += Markup('<p class="soft">{:,} of {:,} are shown.</p>').format(
            len(visible), len(rows)
        )
    searched = Markup('<div class="searchable">{}{}</div>').format(_SEARCH, table)

    return searched if searchable else table


def joined(parts: Iterable[Markup]) -> Markup:
    """Return parts of a page, one after the other."""
    return Markup("").join(parts)


def short(text: str, most: int = _MOST_IN_A_CELL) -> str:
    """Return a text that a page can show, shortened if it is long."""
    left = len(text) - most
    return showable(text if left <= 0 else f"{text[:most]}… ({left:,} characters more)")


def link(kind: str, name: object, text: str | None = None) -> Markup:
    """Return the mention of an agent, a post or a round; the viewer makes it lead there."""
    visible = short(text or str("" if name is None else name))
    if name is None:
        return Markup.escape(visible)
    return Markup('<span data-{}="{}">{}</span>').format(Markup(kind), showable(str(name)), visible)


def _kind(column: str, rows: Rows) -> str:
    values = [row[column] for row in rows if row[column] is not None]
    if values and all(isinstance(value, int | float) for value in values):
        return "number"
    return "wide" if column in _WIDE else ""


def _cell(value: Any, column: str, kind: str) -> Markup:
    if value is None:
        return Markup('<td class="{}"></td>').format(kind)
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = f"{value:.1%}" if column in _SHARES else number_text(value)
        return Markup('<td class="number" data-value="{!r}">{}</td>').format(value, text)
    visible = link("agent", value) if column == "agent_id" else short(in_words(value))

    return Markup('<td class="{}">{}</td>').format(kind, visible)

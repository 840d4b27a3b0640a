"""The SQL of the tables: which there are, and what each of them reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import duckdb

from prism.analysis.loading import column_types, script
from prism.errors import InputError

_OF_EVENTS = ("visits", "decided", "wrong", "refused", "assigned", "messages", "happened")
"""Views with a row for each event of a kind, of which most queries need few."""

_STATEMENT = re.compile(r"^create (?:view|macro) (\w+)", re.MULTILINE)
_USED = re.compile(r"\b(?:from|join)\s+(?:lateral\s+)?(\w+)|(\w+)\(|\('(\w+)'\)", re.IGNORECASE)


@cache
def statements() -> Mapping[str, str]:
    """Return the statement that makes each view and macro, by its name."""
    return {
        name: text
        for each in ("helpers.sql", "tables.sql", "levels.sql", "notes.sql")
        for name, text in _statements_of(each).items()
    }


@cache
def _statements_of(name: str) -> Mapping[str, str]:
    texts = [statement.query for statement in duckdb.extract_statements(script(name))]
    return {_STATEMENT.search(text)[1]: text for text in texts}  # type: ignore[index]


@cache
def computed() -> frozenset[str]:
    """Return the views whose rows are computed once, since a table is read faster than a view."""
    views = {name for name, text in statements().items() if f"create view {name}" in text}
    return frozenset(views.difference(_OF_EVENTS))


@cache
def needed(name: str, follows_lengths: bool) -> tuple[str, ...]:
    """Return a view or macro, after all that it reads, directly or not; nothing for another name.

    Args:
        name: The name.
        follows_lengths: Whether ``paced`` needs the steps.
    """
    ordered: dict[str, None] = {}

    def visit(each: str) -> None:
        if each in ordered or each in waiting or each not in statements():
            return
        waiting.add(each)
        text = re.sub(r"--.*", "", statements()[each])
        for used in () if each == "paced" and not follows_lengths else _USED.findall(text):
            for other in used:
                visit(other)
        ordered[each] = None

    waiting: set[str] = set()
    visit(name)
    return tuple(ordered)


def table_names() -> list[str]:
    """Return the names of the tables."""
    hidden = {"dwell_of", *_statements_of("helpers.sql"), *_statements_of("notes.sql")}
    return [name for name in statements() if name not in hidden]


def require_columns(name: str, arguments: Sequence[object]) -> None:
    """Refuse to group by what is no column."""
    (names,) = arguments if arguments else ([],)
    others = {*names} - {*column_types(), "what"} if isinstance(names, Sequence) else set()
    if others:
        raise InputError(
            f"{name} cannot group by {', '.join(sorted(map(str, others)))}: use columns of events, "
            "such as state, model, source, reason, host or round"
        )

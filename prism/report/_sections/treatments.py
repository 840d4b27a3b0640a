"""The treatments that a world was given."""

from __future__ import annotations

from typing import Any

import orjson
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table, shown
from prism.report._figures.page_figures import PageFigures

EXPLANATION = (
    "The rounds at whose beginning a treatment was applied, and the parameters it changed."
)
NOTHING = "The run was given no treatment."

_MOST = 100


def make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:  # noqa: ARG001
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Not used: the measures have the marks.
    """
    if facts.treatments.is_empty():
        return None

    changes = pl.Series("changed", map(_changes, facts.treatments["parameters"]), dtype=pl.String)
    table = facts.treatments.select("round", "treatment", changes)

    return html_table(f"treatments-{name}", table, {"changed": "changed parameters"}, most=_MOST)


def _changes(text: str | None) -> str:
    try:
        changed = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:  # a long text is cut
        return text or ""

    if not isinstance(changed, dict):
        return text or ""
    return ", ".join(f"{name} {_value(value)}" for name, value in changed.items()) or "none"


def _value(value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return shown(value) if is_number else str(value)

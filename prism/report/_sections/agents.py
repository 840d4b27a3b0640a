"""All agents in a table that can be searched and sorted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import polars as pl
import polars.selectors as cs
from markupsafe import Markup

from prism.analysis._tables.agents import fields_in
from prism.report._facts.run_facts import RunFacts
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.kinds import Section

_EXPLANATION = (
    "Press a heading to sort by it. The state is the last, but fields are as agents joined. The "
    "story of one agent:  prism log agent ID RUN"
)

MOST_BYTES = 5_000_000
"""Most bytes of the table as JSON; a larger table leaves out the least active agents."""

_ACTS_IN_FEED = ("posts", "replies", "reshares", "likes")
_ACTS = (*_ACTS_IN_FEED, "decisions", "transitions")


def agent_rows(runs: Sequence[RunFacts]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the agents of all runs as columns and rows, only the most active if not all fit.

    Args:
        runs: The facts of each run; with several, ``run`` is the first column.
    """
    table = _together(runs)
    sizes = [len(orjson.dumps(row)) + 1 for row in table.iter_rows()]
    if sum(sizes) <= MOST_BYTES:
        return table.columns, table.rows()

    ranked = table.with_columns(pl.Series("_bytes", sizes)).sort(
        [name for name in _ACTS if name in table.columns], descending=True, maintain_order=True
    )
    fitting = ranked.filter(pl.col("_bytes").cum_sum() <= MOST_BYTES).drop("_bytes")

    return fitting.columns, fitting.rows()


def _together(runs: Sequence[RunFacts]) -> pl.DataFrame:
    """Return all agents, with the columns for which some run has values."""
    tables = [facts.agents for facts in runs]
    if len(runs) > 1:
        tables = [
            facts.agents.select(pl.lit(facts.run.label).alias("run"), pl.all()) for facts in runs
        ]

    table = _without_repetition(pl.concat(tables, how="diagonal"))
    if not any(facts.has_feed for facts in runs):
        table = table.drop(*_ACTS_IN_FEED, cs.ends_with("_received"), strict=False)

    return table if any(facts.has_decisions for facts in runs) else table.drop("decisions")


def make(runs: Sequence[RunFacts], figures: PageFigures) -> Section:
    """Make the section of all runs; the page's script adds the rows.

    Args:
        runs: The facts of each.
        figures: Collects the rows, as the data ``agents``.
    """
    columns, rows = agent_rows(runs)
    figures.data["agents"] = {"columns": columns, "rows": rows}
    total = sum(facts.agents.height for facts in runs)
    own = fields_in(columns) if "state" in columns else []
    heads = Markup("").join(
        Markup('<th scope="col"><button type="button">{}</button></th>').format(
            name.replace("_", " ") + " at first" * (name in own)
        )
        for name in columns
    )

    table = Markup(
        '<p><input type="search" id="search" placeholder="agent, archetype, state ..." '
        'aria-label="Search agents"> <span class="soft" id="matches" role="status"></span></p>'
        '{}<div class="tall" tabindex="0"><table class="agents" id="table-agents">'
        "<thead><tr>{}</tr></thead><tbody></tbody></table></div>"
    ).format(_left_out(len(rows), total), heads)

    return Section("agents", "Agents", _EXPLANATION, together=table)


def _left_out(kept: int, total: int) -> Markup:
    if kept == total:
        return Markup("")

    return Markup(
        "<p class='soft'>The {:,} most active of {:,} agents; "
        "<code>prism log agents RUN -o agents.csv</code> gives all.</p>"
    ).format(kept, total)


def _without_repetition(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out names that are the same as the ids, and columns without values."""
    useless = [
        name
        for name in ("name", "archetype", "state")
        if name in table.columns and table[name].null_count() == table.height
    ]
    if "name" not in useless and table.select((pl.col("name") == pl.col("agent_id")).all()).item():
        useless.append("name")

    return table.drop(useless)

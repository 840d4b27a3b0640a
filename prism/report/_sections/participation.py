"""Participation: who writes, and who is silent."""

from __future__ import annotations

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import HEIGHT, PageFigures, colour_of, tips
from prism.report._figures.timeline import thinned_rounds
from prism.report._sections.kinds import Kind, has_feed

_GROUPS = ("silent", "writing", "creating")
_MOST_ROUNDS = 500


def _participation(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    if facts.participation.is_empty():
        return None

    is_round = pl.col("round").is_not_null()
    rounds = facts.participation.filter(is_round)
    in_all = facts.participation.filter(~is_round).drop("round", "top_10")
    table = html_table(f"participation-{name}", in_all)
    if rounds.height < 2:
        return table

    about = "The shares of silent, writing and creating agents in each round"
    return figures.add_chart(f"participation-{name}", _shares(rounds, figures), about) + table


def _shares(rounds: pl.DataFrame, figures: PageFigures) -> alt.Chart:
    few, x = thinned_rounds(rounds, _MOST_ROUNDS)
    shown = few.unpivot(_GROUPS, index="round", variable_name="group", value_name="share")
    colours = {group: colour_of(place) for place, group in enumerate(_GROUPS, start=2)}
    chart: alt.Chart = (
        alt.Chart(shown)
        .mark_line(strokeWidth=2)
        .encode(
            x,
            alt.Y("share:Q", title="share of the agents", axis=alt.Axis(format="%", tickCount=5)),
            figures.colour("group", colours),
            tooltip=tips("round", "group", ("share:Q", ".1%")),
        )
        .properties(height=round(HEIGHT * 0.7))
    )

    return chart


PARTICIPATION = Kind(
    "participation",
    "Silent, writing, creating",
    "An agent creates if it publishes a post of its own, writes if it only replies or reshares, "
    "and is silent otherwise. The figure shows their shares in each round. The table has "
    "those of the whole run, and how much of all writing came from the top 1 %, the next 9 % and "
    "the other 90 % of agents (van Mierlo 2014).",
    "Nobody has posted.",
    _participation,
    has_feed,
)

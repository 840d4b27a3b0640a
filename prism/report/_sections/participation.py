"""Participation: its inequality, who writes or is silent, what agents open, and when."""

from __future__ import annotations

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import BLUE, GREY, HEIGHT, PageFigures, colour_of, tips
from prism.report._figures.timeline import thinned_rounds
from prism.report._sections.kinds import Kind, has_feed

_MOST_POINTS = 200


def _engagement(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    if not facts.has_feed:
        return None

    acts = facts.agents.select(
        pl.sum_horizontal("posts", "replies", "reshares", "likes")
    ).to_series()
    if not acts.sum():
        return None

    figure = figures.add_chart(
        f"inequality-{name}", _curve(acts), "The Lorenz curve of what agents gave"
    )
    headings = {"top_1_percent": "top 1 %", "top_10_percent": "top 10 %"}
    table = html_table(f"engagement-{name}", facts.engagement.drop("agents"), headings)

    return Markup('<div class="half">{}<div>{}</div></div>').format(figure, table)


def _curve(acts: pl.Series) -> alt.LayerChart:
    """Draw the Lorenz curve of the numbers of acts."""
    ranked = acts.sort()
    size = ranked.len()
    curve = pl.DataFrame({"agents": pl.int_range(0, size + 1, eager=True) / size})
    curve = curve.with_columns(share=pl.concat([pl.Series([0.0]), ranked.cum_sum() / ranked.sum()]))
    step = max(1, curve.height // _MOST_POINTS)
    thinned = pl.concat([curve.gather_every(step), curve.tail(1)]).unique(maintain_order=True)
    axes = (
        alt.X("agents:Q", title="share of the agents, least active first", axis=_percent()),
        alt.Y("share:Q", title="share of all that was given", axis=_percent()),
    )
    area = alt.Chart(thinned).mark_area(opacity=0.2, line={"color": BLUE}, color=BLUE).encode(*axes)
    equal = alt.Chart(pl.DataFrame({"agents": [0.0, 1.0], "share": [0.0, 1.0]}))
    diagonal = equal.mark_line(strokeDash=[4, 4], color=GREY).encode(*axes)
    chart: alt.LayerChart = alt.LayerChart(layer=[area, diagonal]).properties(height=HEIGHT)

    return chart


def _percent() -> alt.Axis:
    return alt.Axis(format="%", tickCount=5)


ENGAGEMENT = Kind(
    "engagement",
    "Who takes part",
    "All agents count, including those that did nothing. The Lorenz curve shows what share of all"
    " posts, replies, reshares and likes came from what share of the agents. The further it lies "
    "below the dashed line, the more unequal they are. The Gini coefficient is 0 if all agents "
    "give the same, and near 1 if one agent gives everything.",
    "Nobody has posted, replied, reshared or liked.",
    _engagement,
    has_feed,
)

_GROUPS = ("silent", "writing", "creating")
_MOST_ROUNDS = 500


def _participation(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    in_all = pl.col("round").is_null()
    if facts.participation.is_empty():
        return None

    rounds = facts.participation.filter(~in_all)
    parts = [
        html_table(f"{what}-{name}", table.filter(in_all).drop("round"))
        for what, table in (
            ("participation", facts.participation.drop("top_10")),
            ("views", facts.views),
            ("rhythm", facts.rhythm.drop("p90", "max")),
        )
        if table.height
    ]
    if rounds.height > 1:
        about = "The shares of silent, writing and creating agents in each round"
        parts.insert(0, figures.add_chart(f"participation-{name}", _shares(rounds, figures), about))

    return Markup("").join(parts)


def _shares(rounds: pl.DataFrame, figures: PageFigures) -> alt.Chart:
    few, x = thinned_rounds(rounds, _MOST_ROUNDS)
    shown = few.unpivot(_GROUPS, index="round", variable_name="group", value_name="share")
    colours = {group: colour_of(place) for place, group in enumerate(_GROUPS, start=2)}
    chart: alt.Chart = (
        alt.Chart(shown)
        .mark_line(strokeWidth=2)
        .encode(
            x,
            alt.Y("share:Q", title="share of the agents", axis=_percent()),
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
    "and is silent otherwise. The figure shows their shares in each round. The first table has "
    "those of the whole run, and how much of all writing came from the top 1 %, the next 9 % and "
    "the other 90 % of agents (van Mierlo 2014). Every post that an agent opens is decided on, "
    "ignored, or cut short. Burstiness is -1 for a regular rhythm, about 0 for a random one, and "
    "1 for a single burst (Goh and Barabási 2008; Kim and Jo 2016).",
    "Nobody has posted.",
    _participation,
    has_feed,
)

"""How unequally agents take part."""

from __future__ import annotations

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.colours import BLUE, GREY
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import HEIGHT, PageFigures

EXPLANATION = (
    "All agents count, also those that did nothing. The Lorenz curve shows which share of all "
    "posts, replies, reshares and likes came from which share of the agents; the further it hangs "
    "below the dashed line, the more unequal they are. The Gini coefficient is 0 if all give the "
    "same, near 1 if one gives everything."
)
NOTHING = "Nobody has posted, replied, reshared or liked."

_MOST_POINTS = 200


def make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Where to add the figure.
    """
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
        alt.X(
            "agents:Q",
            title="share of the agents, least active first",
            axis=alt.Axis(format="%", tickCount=5),
        ),
        alt.Y(
            "share:Q", title="share of all that was given", axis=alt.Axis(format="%", tickCount=5)
        ),
    )
    area = alt.Chart(thinned).mark_area(opacity=0.2, line={"color": BLUE}, color=BLUE).encode(*axes)
    equal = alt.Chart(pl.DataFrame({"agents": [0.0, 1.0], "share": [0.0, 1.0]}))
    diagonal = equal.mark_line(strokeDash=[4, 4], color=GREY).encode(*axes)
    chart: alt.LayerChart = alt.LayerChart(layer=[area, diagonal]).properties(height=HEIGHT)

    return chart

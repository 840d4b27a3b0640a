"""How far posts spread, and the largest cascades as trees."""

from __future__ import annotations

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.report._facts.counts import TreePost
from prism.report._facts.run_facts import RunFacts
from prism.report._figures.colours import BLUE
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import HEIGHT, PageFigures
from prism.report._figures.tree_drawing import KINDS, MOST_POSTS_DRAWN, draw_tree

EXPLANATION = (
    "A post and all that replies to it or reshares it. Depth is the most steps from the root, "
    "breadth the most posts at one depth, virality the mean distance between two posts of the tree "
    "(Goel et al. 2016), ticks the time to the last post."
)
NOTHING = "No post was replied to or reshared."

_MOST_CASCADES = 20
_MOST_ID = 40
_COLUMNS = (
    "root_id",
    "author_id",
    "size",
    "depth",
    "breadth",
    "virality",
    "agents",
    "lifetime_ticks",
    "text",
)
_KEY = Markup("").join(
    Markup(
        '<li><svg aria-hidden="true"><circle cx="5" cy="5" r="5" fill="{}"/></svg>{}</li>'
    ).format(colour, kind)
    for kind, colour in KINDS.items()
)
_TREES = Markup(
    '<h3>The largest as trees</h3><p class="soft">Point at a post to read it.</p>'
    '<div class="picture"><ul class="key" tabindex="0" aria-label="Legend">{}</ul></div>'
).format(_KEY)


def make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Where to add the figures.
    """
    spread = facts.cascades.filter(pl.col("size") > 1)
    if spread.is_empty():
        return None

    sizes = figures.add_chart(
        f"cascades-{name}", _sizes(facts.cascades), "The number of cascades of at least each size"
    )
    shapes = figures.add_chart(f"shapes-{name}", _shapes(spread), "Cascades by size and depth")
    table = html_table(
        f"cascades-{name}", _listed(spread), {"lifetime_ticks": "ticks"}, most=_MOST_CASCADES
    )
    figures.used.update(KINDS.values())
    trees = [
        _tree(tree, f"tree-{name}-{place}", figures, is_open=place == 1)
        for place, tree in enumerate(facts.trees, 1)
    ]

    return Markup('<div class="half">{}{}</div>{}{}{}').format(
        sizes, shapes, table, _TREES, Markup("").join(trees)
    )


def _listed(spread: pl.DataFrame) -> pl.DataFrame:
    columns = [name for name in _COLUMNS if spread[name].null_count() < spread.height]
    return spread.select(columns)


def _sizes(found: pl.DataFrame) -> alt.Chart:
    """Draw the complementary cumulative distribution of sizes, on logarithmic axes."""
    sizes = found.group_by("size").agg(count=pl.len().cast(pl.Int64)).sort("size", descending=True)
    sizes = sizes.with_columns(cascades=pl.col("count").cum_sum()).with_columns(
        share=pl.col("cascades") / found.height
    )
    chart: alt.Chart = (
        alt.Chart(sizes)
        .mark_line(
            point=alt.OverlayMarkDef(color=BLUE, size=22), interpolate="step-before", color=BLUE
        )
        .encode(
            alt.X("size:Q", scale=_log(), title="posts in the cascade, at least", axis=_decades()),
            alt.Y("cascades:Q", scale=_log(), title="cascades", axis=_decades()),
            tooltip=[
                "size",
                alt.Tooltip("cascades", format=","),
                alt.Tooltip("share", format=".2%"),
            ],
        )
        .properties(height=HEIGHT)
    )

    return chart


def _shapes(spread: pl.DataFrame) -> alt.Chart:
    """Draw the depths of cascades by size: broadcasts lie low, conversations rise."""
    counts = (
        spread.group_by("size", "depth").agg(cascades=pl.len().cast(pl.Int64)).sort("size", "depth")
    )
    chart: alt.Chart = (
        alt.Chart(counts)
        .mark_circle(color=BLUE, opacity=0.6)
        .encode(
            alt.X("size:Q", scale=_log(), title="posts in the cascade", axis=_decades()),
            alt.Y(
                "depth:Q",
                title="depth",
                axis=alt.Axis(format=",d", tickMinStep=1),
                scale=alt.Scale(zero=True),
            ),
            alt.Size("cascades:Q", scale=alt.Scale(range=[16, 220]), legend=None),
            tooltip=["size", "depth", alt.Tooltip("cascades", format=",")],
        )
        .properties(height=HEIGHT)
    )
    return chart


def _log() -> alt.Scale:
    return alt.Scale(type="log", nice=False)


def _decades() -> alt.Axis:
    return alt.Axis(format=",d", labelOverlap=True, tickCount=5, grid=True)


def _tree(tree: tuple[TreePost, ...], name: str, figures: PageFigures, *, is_open: bool) -> Markup:
    root = tree[0]
    left_out = ""
    if len(tree) > MOST_POSTS_DRAWN:
        left_out = f", of which the first {MOST_POSTS_DRAWN} are drawn"

    return Markup(
        "<details{}><summary>{} by {}: {:,} posts{}</summary><div class='tall'>{}</div></details>"
    ).format(
        Markup(" open") if is_open else "",
        _short(root.post_id),
        _short(root.agent_id) or "an unknown author",
        len(tree),
        left_out,
        figures.add_drawing(name, draw_tree(tree)),
    )


def _short(text: str) -> str:
    return text if len(text) <= _MOST_ID else text[: _MOST_ID - 1] + "…"

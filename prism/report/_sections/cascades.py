"""How far posts spread, and the threads of the largest cascades."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.analysis._tables.cascades import TreePost, read_through, remarks_on, told_of
from prism.drawing import showable
from prism.report._facts.run_facts import MOST_CHARACTERS, RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import BLUE, HEIGHT, PageFigures, tips
from prism.report._figures.timeline import whole_numbers
from prism.report._sections.kinds import Kind, has_feed

_MOST_CASCADES = 20
_MOST_ID = 40
_COLUMNS = (
    *("root_id", "author_id", "size", "depth", "breadth", "virality", "agents"),
    *("lifetime_ticks", "text"),
)
_THREADS = Markup("<h3>The largest as threads</h3>")


def _make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
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
    threads = [_thread(tree, is_open=place == 0) for place, tree in enumerate(facts.trees)]

    return Markup('<div class="half">{}{}</div>{}{}{}').format(
        sizes, shapes, table, _THREADS, Markup("").join(threads)
    )


CASCADES = Kind(
    "cascades",
    "Cascades",
    "A cascade is a post and everything that replies to it or reshares it, directly or not. Depth"
    " is the longest chain from the root, breadth the most posts at one depth, virality the mean "
    "distance between two posts of the tree (Goel et al. 2016), and ticks the time until the last"
    " post.",
    "No post was replied to or reshared.",
    _make,
    has_feed,
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
            tooltip=tips("size", ("cascades", ","), ("share", ".2%")),
        )
        .properties(height=HEIGHT)
    )

    return chart


def _shapes(spread: pl.DataFrame) -> alt.Chart:
    """Draw the depths of cascades by size: broadcasts are low, conversations are high."""
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
                axis=whole_numbers(counts["depth"].to_list()),
                scale=alt.Scale(zero=True),
            ),
            alt.Size("cascades:Q", scale=alt.Scale(range=[16, 220]), legend=None),
            tooltip=tips("size", "depth", ("cascades", ",")),
        )
        .properties(height=HEIGHT)
    )
    return chart


def _log() -> alt.Scale:
    return alt.Scale(type="log", nice=False)


def _decades() -> alt.Axis:
    return alt.Axis(format=",d", labelOverlap=True, tickCount=5, grid=True)


def _thread(tree: tuple[TreePost, ...], *, is_open: bool) -> Markup:
    root = tree[0]
    return Markup("<details{}><summary>{} by {}: {:,} posts</summary>{}</details>").format(
        Markup(" open") if is_open else "",
        _short_id(root.post_id),
        _short_id(root.agent_id) or "an unknown author",
        len(tree),
        thread_of(tree, _named),
    )


MOST_POSTS_READ = 100
"""Most posts of a cascade whose texts are shown, in reading order."""

_MOST_STEPS = 8


def thread_of(tree: tuple[TreePost, ...], named: Callable[[TreePost], Markup]) -> Markup:
    """Write a thread in reading order: each answer below its post, indented.

    Args:
        tree: Its posts, the root first.
        named: Writes the author and the kind of a post.
    """
    read = islice(read_through(tree), MOST_POSTS_READ)
    posts = Markup("").join(
        Markup('<li class="below-{}">{} <span class="soft">{}</span> {}{}</li>').format(
            min(depth, _MOST_STEPS),
            named(post),
            "" if post.round is None else f"round {post.round:,}",
            _shortened(showable(post.text)),
            Markup('<span class="soft">{}</span>').format(remarks_on(post)),
        )
        for depth, post in read
    )
    more = Markup("")
    if len(tree) > MOST_POSTS_READ:
        more = Markup("<p class='soft'>The first {:,} posts.</p>").format(MOST_POSTS_READ)

    return Markup('<ol class="thread tall" tabindex="0">{}</ol>{}').format(posts, more)


def _named(post: TreePost) -> Markup:
    return Markup("<b>{}</b>").format(showable(_short_id(told_of(post))))


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _short_id(text: str) -> str:
    return text if len(text) <= _MOST_ID else text[: _MOST_ID - 1] + "…"

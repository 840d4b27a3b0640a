"""How far posts spread, and the largest cascades drawn as trees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice, pairwise
from math import cos, pi, sin

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.analysis._tables.cascades import MISSING, TreePost, read_through, remarks_on, told_of
from prism.drawing import showable
from prism.report._facts.run_facts import MOST_CHARACTERS, RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import BLUE, HEIGHT, INK, PAPER, PageFigures, in_dark, tips
from prism.report._figures.timeline import whole_numbers
from prism.report._sections.kinds import Kind, has_feed

KINDS = {"post": "#332288", "reply": "#44aa99", "reshare": "#cc6677", MISSING: "#999999"}
"""Colours of Paul Tol's muted scheme, which colour-blind readers can distinguish."""

_MOST_CASCADES = 20
_MOST_ID = 40
_COLUMNS = (
    *("root_id", "author_id", "size", "depth", "breadth", "virality", "agents"),
    *("lifetime_ticks", "text"),
)
_OF_KEY = Markup('<li><svg aria-hidden="true"><circle cx="5" cy="5" r="5" fill="{}"/></svg>{}</li>')
_KEY = Markup("").join(_OF_KEY.format(colour, kind) for kind, colour in KINDS.items())
_TREES = Markup(
    '<h3>The largest as trees</h3><p class="soft">Point at a post to read it, or read the thread '
    "below its tree.</p>"
    '<div class="picture"><ul class="key" tabindex="0" aria-label="Legend">{}</ul></div>'
).format(_KEY)


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
    figures.used.update(KINDS.values())
    trees = [
        _tree(tree, f"tree-{name}-{place}", figures, is_open=place == 1)
        for place, tree in enumerate(facts.trees, 1)
    ]

    return Markup('<div class="half">{}{}</div>{}{}{}').format(
        sizes, shapes, table, _TREES, Markup("").join(trees)
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


def _tree(tree: tuple[TreePost, ...], name: str, figures: PageFigures, *, is_open: bool) -> Markup:
    root = tree[0]
    left_out = ""
    if len(tree) > MOST_POSTS_DRAWN:
        left_out = f", of which the first {MOST_POSTS_DRAWN} are drawn"

    return Markup(
        "<details{}><summary>{} by {}: {:,} posts{}</summary><div class='tall'>{}</div>{}</details>"
    ).format(
        Markup(" open") if is_open else "",
        _short_id(root.post_id),
        _short_id(root.agent_id) or "an unknown author",
        len(tree),
        left_out,
        figures.add_drawing(name, draw_tree(tree)),
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
        more = Markup(
            "<p class='soft'>The first {:,} posts; all of them with  <code>prism log threads RUN "
            "--post {} --format csv</code></p>"
        ).format(MOST_POSTS_READ, _short_id(tree[0].post_id))

    return Markup('<ol class="thread tall" tabindex="0">{}</ol>{}').format(posts, more)


def _named(post: TreePost) -> Markup:
    return Markup("<b>{}</b>").format(showable(_short_id(told_of(post))))


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _short_id(text: str) -> str:
    return text if len(text) <= _MOST_ID else text[: _MOST_ID - 1] + "…"


MOST_POSTS_DRAWN = 400
"""Most posts of a cascade that are drawn, in the order of the log; more would overlap."""

# Trees with more leaves are drawn without names and closer together, or as a circle if broad.
_MOST_NAMED = 40
_BROAD = 4

# Lengths in pixels.
_ROW, _TIGHT_ROW, _COLUMN = 17.0, 10.0, (14.0, 150.0)
_RADIUS, _SMALL_RADIUS, _MARGIN, _NAME = 4.5, 3.2, 14.0, 130.0
_WIDTH = 900.0
_RING, _RINGS, _BETWEEN = 22.0, 400.0, 6.0
_MOST_NAME, _MOST_TEXT = 18, 160

Point = tuple[float, float]


def _colour_rules(shown: Callable[[str], str]) -> str:
    kinds = "".join(
        f".prism-tree .{kind}{{fill:{shown(colour)}}}" for kind, colour in KINDS.items()
    )
    paper = "#fff" if shown(PAPER) == PAPER else shown(PAPER)
    return (
        f".prism-tree circle{{stroke:{paper}}}.prism-tree .paper{{fill:{paper}}}"
        f".prism-tree text{{fill:{shown(INK)}}}{kinds}"
    )


_STYLE = (
    ".prism-tree path{fill:none;stroke:#8b949e;stroke-width:1.1}"
    ".prism-tree circle{stroke-width:1}"
    ".prism-tree text{font:11px system-ui,sans-serif}"
    f"{_colour_rules(str)}"
    f"@media screen and (prefers-color-scheme:dark){{{_colour_rules(in_dark)}}}"
)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A tree as rows and columns.

    Args:
        posts: Its posts.
        children: The posts below each.
        places: The column (depth) and row of each; leaves have whole rows, other posts are in the
            middle of those below them.
        depth: The last column.
        rows: Number of rows.
    """

    posts: Sequence[TreePost]
    children: dict[str, list[TreePost]]
    places: dict[str, tuple[int, float]]
    depth: int
    rows: int


def draw_tree(posts: Sequence[TreePost]) -> str:
    """Draw a cascade from left to right, or from the centre outwards if it is broad.

    Args:
        posts: The cascade's posts, from `grow`.

    Returns:
        One ``<svg>`` element, in which pointing at a post shows its author and text.
    """
    shape = _shape(posts[:MOST_POSTS_DRAWN])
    is_named = shape.rows <= _MOST_NAMED
    is_round = not is_named and shape.rows >= _BROAD * shape.depth
    points, width, height = (
        _in_circle(shape) if is_round else _in_columns(shape, _ROW if is_named else _TIGHT_ROW)
    )
    draw_line = _spoke if is_round else _line
    ends = [(parent, child) for parent, below in shape.children.items() for child in below]
    lines = [draw_line(points[parent], points[child.post_id]) for parent, child in ends]
    dots = _dots(shape, points, _SMALL_RADIUS if is_round else _RADIUS, are_named=is_named)

    return (
        f'<svg class="prism-tree" xmlns="http://www.w3.org/2000/svg" '
        f'width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="A cascade of {len(posts)} posts, {shape.depth} deep">'
        f'<style>{_STYLE}</style><rect width="100%" height="100%" class="paper"/>'
        f"{''.join(lines)}{''.join(reversed(dots))}</svg>"
    )


def _shape(posts: Sequence[TreePost]) -> _Shape:
    children: dict[str, list[TreePost]] = defaultdict(list)
    known = {post.post_id for post in posts}
    for post in posts[1:]:
        children[post.parent_id if post.parent_id in known else posts[0].post_id].append(post)

    places = _place(posts[0], children)
    depth = max(column for column, _ in places.values())

    return _Shape(
        posts, dict(children), places, depth, sum(post.post_id not in children for post in posts)
    )


def _place(root: TreePost, children: dict[str, list[TreePost]]) -> dict[str, tuple[int, float]]:
    """Return the column and row of every post."""
    # Not recursive, since a cascade may be deeper than Python's stack.
    places: dict[str, tuple[int, float]] = {}
    next_row = 0
    waiting: list[tuple[TreePost, int, bool]] = [(root, 0, False)]

    while waiting:
        post, depth, children_done = waiting.pop()
        answers = children.get(post.post_id, [])
        if not answers:
            places[post.post_id] = depth, float(next_row)
            next_row += 1
        elif children_done:
            rows = [places[answer.post_id][1] for answer in answers]
            places[post.post_id] = depth, (rows[0] + rows[-1]) / 2
        else:
            waiting.append((post, depth, True))
            waiting += [(answer, depth + 1, False) for answer in reversed(answers)]

    return places


def _in_columns(shape: _Shape, row_height: float) -> tuple[dict[str, Point], float, float]:
    least, most = _COLUMN
    step = min(most, max(least, (_WIDTH - 2 * _MARGIN - _NAME) / max(1, shape.depth)))
    points = {
        name: (_MARGIN + column * step, _MARGIN + row * row_height)
        for name, (column, row) in shape.places.items()
    }

    width = 2 * _MARGIN + shape.depth * step + _NAME
    height = 2 * _MARGIN + (shape.rows - 1) * row_height

    return points, width, height


def _in_circle(shape: _Shape) -> tuple[dict[str, Point], float, float]:
    """Put the root in the centre, and each depth on a ring."""
    rings = _rings(shape)
    middle = rings[-1] + _MARGIN
    points = {}
    for name, (column, row) in shape.places.items():
        angle = 2 * pi * row / shape.rows
        points[name] = middle + rings[column] * cos(angle), middle + rings[column] * sin(angle)

    return points, 2 * middle, 2 * middle


def _rings(shape: _Shape) -> list[float]:
    """Return the radius of each ring, large enough that posts on it do not touch."""
    rows: dict[int, list[float]] = defaultdict(list)
    for column, row in shape.places.values():
        rows[column].append(row)

    step = min(_RING, _RINGS / shape.depth)
    rings = [0.0]
    for column in range(1, shape.depth + 1):
        found = sorted(rows[column])
        nearest = min(
            (after - before for before, after in pairwise([*found, found[0] + shape.rows])),
            default=1.0,
        )
        needed = _BETWEEN * shape.rows / (2 * pi * max(1.0, nearest))
        rings.append(max(rings[-1] + step, needed))

    return rings


def _line(start: Point, end: Point) -> str:
    (x, y), (to_x, to_y) = start, end
    middle = (x + to_x) / 2
    curve = f"{middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
    return f'<path d="M{x:.1f} {y:.1f}C{curve}"/>'


def _spoke(start: Point, end: Point) -> str:
    return f'<path d="M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"/>'


def _dots(shape: _Shape, points: dict[str, Point], radius: float, *, are_named: bool) -> list[str]:
    """Draw the posts, with the names of those that nobody answered if there is room for them."""
    without_name = shape.children if are_named else shape.places
    return [
        _dot(post, points[post.post_id], radius, named=post.post_id not in without_name)
        for post in shape.posts
    ]


def _dot(post: TreePost, point: Point, radius: float, *, named: bool) -> str:
    x, y = point
    kind = post.kind if post.kind in KINDS else MISSING
    title = f"{post.agent_id} ({post.kind}): {post.text}"
    if post.kind == MISSING:
        title = f"{post.post_id}: not in the log"

    name = ""
    if named:
        author = _clean(post.agent_id, _MOST_NAME)
        name = f'<text x="{x + 8:.1f}" y="{y + 4:.1f}">{author}</text>'

    return (
        f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">'
        f"<title>{_clean(title, _MOST_TEXT)}</title></circle>{name}"
    )


def _clean(text: str, most: int) -> str:
    """Shorten and escape a text from the log."""
    flat = " ".join(showable(text[: most + 1]).split())
    return escape(flat if len(text) <= most else flat[: most - 1] + "…")

"""A picture of the world: cells, positions or a network, with each agent in its colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from typing import Any

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.drawing import showable
from prism.report._facts.pictures import HEX, Picture, Point
from prism.report._facts.run_facts import MOST_CHARACTERS
from prism.report._figures.network_layout import spread
from prism.report._figures.page_figures import GREY, PageFigures, colour_of, tips

_LONGER_SIDE = 440
_MOST_MARK, _LEAST_MARK = 320.0, 6.0
_LEFT = "left"


def draw_picture(picture: Picture, name: str, figures: PageFigures) -> Markup:
    """Draw a picture, and return the element for it on the page.

    Args:
        picture: The picture.
        name: The name of the figure.
        figures: Collects it.
    """
    points = _points(picture)
    agents, colours = _rows(picture, points, figures)
    (left, right), (low, high) = _extent(picture, points)
    across, along = right - left or 1.0, high - low or 1.0
    scale = _LONGER_SIDE / max(across, along)
    x = alt.X("x:Q", scale=alt.Scale(domain=[left, right], nice=False, zero=False), axis=None)
    # the first row is at the top
    y_scale = alt.Scale(domain=[low, high], nice=False, zero=False, reverse=True)
    y = alt.Y("y:Q", scale=y_scale, axis=None)
    area = min(max((_LONGER_SIDE / sqrt(len(points) or 1) * 0.5) ** 2, _LEAST_MARK), _MOST_MARK)
    shape = "circle"
    if picture.space == "grid":
        area, shape = max((scale * 0.9) ** 2, _LEAST_MARK), "square"

    largest = max((size for size in picture.sizes), default=1.0) or 1.0
    unit = area / largest if picture.space == "grid" else area
    marks = (
        alt.Chart(agents)
        .mark_point(shape=shape, filled=True, opacity=1)
        .encode(
            x,
            y,
            color=figures.colour("colour", colours, legend=not all(map(HEX.fullmatch, colours))),
            size=alt.Size(
                "size:Q",
                scale=alt.Scale(domain=[0, largest], range=[0, unit * largest]),
                legend=None,
            ),
            tooltip=tips("agent", "state", "label"),
        )
    )
    layers: list[alt.Chart] = []
    if picture.edges:
        lines = alt.Chart(_lines(picture.edges, points)).mark_rule(
            color=GREY, opacity=0.6, strokeWidth=0.8
        )
        layers = [lines.encode(x, y, x2="x2:Q", y2="y2:Q")]

    chart: alt.LayerChart = alt.LayerChart(layer=[*layers, marks])
    sized = chart.properties(width=round(across * scale), height=round(along * scale))

    return figures.add_chart(f"picture-{name}", sized, _about(picture), stretches=False)


def _about(picture: Picture) -> str:
    where = {"grid": "in their cells", "plane": "where they are", "network": "in their network"}
    return f"The agents {where.get(picture.space, 'in rows')}, after round {picture.round}"


def _points(picture: Picture) -> Sequence[Point | None]:
    if any(place is not None for place in picture.places):
        return picture.places
    if picture.space in ("grid", "plane"):
        return picture.places
    if picture.space == "network":
        return spread(len(picture.agents), tuple(picture.edges))

    width = ceil(sqrt(len(picture.agents) or 1))
    return [(float(place % width), float(place // width)) for place in range(len(picture.agents))]


def _extent(picture: Picture, points: Sequence[Point | None]) -> tuple[Point, Point]:
    """Return the ends of both axes, which for a space are the same in every round."""
    if picture.space == "grid":
        return (-0.5, picture.width - 0.5), (-0.5, picture.height - 0.5)
    if picture.space == "plane":
        return (0.0, picture.width), (0.0, picture.height)

    there = [point for point in points if point is not None] or [(0.0, 0.0)]
    xs, ys = [point[0] for point in there], [point[1] for point in there]
    return (min(xs) - 0.5, max(xs) + 0.5), (min(ys) - 0.5, max(ys) + 0.5)


def _rows(
    picture: Picture, points: Sequence[Point | None], figures: PageFigures
) -> tuple[pl.DataFrame, Mapping[str, str]]:
    """Return a row for each agent with a position, and the colours by their meanings."""
    shown = [_short(state or _LEFT) for state in picture.states]
    of_states, of_groups = figures.state_colours(shown), _group_colours(picture)
    told = zip(
        picture.agents, shown, points, picture.colours, picture.sizes, picture.labels, strict=True
    )
    rows: list[dict[str, Any]] = []
    colours: dict[str, str] = {}
    for agent, state, point, group, size, label in told:
        if point is None or (state == _LEFT and state not in of_states):
            continue
        key = state if group is None else _short(group)
        colours[key] = of_states.get(state, GREY) if group is None else of_groups[group]
        texts = {"colour": key, "agent": _short(agent), "state": state, "label": _short(label)}
        rows.append({"x": point[0], "y": point[1], "size": size, **texts})

    order = {name: colours[name] for name in [*of_states, *colours] if name in colours}
    numbers = dict.fromkeys(("x", "y", "size"), pl.Float64)
    words = dict.fromkeys(("colour", "agent", "state", "label"), pl.String)

    return pl.DataFrame(rows, {**numbers, **words}), order


def _group_colours(picture: Picture) -> Mapping[str, str]:
    """Return the agents' own colours, and one for the name of each group."""
    own = {each: each for each in picture.colours if each is not None and HEX.fullmatch(each)}
    return own | {each: colour_of(place) for place, each in enumerate(picture.groups, start=1)}


def _short(text: str) -> str:
    return showable(text)[:MOST_CHARACTERS]


def _lines(edges: Sequence[tuple[int, int]], points: Sequence[Point | None]) -> pl.DataFrame:
    ends = ((points[one], points[other]) for one, other in edges)
    rows = [(*one, *other) for one, other in ends if one is not None and other is not None]
    return pl.DataFrame(rows, ["x", "y", "x2", "y2"], orient="row")

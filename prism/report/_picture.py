"""A picture of a world: cells, positions or a network, with each agent in its colour."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, sqrt
from typing import Any

import altair as alt
import orjson

from prism.report._drawing import CATEGORIES
from prism.report._layout import spread
from prism.report._table import Rows, short

PICTURES = """
select run, round, space, width, height, agent_ids, state_names, agent_states, places, edges,
       colours, sizes, labels
from events where event = 'agents.pictured'
qualify line in (min(line) over (partition by run), max(line) over (partition by run))
order by run, line
"""
"""The first picture of each run, which names the agents, and the last one."""

GROUPS = """
select run, colour from (
    select run, line, unnest(try_cast(colours as varchar[])) as colour from events
    where event = 'agents.pictured')
where colour is not null and not regexp_full_match(colour, '#[0-9a-fA-F]{6}')
group by run, colour order by run, min(line), colour
"""
"""The names by which pictures colour agents, in the order of their first appearance."""

_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_SIDE = 440
_MOST_MARK, _LEAST_MARK = 320.0, 6.0
_LEFT = "left"

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Picture:
    """The agents of a world at the end of a round; lists have a value for each of them.

    Args:
        round: The round; 0 before the first.
        space: ``grid``, ``plane``, ``network``, or none.
        width: Cells in a row, or the width of a plane.
        height: Rows, or the height of a plane.
        agents: Their ids.
        states: Their states; None for one that has left.
        places: Their positions; None for an agent without one. Empty for a network.
        edges: Pairs of connected agents.
        colours: Their own colours or groups.
        sizes: Their sizes.
        labels: Their labels.
        groups: Names of groups, of which each keeps its colour in all pictures of a run.
    """

    round: int
    space: str
    width: float
    height: float
    agents: Sequence[str]
    states: Sequence[str | None]
    places: Sequence[Point | None]
    edges: Sequence[tuple[int, int]]
    colours: Sequence[str | None]
    sizes: Sequence[float]
    labels: Sequence[str]
    groups: Sequence[str] = ()


def picture_of(
    first: Mapping[str, Any], row: Mapping[str, Any], groups: Sequence[str] = ()
) -> Picture | None:
    """Read a picture from its row of ``events`` and from the first of its run.

    Args:
        first: That row, which names the agents.
        row: The row.
        groups: The names of groups.

    Returns:
        None if a line is damaged, or prism did not write it.
    """
    try:
        agents = [str(agent) for agent in first["agent_ids"]]
        count, names, width = len(agents), row["state_names"], float(row["width"] or 1)
        states = [None if each is None else str(names[each]) for each in _list(row, "agent_states")]
        edges = _list(row if row["edges"] is not None else first, "edges")
        return Picture(
            round=int(row["round"]),
            space=row["space"] or "",
            width=width,
            height=float(row["height"] or 1),
            agents=agents,
            states=_whole(states, count),
            places=_whole([_point(each, width) for each in _list(row, "places")], count),
            edges=[(one, other) for one, other in edges if max(one, other) < count],
            colours=_whole(_list(row, "colours"), count),
            sizes=_whole([_size(each) for each in _list(row, "sizes")], count, 1.0),
            labels=_whole(row["labels"] or [], count, ""),
            groups=groups,
        )
    except (ValueError, TypeError, IndexError):
        return None


def _list(row: Mapping[str, Any], name: str) -> list[Any]:
    found = orjson.loads(row[name] or "[]") if not isinstance(row[name], list) else row[name]
    if not isinstance(found, list):
        raise ValueError(f"{name} is no list")
    return found


def _point(place: Any, width: float) -> Point | None:
    if place is None:
        return None
    if isinstance(place, int):
        row, column = divmod(place, int(width))
        return float(column), float(row)

    x, y = place
    return float(x), float(y)


def _size(size: Any) -> float:
    return float(size) if isfinite(size) and size >= 0 else 1.0


def _whole(values: Sequence[Any], count: int, default: Any = None) -> Sequence[Any]:
    """Return a value for each agent from a list that may be missing."""
    if values and len(values) != count:
        raise ValueError("a list of another length")
    return values or [default] * count


def draw_picture(picture: Picture, states: Sequence[str]) -> alt.TopLevelMixin:
    """Draw a picture.

    Args:
        picture: The picture.
        states: All states of the page, in the order of their colours.
    """
    points = _points(picture)
    (left, right), (low, high) = _extent(picture, points)
    across, along = right - left or 1.0, high - low or 1.0
    scale = _SIDE / max(across, along)
    x = alt.X("x:Q", scale=alt.Scale(domain=[left, right], nice=False, zero=False), axis=None)
    # the first row is at the top
    y_scale = alt.Scale(domain=[low, high], nice=False, zero=False, reverse=True)
    y = alt.Y("y:Q", scale=y_scale, axis=None)
    area = min(max((_SIDE / sqrt(len(points) or 1) * 0.5) ** 2, _LEAST_MARK), _MOST_MARK)
    largest = max(picture.sizes, default=1.0) or 1.0
    shape, most = "circle", area * largest
    if picture.space == "grid":
        shape, most = "square", max((scale * 0.9) ** 2, _LEAST_MARK)
    rows = _rows(picture, points)
    marks = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(shape=shape, filled=True, opacity=1)
        .encode(
            x,
            y,
            _colour(rows, picture, states),
            alt.Size("size:Q", scale=alt.Scale(domain=[0, largest], range=[0, most]), legend=None),
            tooltip=[alt.Tooltip(f"{name}:N") for name in ("agent", "state", "label")],
        )
    )
    ends = [(points[one], points[other]) for one, other in picture.edges]
    edges = [{"x": a[0], "y": a[1], "x2": b[0], "y2": b[1]} for a, b in ends if a and b is not None]
    lines = alt.Chart(alt.InlineData(values=edges)).mark_rule(opacity=0.6, strokeWidth=0.8)
    where = {"grid": "in their cells", "plane": "where they are", "network": "in their network"}
    about = f"The agents {where.get(picture.space, 'in rows')}, after round {picture.round}"
    chart: alt.TopLevelMixin = alt.layer(
        lines.encode(x, y, alt.X2("x2:Q"), alt.Y2("y2:Q")), marks
    ).properties(width=round(across * scale), height=round(along * scale), description=about)

    return chart


def _points(picture: Picture) -> Sequence[Point | None]:
    is_placed = any(place is not None for place in picture.places)
    if is_placed or picture.space in ("grid", "plane"):
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


def _rows(picture: Picture, points: Sequence[Point | None]) -> Rows:
    """Return a row for each agent that is somewhere."""
    columns = (picture.states, points, picture.colours, picture.sizes, picture.labels)
    return [
        {
            **{"x": point[0], "y": point[1], "size": size, "agent": short(agent)},
            **{"state": short(state or _LEFT), "label": short(str(label))},
            "colour": short(colour or state or _LEFT),
        }
        for agent, state, point, colour, size, label in zip(picture.agents, *columns, strict=True)
        if point is not None and state is not None
    ]


def _colour(rows: Rows, picture: Picture, states: Sequence[str]) -> alt.Color:
    """Return the colours: of states, of groups, or agents' own, which are never named."""
    drawn = {row["colour"] for row in rows}
    own = sorted(filter(_HEX.fullmatch, drawn))
    names = [*states, *(group for group in map(short, picture.groups) if group not in states)]
    legend = (
        alt.Legend(values=[name for name in names if name in drawn]) if drawn - {*own} else None
    )
    if not own:
        return alt.Color("colour:N", scale=alt.Scale(domain=names), legend=legend)

    colours = [CATEGORIES[place % len(CATEGORIES)] for place in range(len(names))]
    scale = alt.Scale(domain=[*names, *own], range=[*colours, *own])
    return alt.Color("colour:N", scale=scale, legend=legend)

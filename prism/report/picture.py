"""A picture of a world: cells, positions or a network, with each agent in its colour."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil, cos, pi, sin, sqrt
from typing import Any

import altair as alt
import orjson

from prism.analysis import Log, rows_of
from prism.report.drawing import CATEGORIES
from prism.report.table import Rows, short

_PICTURES = """
with pictures as (
    select * from events
    where event = 'agents.pictured' and ($number is null or round <= $number)
)
select round, space, width, height, state_names, agent_states, places, colours,
       (select arg_max(agent_ids, line) from pictures where agent_ids is not null) as agent_ids,
       (select arg_max(edges, line) from pictures where edges is not null) as edges
from pictures order by line desc limit 1
"""
"""The last picture up to a round; agents and edges are named when they have changed."""

_GROUPS = """
select colour from (
    select line, unnest(try_cast(colours as varchar[])) as colour from events
    where event = 'agents.pictured')
where colour is not null and not regexp_full_match(colour, '#[0-9a-fA-F]{6}')
group by colour order by min(line), colour
"""
"""The names by which pictures colour agents, in the order of their first appearance."""

_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_SIDE = 440
_MOST_MARK, _LEAST_MARK = 320.0, 6.0

Point = tuple[float, float]


def picture(log: Log, states: Sequence[str], number: int | None = None) -> alt.TopLevelMixin | None:
    """Draw the world after a round; nothing if the log has no picture of it, or a damaged one.

    Args:
        log: The log, of one run.
        states: All states of the page, in the order of their colours.
        number: The round; by default the last.
    """
    rows = rows_of(log.sql(_PICTURES, number=number))
    if not rows:
        return None

    groups = [short(row["colour"]) for row in rows_of(log.sql(_GROUPS))]
    names = [*states, *(group for group in groups if group not in states)]
    try:
        return _drawn(rows[0], names)
    except (ValueError, TypeError, IndexError, KeyError):  # prism did not write it
        return None


def _drawn(row: Mapping[str, Any], names: Sequence[str]) -> alt.TopLevelMixin:
    agents = [str(agent) for agent in row["agent_ids"]]
    edges = [(one, other) for one, other in _list(row, "edges")]
    points = _points(row, len(agents), edges)
    left, right, low, high = _extent(row, points)
    scale = _SIDE / max(right - left, high - low, 1e-9)
    x = alt.X("x:Q", scale=alt.Scale(domain=[left, right], nice=False, zero=False), axis=None)
    # the first row is at the top
    down = alt.Scale(domain=[low, high], nice=False, zero=False, reverse=True)
    y = alt.Y("y:Q", scale=down, axis=None)
    ends = [(points[one], points[other]) for one, other in edges]
    lines = [{"x": a[0], "y": a[1], "x2": b[0], "y2": b[1]} for a, b in ends if a and b]
    rules = alt.Chart(alt.InlineData(values=lines)).mark_rule(opacity=0.6, strokeWidth=0.8)
    dots = _dots(_marks(agents, row, points), row["space"] == "grid", scale, names)
    drawn: alt.TopLevelMixin = alt.layer(
        rules.encode(x, y, alt.X2("x2:Q"), alt.Y2("y2:Q")), dots.encode(x, y)
    ).properties(
        width=max(round((right - left) * scale), 1),
        height=max(round((high - low) * scale), 1),
        description=f"The agents after round {row['round']}",
    )
    return drawn


def _points(
    row: Mapping[str, Any], count: int, edges: Sequence[tuple[int, int]]
) -> Sequence[Point | None]:
    if row["space"] == "network":
        return spread(count, tuple(edges))
    places = _list(row, "places") or [None] * count
    points = [_point(each, float(row["width"] or 1)) for each in places]
    if any(points) or row["space"] in ("grid", "plane"):
        return points
    across = ceil(sqrt(count or 1))
    return [(float(index % across), float(index // across)) for index in range(count)]


def _extent(
    row: Mapping[str, Any], points: Sequence[Point | None]
) -> tuple[float, float, float, float]:
    """Return the ends of both axes, which for a space are the same in every round."""
    width, height = float(row["width"] or 1), float(row["height"] or 1)
    if row["space"] == "grid":
        return -0.5, width - 0.5, -0.5, height - 0.5
    if row["space"] == "plane":
        return 0.0, width, 0.0, height
    xs, ys = zip(*([point for point in points if point is not None] or [(0.0, 0.0)]), strict=True)
    return min(xs) - 0.5, max(xs) + 0.5, min(ys) - 0.5, max(ys) + 0.5


def _dots(marks: Rows, is_grid: bool, scale: float, names: Sequence[str]) -> alt.Chart:
    """Draw agents, as large as their cells or as there is room for."""
    area = min(max((_SIDE / sqrt(len(marks) or 1) * 0.5) ** 2, _LEAST_MARK), _MOST_MARK)
    dots = alt.Chart(alt.InlineData(values=marks)).mark_point(
        shape="square" if is_grid else "circle",
        filled=True,
        opacity=1,
        size=max((scale * 0.9) ** 2, _LEAST_MARK) if is_grid else area,
    )
    drawn: alt.Chart = dots.encode(
        _colour(marks, names), tooltip=[alt.Tooltip(f"{name}:N") for name in ("agent", "state")]
    )
    return drawn


def _list(row: Mapping[str, Any], name: str) -> list[Any]:
    return list(orjson.loads(row[name] or "[]"))


def _point(position: Any, width: float) -> Point | None:
    if position is None:
        return None
    if isinstance(position, int):
        row, column = divmod(position, int(width))
        return float(column), float(row)

    x, y = position
    return float(x), float(y)


def _marks(agents: Sequence[str], row: Mapping[str, Any], points: Sequence[Point | None]) -> Rows:
    """Return a mark for each agent that is somewhere."""
    count = len(agents)
    columns = [_list(row, name) or [None] * count for name in ("agent_states", "colours")]
    marks = []
    for agent, point, state, colour in zip(agents, points, *columns, strict=True):
        if point is None or state is None:
            continue
        name = str(row["state_names"][state])
        marks.append(
            {
                **{"x": point[0], "y": point[1], "agent": short(agent), "state": short(name)},
                "colour": short(colour or name),
            }
        )
    return marks


def _colour(marks: Rows, names: Sequence[str]) -> alt.Color:
    """Return the colours: of states, of groups, or agents' own, which are never named."""
    drawn = {each["colour"] for each in marks}
    literal = sorted(filter(_HEX.fullmatch, drawn))
    named = [name for name in names if name in drawn]
    legend = alt.Legend(values=named) if named else None
    if not literal:
        return alt.Color("colour:N", scale=alt.Scale(domain=list(names)), legend=legend)

    colours = [CATEGORIES[index % len(CATEGORIES)] for index in range(len(names))]
    scale = alt.Scale(domain=[*names, *literal], range=[*colours, *literal])
    return alt.Color("colour:N", scale=scale, legend=legend)


_STEPS = 20
_PULL = 0.45

Edges = tuple[tuple[int, int], ...]


@lru_cache(maxsize=8)
def spread(count: int, edges: Edges) -> Sequence[Point]:
    """Return a position for each agent, nearer to its neighbours than to others.

    Each agent is pulled from its place on a circle to the middle of its neighbours, as in Tutte's
    drawing (1963), so no random numbers are involved and two agents hardly ever coincide.

    Args:
        count: Number of agents.
        edges: Pairs of connected agents.
    """
    near: list[list[int]] = [[] for _ in range(count)]
    for one, other in edges:
        near[one].append(other)
        near[other].append(one)
    size, turn = sqrt(count), 2 * pi / (count or 1)
    circle = [(size * cos(turn * index), size * sin(turn * index)) for index in range(count)]
    points = circle
    for _ in range(_STEPS):
        points = [
            _pulled(home, [points[each] for each in others])
            for home, others in zip(circle, near, strict=True)
        ]
    return points


def _pulled(home: Point, others: Sequence[Point]) -> Point:
    if not others:
        return home
    x, y = (sum(values) / len(others) for values in zip(*others, strict=True))
    return home[0] + _PULL * (x - home[0]), home[1] + _PULL * (y - home[1])

"""The positions and looks of a world's agents, as logged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import orjson

from prism.errors import InputError
from prism.runlog._prompts import read_line
from prism.runlog._reader import read_blocks
from prism.telemetry.events import AGENTS_PICTURED

HEX = re.compile(r"#[0-9a-fA-F]{6}")
"""A colour, where any other text is the name of a group."""

MARK = f'"{AGENTS_PICTURED}"'.encode()

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
        groups: Names of groups, in the order of their first appearance in the run's pictures, so
            that each keeps its colour.
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


def last_picture(log: Path) -> Picture | None:
    """Return the last picture of a log that can be drawn, or None."""
    first = last = None
    groups: dict[str, None] = {}
    try:
        for block in read_blocks(log):
            place = block.data.find(MARK)
            while place >= 0:
                last = line_at(block.data, place)
                first = first or last
                groups.update(dict.fromkeys(groups_in(last)))
                place = block.data.find(MARK, place + 1)
    except (InputError, OSError):  # the notes on the log report unreadable parts
        return None

    return None if first is None or last is None else read_picture(first, last, [*groups])


def groups_in(line: bytes) -> list[str]:
    """Return the names by which a picture colours agents, apart from colours themselves."""
    told = read_line(line) or {} if b'"colours"' in line else {}
    names = told.get("colours")
    given = {each for each in names if isinstance(each, str)} if isinstance(names, list) else set()
    return sorted(each for each in given if not HEX.fullmatch(each))


def line_at(data: bytes, place: int) -> bytes:
    """Return the line at a position of a file."""
    end = data.find(b"\n", place)
    return data[data.rfind(b"\n", 0, place) + 1 : end if end >= 0 else len(data)]


def read_picture(first: bytes, line: bytes, groups: Sequence[str] = ()) -> Picture | None:
    """Read a picture from its line and from the first of its run, which names the agents.

    Args:
        first: That line.
        line: The line.
        groups: The names of all groups of the run so far, from `groups_in`.

    Returns:
        None if a line is damaged, or prism did not write it.
    """
    try:
        named, told = orjson.loads(first), orjson.loads(line)
        return replace(_picture(named, told), groups=groups or groups_in(line))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None


def _edges(named: Mapping[str, Any], told: Mapping[str, Any], agents: int) -> list[tuple[int, int]]:
    """Return the edges between known agents, which are told again where they have changed."""
    edges = told["edges"] if "edges" in told else named.get("edges", ())
    return [(one, other) for one, other in edges if max(one, other) < agents]


def _picture(named: Mapping[str, Any], told: Mapping[str, Any]) -> Picture:
    agents = [str(agent) for agent in named["agent_ids"]]
    count, names = len(agents), told["state_names"]
    states = [None if place is None else str(names[place]) for place in told["agent_states"]]
    width, height = (float(told.get(side) or 1) for side in ("width", "height"))
    return Picture(
        round=int(told["round"]),
        space=told.get("space") or "",
        width=width,
        height=height,
        agents=agents,
        states=_whole(states, count),
        places=_whole([_point(each, width) for each in told.get("places", [])], count),
        edges=_edges(named, told, count),
        colours=_whole(told.get("colours", []), count, None),
        sizes=_whole([_size(each) for each in told.get("sizes", [])], count, 1.0),
        labels=_whole([str(each) for each in told.get("labels", [])], count, ""),
    )


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

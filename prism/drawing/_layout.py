"""The positions of a diagram's boxes, arrows and labels: a layered layout, from top to bottom.

The method is that of Sugiyama, Tagawa and Toda (1981):

1. Arrows that close a cycle are reversed, so that all arrows lead down.
2. Boxes are put into layers. Between any two layers of boxes lies a layer of labels.
3. An arrow gets a dummy node in every layer that it passes; one of them carries its label.
4. Each layer is ordered so that few arrows cross.
5. Nodes get their coordinates, and arrows the points that they run through.

An arrow runs straight down through a layer and bends only in the gaps between layers, so it never
crosses a box, and no two labels overlap. Unconnected parts are laid out separately and placed side
by side. The same input always gives the same picture.

No package does this well enough. The closest, fast-sugiyama 0.5.3, has one spacing for all
nodes, whatever their size, and does not put the initial state at the top: the social chart comes
out three times as wide. It has no wheel for Linux on ARM, for musl or for glibc before 2.34.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from typing import NamedTuple

SPACING = 18.0
"""The space between two boxes of a layer."""

_DUMMY_WIDTH = 10.0
_MIN_GAP, _MAX_GAP, _GAP_PER_SHIFT = 20.0, 64.0, 0.12
_PORT_MARGIN, _PORT_SPACING = 12.0, 15.0
_MAX_SWEEPS, _MAX_VISITS = 12, 60_000
_PULL_LONG, _PULL_SHORT, _PULL_STRAIGHT = 1.0, 8.0, 600.0

Point = tuple[float, float]


class Box(NamedTuple):
    """A box to place; ``right_margin`` is kept free for arrows from the box to itself."""

    width: float
    height: float
    right_margin: float = 0.0


class Link(NamedTuple):
    """An arrow to place, from one box to another by their numbers, with the size of its label."""

    source: int
    target: int
    width: float = 0.0
    height: float = 0.0


class Route(NamedTuple):
    """The path of an arrow from source to target.

    Args:
        points: An even number of points. A straight vertical line joins the two points of each
            pair; a curve that leaves and arrives vertically joins one pair to the next.
        label: Centre of the label.
    """

    points: tuple[Point, ...]
    label: Point


@dataclass(slots=True, eq=False)
class Node:
    """A placed box, which may be wider than requested for its arrows, or a dummy node.

    It extends by ``left`` and ``right`` from its x. ``pull`` is how strongly a dummy node attracts
    its neighbours; it is 0 for a box. ``index`` is its number in its layer.
    """

    left: float
    right: float
    height: float
    layer: int
    pull: float = 0.0
    above: list[Node] = field(default_factory=list)
    below: list[Node] = field(default_factory=list)
    index: int = 0
    x: float = 0.0
    y: float = 0.0


class Layout(NamedTuple):
    """A finished layout: its size, and the boxes and routes in the order in which they came."""

    width: float
    height: float
    boxes: tuple[Node, ...]
    routes: tuple[Route, ...]


_Row = list[Node]


class _Chain(NamedTuple):
    """An arrow as nodes from top to bottom; one of them carries the label."""

    nodes: _Row
    label: Node
    is_reversed: bool


def lay_out(boxes: Sequence[Box], links: Sequence[Link]) -> Layout:
    """Place boxes and arrows.

    Args:
        boxes: The boxes; earlier ones are higher up if the arrows allow it.
        links: The arrows; none may lead from a box to itself.
    """
    rank = _ranks(len(boxes), links)
    nodes = _box_nodes(boxes, links, rank)
    used = [0.0] * (max(node.layer for node in nodes) + 1)
    chains = [_chain(link, nodes, rank, used) for link in links]
    every = [*nodes, *(node for chain in chains for node in chain.nodes[1:-1])]

    # A large diagram gets fewer sweeps: it would take seconds, and nobody can read it anyway.
    sweeps = max(2, min(_MAX_SWEEPS, _MAX_VISITS // len(every)))
    parts = [_ordered(part, sweeps) for part in _parts(every)]
    for part in parts:
        _place_across(part, sweeps)

    rows = _side_by_side(parts)
    _place_down(rows)
    left = min(node.x - node.left for node in every)
    for node in every:
        node.x -= left

    width = max(node.x + node.right for node in every)
    height = max(node.y + node.height / 2 for node in every)
    return Layout(width, height, tuple(nodes), tuple(_routes(chains, rows)))


def _ranks(size: int, links: Sequence[Link]) -> list[int]:
    """Return the rank of each box in a depth-first search: the box that it leaves last is first.

    A link to a box of a lower rank closes a cycle; all others lead to a higher rank.
    """
    targets: list[list[int]] = [[] for _ in range(size)]
    for link in links:
        targets[link.source].append(link.target)

    left, entered = dict[int, int](), set[int]()
    waiting = [*reversed(range(size))]
    while waiting:
        box = waiting[-1]
        if box in entered:
            left.setdefault(waiting.pop(), size - len(left))
        else:
            entered.add(box)
            waiting += (target for target in reversed(targets[box]) if target not in entered)

    return [left[box] for box in range(size)]


def _box_nodes(boxes: Sequence[Box], links: Sequence[Link], rank: Sequence[int]) -> list[Node]:
    """Return the boxes in their layers, each two below the lowest box above it."""
    by_rank = sorted(range(len(boxes)), key=rank.__getitem__)
    ends = [sorted((link.source, link.target), key=rank.__getitem__) for link in links]
    below: list[list[int]] = [[] for _ in boxes]
    for upper, lower in ends:
        below[upper].append(lower)

    layers = [0] * len(boxes)
    for upper in by_rank:
        for lower in below[upper]:
            layers[lower] = max(layers[lower], layers[upper] + 2)

    out, into = Counter(upper for upper, _ in ends), Counter(lower for _, lower in ends)
    nodes = []
    for number, box in enumerate(boxes):
        # A box without incoming arrows would stay at the top, however far down its targets are.
        if below[number] and not into[number]:
            layers[number] = min(layers[lower] for lower in below[number]) - 2
        ports = max(out[number], into[number])
        least = 2 * _PORT_MARGIN + _PORT_SPACING * (ports - 1) if ports > 1 else 0.0
        half = max(box.width, least) / 2
        nodes.append(Node(half, half + box.right_margin, box.height, layers[number]))

    return nodes


def _chain(link: Link, boxes: _Row, rank: Sequence[int], used: list[float]) -> _Chain:
    """Join two boxes by a dummy node for each layer between them."""
    upper, lower = sorted((link.source, link.target), key=rank.__getitem__)
    between = range(boxes[upper].layer + 1, boxes[lower].layer)
    labelled = min(between[::2], key=lambda layer: used[layer])  # where most room is left
    pull = _PULL_SHORT if len(between) == 1 else _PULL_LONG
    chain = [boxes[upper]]

    for layer in between:
        width, height = (link.width, link.height) if layer == labelled else (0.0, 0.0)
        half = max(width, _DUMMY_WIDTH) / 2
        chain.append(Node(half, half, height, layer, pull))
        used[layer] += 2 * half + SPACING

    chain.append(boxes[lower])
    for one, other in pairwise(chain):
        one.below.append(other)
        other.above.append(one)

    return _Chain(chain, chain[labelled - boxes[upper].layer], upper == link.target)


def _parts(nodes: _Row) -> list[_Row]:
    """Return the connected parts, each depth first, so that near nodes start out close together."""
    order = {node: index for index, node in enumerate(_walk(nodes, lambda node: node.below))}
    parts: list[_Row] = []
    visited = set[Node]()
    for start in order:
        if start not in visited:
            part = _walk([start], lambda node: node.above + node.below)
            parts.append(sorted(part, key=order.__getitem__))
            visited.update(part)

    return parts


def _walk(starts: _Row, ahead: Callable[[Node], _Row]) -> _Row:
    reached: dict[Node, None] = {}
    waiting = starts[::-1]
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached[node] = None
            waiting += reversed(ahead(node))

    return list(reached)


def _ordered(part: _Row, sweeps: int) -> list[_Row]:
    """Return the layers of a part, sorted by barycentres on the way down and up in turn."""
    rows: list[_Row] = [[] for _ in range(max(node.layer for node in part) + 1)]
    for node in part:
        node.index = len(rows[node.layer])
        rows[node.layer].append(node)

    best, fewest = [list(row) for row in rows], _crossings(rows)
    for sweep in range(sweeps):
        is_down = sweep % 2 == 0
        for row in rows if is_down else rows[::-1]:
            row.sort(key=partial(_barycentre, above=is_down))
            for index, node in enumerate(row):
                node.index = index

        crossings = _crossings(rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings

    return best


def _barycentre(node: Node, *, above: bool) -> float:
    near = node.above if above else node.below
    return sum(other.index for other in near) / len(near) if near else node.index


def _crossings(rows: Sequence[_Row]) -> int:
    total = 0
    for row in rows:
        passed: list[int] = []
        for node in row:
            ends = sorted(other.index for other in node.below)
            total += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)

    return total


def _place_across(rows: Sequence[_Row], sweeps: int) -> None:
    """Set every x: near the node's neighbours, in the order of its layer, without overlap."""
    for row in rows:
        _settle(row, lambda _: [])

    for _ in range(sweeps):
        for row in rows:
            _settle(row, lambda node: node.above)
        for row in reversed(rows):
            _settle(row, lambda node: node.below)

    for _ in range(sweeps):
        for row in (*rows, *reversed(rows)):
            _settle(row, lambda node: node.above + node.below)


def _settle(row: _Row, neighbours: Callable[[Node], _Row]) -> None:
    wanted, weights = list[float](), list[float]()
    for node in row:
        pulls = [(other.x, _pull(node, other)) for other in neighbours(node)]
        weight = sum(pull for _, pull in pulls)
        wanted.append(sum(x * pull for x, pull in pulls) / weight if pulls else node.x)
        weights.append(weight or 0.1)

    distances = [one.right + other.left + SPACING for one, other in pairwise(row)]
    for node, x in zip(row, _spread(wanted, weights, distances), strict=True):
        node.x = x


def _pull(one: Node, other: Node) -> float:
    # Between two dummy nodes an arrow should run straight: a bend far from any box looks wrong.
    return _PULL_STRAIGHT if one.pull and other.pull else max(one.pull, other.pull)


def _spread(
    wanted: Sequence[float], weights: Sequence[float], distances: Sequence[float]
) -> list[float]:
    """Place points on a line, in order, each as close as possible to its preferred place.

    The weighted sum of squared deviations is least: an isotonic regression, by pooling adjacent
    violators (Ayer et al., 1955).

    Args:
        wanted: The preferred position of each point.
        weights: How much it matters, each above 0.
        distances: Least distance from each point to the next; one fewer than points.
    """
    offsets = [0.0, *accumulate(distances)]
    pools: list[tuple[float, float, int]] = []
    for preferred, weight, offset in zip(wanted, weights, offsets, strict=False):
        value, total, count = preferred - offset, weight, 1
        while pools and pools[-1][0] > value:
            other, other_total, other_count = pools.pop()
            value = (value * total + other * other_total) / (total + other_total)
            total, count = total + other_total, count + other_count
        pools.append((value, total, count))

    placed = [value for value, _, count in pools for _ in range(count)]
    return [value + offset for value, offset in zip(placed, offsets, strict=False)]


def _side_by_side(parts: Sequence[Sequence[_Row]]) -> list[_Row]:
    """Place every part to the right of those before it; return the layers of all together."""
    rows: list[_Row] = [[] for _ in range(max(map(len, parts)))]
    for part in parts:
        # layer by layer, not as a whole: a part may reach below its neighbour if that is narrow
        beside = [
            row[-1].x + row[-1].right + SPACING - (added[0].x - added[0].left)
            for row, added in zip(rows, part, strict=False)
            if row
        ]
        shift = max(beside, default=0.0)
        for row, added in zip(rows, part, strict=False):
            row += added
            for node in added:
                node.x += shift

    return rows


def _place_down(rows: Sequence[_Row]) -> None:
    """Set every y; the gap below a layer grows with the distance that arrows shift sideways."""
    y = 0.0
    for row in rows:
        height = _height(row)
        for node in row:
            node.y = y + height / 2

        shift = max((abs(node.x - other.x) for node in row for other in node.below), default=0.0)
        y += height + min(_MAX_GAP, _MIN_GAP + _GAP_PER_SHIFT * shift)


def _height(row: _Row) -> float:
    return max((node.height for node in row), default=0.0)


def _routes(chains: Sequence[_Chain], rows: Sequence[_Row]) -> Iterator[Route]:
    starts, ends = _ports(chains, 0, 1), _ports(chains, -1, -2)
    half_heights = [_height(row) / 2 for row in rows]

    for chain, start, end in zip(chains, starts, ends, strict=True):
        first, *dummies, last = chain.nodes
        # Beside a taller box of its layer, an arrow runs straight until it is clear of that box.
        points = [
            (start, first.y + first.height / 2),
            (start, first.y + half_heights[first.layer]),
            *(
                (node.x, node.y + side * half_heights[node.layer])
                for node in dummies
                for side in (-1, 1)
            ),
            (end, last.y - half_heights[last.layer]),
            (end, last.y - last.height / 2),
        ]
        route = points[::-1] if chain.is_reversed else points
        yield Route(tuple(route), (chain.label.x, chain.label.y))


def _ports(chains: Sequence[_Chain], end: int, nearest: int) -> list[float]:
    """Return the x at which each arrow meets the box at one end.

    If other arrows leave room, it is the x of the nearest dummy node.
    """
    meeting: dict[Node, list[tuple[float, int]]] = {}
    for number, chain in enumerate(chains):
        meeting.setdefault(chain.nodes[end], []).append((chain.nodes[nearest].x, number))

    ports = [0.0] * len(chains)
    for box, wanted in meeting.items():
        wanted.sort()
        # a box is wide enough for all of its arrows
        room, gaps = max(0.0, box.left - _PORT_MARGIN), len(wanted) - 1
        slack = 2 * room - _PORT_SPACING * gaps
        placed = _spread([x for x, _ in wanted], [1.0] * len(wanted), [_PORT_SPACING] * gaps)
        for index, (x, (_, number)) in enumerate(zip(placed, wanted, strict=True)):
            least = box.x - room + _PORT_SPACING * index
            ports[number] = min(max(x, least), least + slack)

    return ports

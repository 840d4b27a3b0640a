"""The places of a diagram's boxes, arrows and labels: a layered layout, from top to bottom.

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
from graphlib import TopologicalSorter
from itertools import pairwise

_DUMMY_WIDTH = 10.0
_SPACING = 18.0
_MIN_GAP, _MAX_GAP, _GAP_PER_SHIFT = 20.0, 64.0, 0.12
_PORT_MARGIN, _PORT_SPACING = 12.0, 15.0
_MAX_SWEEPS, _MAX_VISITS = 12, 60_000
_PULL_LONG, _PULL_SHORT, _PULL_STRAIGHT = 1.0, 8.0, 600.0

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A box to place; ``right_margin`` is kept free for arrows from the box to itself."""

    width: float
    height: float
    right_margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Link:
    """An arrow to place, from one box to another by their numbers, with the size of its label."""

    source: int
    target: int
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True, slots=True)
class Placed:
    """A box by its centre; it may be wider than requested, to have room for its arrows."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> float:
        """Left edge."""
        return self.x - self.width / 2


@dataclass(frozen=True, slots=True)
class Route:
    """The way of an arrow from source to target.

    Args:
        points: An even number of points. A curve that leaves and arrives vertically joins the two
            points of each pair; a straight line joins one pair to the next.
        label: Centre of the label.
    """

    points: tuple[Point, ...]
    label: Point


@dataclass(frozen=True, slots=True)
class Layout:
    """A finished layout: its size, and the boxes and routes in the order in which they came."""

    width: float
    height: float
    boxes: tuple[Placed, ...]
    routes: tuple[Route, ...]


@dataclass(slots=True, eq=False)
class _Node:
    """A box or a dummy node, which extends by ``left`` and ``right`` from its x.

    ``pull`` is how strongly a dummy node attracts its neighbours; it is 0 for a box.
    """

    left: float
    right: float
    height: float
    layer: int
    pull: float = 0.0
    above: list[_Node] = field(default_factory=list)
    below: list[_Node] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0


_Row = list[_Node]


@dataclass(slots=True)
class _Chain:
    """An arrow as nodes from top to bottom; one of them carries the label."""

    nodes: _Row
    label: _Node
    is_reversed: bool


def lay_out(boxes: Sequence[Box], links: Sequence[Link]) -> Layout:
    """Place boxes and arrows.

    Args:
        boxes: The boxes; earlier ones are placed higher if the arrows allow it.
        links: The arrows; none may lead from a box to itself.
    """
    back = _back_links(len(boxes), links)
    ends = [
        (link.target, link.source) if number in back else (link.source, link.target)
        for number, link in enumerate(links)
    ]

    nodes = _box_nodes(boxes, ends)
    used = [0.0] * (max(node.layer for node in nodes) + 1)
    chains = []
    for number, (link, (upper, lower)) in enumerate(zip(links, ends, strict=True)):
        chain = _chain(link, nodes[upper], nodes[lower], used, is_reversed=number in back)
        chains.append(chain)
        nodes += chain.nodes[1:-1]

    # A large diagram gets fewer sweeps: it would take seconds, and nobody can read it anyway.
    sweeps = max(2, min(_MAX_SWEEPS, _MAX_VISITS // len(nodes)))
    parts = [_ordered(part, sweeps) for part in _parts(nodes)]
    for part in parts:
        _place_across(part, sweeps)

    rows = _side_by_side(parts)
    _place_down(rows)

    _place_at_the_edge(nodes)

    return Layout(
        max(node.x + node.right for node in nodes),
        max(node.y + node.height / 2 for node in nodes),
        tuple(Placed(node.x, node.y, 2 * node.left, node.height) for node in nodes[: len(boxes)]),
        tuple(_routes(chains, rows)),
    )


def _back_links(size: int, links: Sequence[Link]) -> set[int]:
    """Return the links that lead back to a box on the current path of a depth-first search."""
    leaving: list[list[int]] = [[] for _ in range(size)]
    for number, link in enumerate(links):
        leaving[link.source].append(number)

    back = set[int]()
    entered, left = set[int](), set[int]()

    for start in range(size):
        path = [] if start in entered else [(start, iter(leaving[start]))]
        entered.add(start)
        while path:
            box, ahead = path[-1]
            number = next(ahead, -1)
            if number < 0:
                left.add(box)
                path.pop()
            elif (target := links[number].target) not in entered:
                entered.add(target)
                path.append((target, iter(leaving[target])))
            elif target not in left:
                back.add(number)

    return back


def _box_nodes(boxes: Sequence[Box], ends: Sequence[tuple[int, int]]) -> list[_Node]:
    below, above = (Counter(end[side] for end in ends) for side in (0, 1))
    layers = _layers(len(boxes), ends)
    nodes = []

    for number, box in enumerate(boxes):
        width = box.width
        ports = max(below[number], above[number])
        if ports > 1:
            width = max(width, 2 * _PORT_MARGIN + _PORT_SPACING * (ports - 1))
        nodes.append(_Node(width / 2, width / 2 + box.right_margin, box.height, layers[number]))

    return nodes


def _layers(size: int, ends: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each box: two below the lowest box above it."""
    above: list[list[int]] = [[] for _ in range(size)]
    for upper, lower in ends:
        above[lower].append(upper)

    layers = [0] * size
    for box in TopologicalSorter(dict(enumerate(above))).static_order():
        layers[box] = max((layers[upper] + 2 for upper in above[box]), default=0)

    # A box without incoming arrows would stay at the top, however far down its targets are.
    nearest: dict[int, int] = {}
    for upper, lower in ends:
        if not above[upper]:
            nearest[upper] = min(nearest.get(upper, layers[lower]), layers[lower])

    for box, layer in nearest.items():
        layers[box] = layer - 2

    return layers


def _chain(
    link: Link, upper: _Node, lower: _Node, used: list[float], *, is_reversed: bool
) -> _Chain:
    """Join two boxes by a dummy node for each layer between them."""
    between = range(upper.layer + 1, lower.layer)
    labelled = min(between[::2], key=lambda layer: used[layer])  # where most room is left
    pull = _PULL_SHORT if len(between) == 1 else _PULL_LONG
    chain = [upper]

    for layer in between:
        width, height = (link.width, link.height) if layer == labelled else (0.0, 0.0)
        half = max(width, _DUMMY_WIDTH) / 2
        chain.append(_Node(half, half, height, layer, pull))
        used[layer] += 2 * half + _SPACING

    chain.append(lower)
    for one, other in pairwise(chain):
        one.below.append(other)
        other.above.append(one)

    return _Chain(chain, chain[labelled - upper.layer], is_reversed)


def _parts(nodes: _Row) -> list[_Row]:
    """Return the connected parts, each depth first, so that near nodes start out close together."""
    order = {node: place for place, node in enumerate(_walk(nodes, lambda node: node.below))}
    parts: list[_Row] = []
    seen = set[_Node]()
    for start in order:
        if start not in seen:
            part = _walk([start], lambda node: node.above + node.below)
            parts.append(sorted(part, key=order.__getitem__))
            seen.update(part)

    return parts


def _walk(starts: _Row, ahead: Callable[[_Node], _Row]) -> _Row:
    found: dict[_Node, None] = {}
    waiting = starts[::-1]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += reversed(ahead(node))

    return list(found)


def _ordered(part: _Row, sweeps: int) -> list[_Row]:
    """Return the layers of a part, sorted by barycentres on the way down and up in turn."""
    rows: list[_Row] = [[] for _ in range(max(node.layer for node in part) + 1)]
    for node in part:
        rows[node.layer].append(node)

    best, fewest = [list(row) for row in rows], _crossings(rows)
    for sweep in range(sweeps):
        is_down = sweep % 2 == 0
        for fixed, row in pairwise(rows if is_down else rows[::-1]):
            _sort_by_neighbours(row, fixed, above=is_down)

        crossings = _crossings(rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings

    return best


def _sort_by_neighbours(row: _Row, fixed: _Row, *, above: bool) -> None:
    places = {node: place for place, node in enumerate(fixed)}
    own = {node: float(place) for place, node in enumerate(row)}

    def barycentre(node: _Node) -> float:
        near = node.above if above else node.below
        return sum(places[other] for other in near) / len(near) if near else own[node]

    row.sort(key=barycentre)


def _crossings(rows: Sequence[_Row]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        places = {node: place for place, node in enumerate(lower)}
        passed: list[int] = []
        for node in upper:
            ends = sorted(places[other] for other in node.below)
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


def _settle(row: _Row, neighbours: Callable[[_Node], _Row]) -> None:
    wanted: list[float] = []
    weights: list[float] = []

    for node in row:
        pulls = [(other.x, _pull(node, other)) for other in neighbours(node)]
        weight = sum(pull for _, pull in pulls)
        wanted.append(sum(x * pull for x, pull in pulls) / weight if pulls else node.x)
        weights.append(weight or 0.1)

    distances = [one.right + other.left + _SPACING for one, other in pairwise(row)]
    for node, x in zip(row, spread(wanted, weights, distances), strict=True):
        node.x = x


def _pull(one: _Node, other: _Node) -> float:
    # Between two dummy nodes an arrow should run straight: a bend far from any box looks wrong.
    return _PULL_STRAIGHT if one.pull and other.pull else max(one.pull, other.pull)


def spread(
    wanted: Sequence[float], weights: Sequence[float], distances: Sequence[float]
) -> list[float]:
    """Place points on a line, in order, each as close as possible to its preferred place.

    The weighted sum of squared deviations is least: an isotonic regression, by pooling adjacent
    violators (Ayer et al., 1955).

    Args:
        wanted: Where each point wants to be.
        weights: How much it matters, each above 0.
        distances: Least distance from each point to the next; one fewer than points.
    """
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)

    pools: list[tuple[float, float, int]] = []
    for place, weight, offset in zip(wanted, weights, offsets, strict=False):
        value, total, count = place - offset, weight, 1
        while pools and pools[-1][0] > value:
            other, other_total, other_count = pools.pop()
            value = (value * total + other * other_total) / (total + other_total)
            total, count = total + other_total, count + other_count

        pools.append((value, total, count))

    placed = [value for value, _, count in pools for _ in range(count)]

    return [value + offset for value, offset in zip(placed, offsets, strict=False)]


def spread_within(
    least: float, most: float, wanted: Sequence[float], distance: float
) -> list[float]:
    """Place points as `spread` does, between two bounds, and closer together if necessary."""
    gaps = len(wanted) - 1
    distance = min(distance, (most - least) / max(1, gaps))
    slack = most - least - distance * gaps
    placed = spread(wanted, [1.0] * len(wanted), [distance] * gaps)
    bounds = [least + distance * number for number in range(len(wanted))]

    return [min(max(x, bound), bound + slack) for x, bound in zip(placed, bounds, strict=True)]


def _side_by_side(parts: Sequence[Sequence[_Row]]) -> list[_Row]:
    """Place every part to the right of those before it; return the layers of all together."""
    rows: list[_Row] = [[] for _ in range(max(map(len, parts)))]
    for part in parts:
        # Layer by layer, not as a whole: a part may reach below its neighbour if that is narrow.
        meeting = [(row[-1], added[0]) for row, added in zip(rows, part, strict=False) if row]
        shift = max(
            (left.x + left.right + _SPACING - (right.x - right.left) for left, right in meeting),
            default=0.0,
        )
        for row, added in zip(rows, part, strict=False):
            row += added
            for node in added:
                node.x += shift

    return rows


def _place_down(rows: Sequence[_Row]) -> None:
    """Set every y; the gap below a layer grows with the distance that arrows shift sideways."""
    y = 0.0
    for row in rows:
        height = max((node.height for node in row), default=0.0)
        for node in row:
            node.y = y + height / 2

        shift = max((abs(node.x - other.x) for node in row for other in node.below), default=0.0)
        y += height + min(_MAX_GAP, _MIN_GAP + _GAP_PER_SHIFT * shift)


def _place_at_the_edge(nodes: _Row) -> None:
    left = min(node.x - node.left for node in nodes)
    for node in nodes:
        node.x -= left


def _routes(chains: Sequence[_Chain], rows: Sequence[_Row]) -> Iterator[Route]:
    starts = _ports(chains, 0, 1)
    ends = _ports(chains, -1, -2)
    half_heights = [max((node.height for node in row), default=0.0) / 2 for row in rows]

    for chain, start, end in zip(chains, starts, ends, strict=True):
        points = list(_points(chain, start, end, half_heights))
        if chain.is_reversed:
            points.reverse()

        yield Route(tuple(points), (chain.label.x, chain.label.y))


def _ports(chains: Sequence[_Chain], end: int, nearest: int) -> list[float]:
    """Return the x at which each arrow meets the box at one end.

    If other arrows leave room, it is the x of the nearest dummy node.
    """
    meeting: dict[_Node, list[int]] = {}
    for number, chain in enumerate(chains):
        meeting.setdefault(chain.nodes[end], []).append(number)

    ports = [0.0] * len(chains)
    for box, numbers in meeting.items():
        room = max(0.0, box.left - _PORT_MARGIN)
        wanted = sorted((chains[number].nodes[nearest].x, number) for number in numbers)
        placed = spread_within(box.x - room, box.x + room, [x for x, _ in wanted], _PORT_SPACING)
        for (_, number), x in zip(wanted, placed, strict=True):
            ports[number] = x

    return ports


def _points(
    chain: _Chain, start: float, end: float, half_heights: Sequence[float]
) -> Iterator[Point]:
    """Yield the points of an arrow from top to bottom."""
    first, *dummies, last = chain.nodes

    # Beside a taller box of its layer, an arrow runs straight until it is clear of that box.
    yield start, first.y + first.height / 2
    if first.height / 2 < (half := half_heights[first.layer]):
        yield start, first.y + half
        yield start, first.y + half

    for node in dummies:
        yield node.x, node.y - half_heights[node.layer]
        yield node.x, node.y + half_heights[node.layer]

    if last.height / 2 < (half := half_heights[last.layer]):
        yield end, last.y - half
        yield end, last.y - half
    yield end, last.y - last.height / 2

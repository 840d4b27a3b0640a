"""Placing the boxes and arrows of a diagram, in layers from top to bottom.

The method is that of Sugiyama, Tagawa and Toda (1981): arrows that close a cycle are turned round,
boxes are put into layers so that all arrows lead down, an arrow gets a knot in every layer that it
passes, and the order within the layers is improved until few arrows cross. Between any two layers
of boxes lies one of labels, and a label takes up room as a box does. An arrow runs straight down
through a layer, at a knot of its own, and bends only in the gaps between layers: so it never runs
through a box, and no two labels overlap. Parts that no arrow joins are placed each by itself, and
then beside each other.

Everything is deterministic: the same input gives the same picture.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from prism.drawing._spacing import spread, within

_KNOT_WIDTH = 10.0
_BESIDE = 18.0
_LEAST_GAP, _MOST_GAP, _GAP_PER_SHIFT = 20.0, 64.0, 0.12
_PORT_MARGIN, _PORT_DISTANCE = 12.0, 15.0
_MOST_SWEEPS, _MOST_VISITS = 12, 60_000
_LONG, _SHORT, _STRAIGHT = 1.0, 8.0, 600.0


@dataclass(frozen=True, slots=True)
class Box:
    """A box to place.

    Args:
        width: In pixels, as all lengths here.
        height: Of the box.
        beside: Room to keep on its right, for arrows that lead from the box to itself.
    """

    width: float
    height: float
    beside: float = 0.0


@dataclass(frozen=True, slots=True)
class Link:
    """An arrow to place.

    Args:
        source: Number of the box it starts from.
        target: Number of another box.
        width: Of its label.
        height: Of its label; 0 if it has none.
    """

    source: int
    target: int
    width: float = 0.0
    height: float = 0.0


Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Route:
    """Where an arrow runs: through ``points``, from source to target, straight within a layer.

    Points come in pairs, and each pair is joined by a curve that leaves and arrives vertically;
    from the second point of a pair to the first of the next the arrow runs straight.

    Args:
        points: An even number of points.
        label: Centre of the label.
    """

    points: tuple[Point, ...]
    label: Point


@dataclass(frozen=True, slots=True)
class Placed:
    """A box in its place.

    Args:
        x: Centre of the box.
        y: Centre of the box.
        width: Of the box: what was asked for, or what its arrows need.
        height: Of the box.
    """

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> float:
        """Left edge."""
        return self.x - self.width / 2


@dataclass(frozen=True, slots=True)
class Layout:
    """A finished layout.

    Args:
        width: Of the whole, in pixels.
        height: Of the whole.
        boxes: Every box.
        routes: The route of every arrow.
    """

    width: float
    height: float
    boxes: tuple[Placed, ...]
    routes: tuple[Route, ...]


@dataclass(slots=True)
class _Node:
    """A box, or a knot of an arrow, in its layer; ``pull`` says how hard a knot draws boxes, and is 0 for a box."""

    left: float
    right: float
    height: float
    layer: int
    pull: float = 0.0
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0


@dataclass(slots=True)
class _Chain:
    """An arrow as nodes from top to bottom, its label's among them."""

    nodes: list[int]
    label: int
    turned: bool


def lay_out(boxes: Sequence[Box], links: Sequence[Link]) -> Layout:
    """Place boxes and arrows.

    Args:
        boxes: The boxes; those given first come to stand above, if the arrows allow it.
        links: The arrows; none may lead from a box to itself.
    """
    turned = _turned(len(boxes), links)
    ends = [_downward(link, number in turned) for number, link in enumerate(links)]
    halves = [width / 2 for width in _widths(boxes, ends)]
    nodes = [
        _Node(half, half + box.beside, box.height, layer)
        for box, half, layer in zip(boxes, halves, _layers(len(boxes), ends), strict=True)
    ]
    used = [0.0] * (max(node.layer for node in nodes) + 1)
    chains = [
        _chain(nodes, used, link, turned=number in turned) for number, link in enumerate(links)
    ]
    parts = [_ordered(nodes, part) for part in _parts(nodes)]
    for rows in parts:
        _place_across(nodes, rows)

    rows = _side_by_side(nodes, parts)
    _place_down(nodes, rows)
    left = min(node.x - node.left for node in nodes)
    for node in nodes:
        node.x -= left

    ports = _ports(nodes, chains)

    return Layout(
        max(node.x + node.right for node in nodes),
        max(node.y + node.height / 2 for node in nodes),
        tuple(Placed(node.x, node.y, 2 * node.left, node.height) for node in nodes[: len(boxes)]),
        tuple(_route(nodes, rows, chain, ports[number]) for number, chain in enumerate(chains)),
    )


def _turned(size: int, links: Sequence[Link]) -> set[int]:
    """Find arrows to turn round so that no cycle is left: those that lead back on a depth-first walk."""
    leaving: list[list[int]] = [[] for _ in range(size)]
    for number, link in enumerate(links):
        leaving[link.source].append(number)

    turned: set[int] = set()
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
                turned.add(number)

    return turned


def _downward(link: Link, turned: bool) -> tuple[int, int]:
    return (link.target, link.source) if turned else (link.source, link.target)


def _widths(boxes: Sequence[Box], ends: Sequence[tuple[int, int]]) -> list[float]:
    """Widen boxes until there is room for the arrows on their lower and upper sides."""
    below, above = (Counter(end[side] for end in ends) for side in (0, 1))
    return [
        max(box.width, 2 * _PORT_MARGIN + _PORT_DISTANCE * (max(below[number], above[number]) - 1))
        if max(below[number], above[number]) > 1
        else box.width
        for number, box in enumerate(boxes)
    ]


def _layers(size: int, ends: Sequence[tuple[int, int]]) -> list[int]:
    """Put each box two layers below the lowest above it, and one that nothing leads to close to its targets."""
    below: list[list[int]] = [[] for _ in range(size)]
    waiting = [0] * size
    for upper, lower in ends:
        below[upper].append(lower)
        waiting[lower] += 1

    layers = [0] * size
    sources = [box for box in range(size) if not waiting[box]]
    ready = list(sources)
    while ready:
        box = ready.pop()
        for lower in below[box]:
            layers[lower] = max(layers[lower], layers[box] + 2)
            waiting[lower] -= 1
            if not waiting[lower]:
                ready.append(lower)

    for box in sources:
        layers[box] = min((layers[lower] for lower in below[box]), default=2) - 2

    return layers


def _chain(nodes: list[_Node], used: list[float], link: Link, *, turned: bool) -> _Chain:
    """Add an arrow's knots, with its label where it widens its layer least."""
    upper, lower = _downward(link, turned)
    between = range(nodes[upper].layer + 1, nodes[lower].layer)
    labelled = min(between[::2], key=lambda layer: used[layer])
    pull = _SHORT if len(between) == 1 else _LONG
    chain = [upper]
    for layer in between:
        width, height = (link.width, link.height) if layer == labelled else (0.0, 0.0)
        half = max(width, _KNOT_WIDTH) / 2
        nodes.append(_Node(half, half, height, layer, pull))
        used[layer] += 2 * half + _BESIDE
        chain.append(len(nodes) - 1)

    chain.append(lower)
    for one, next_ in pairwise(chain):
        nodes[one].below.append(next_)
        nodes[next_].above.append(one)

    return _Chain(chain, chain[1 + labelled - between[0]], turned)


def _parts(nodes: Sequence[_Node]) -> list[list[int]]:
    """Tell apart what no arrow joins; each part is in the order of the walk."""
    joined: dict[int, list[int]] = {}
    for number in _walk(nodes):
        ahead, part = [number], joined.get(number, [])
        while ahead:
            near = ahead.pop()
            if near not in joined:
                joined[near] = part
                ahead += (*nodes[near].above, *nodes[near].below)

        joined[number].append(number)

    return list({id(part): part for part in joined.values()}.values())


def _ordered(nodes: Sequence[_Node], part: Sequence[int]) -> list[list[int]]:
    """Order every layer so that few arrows cross: barycentres of the neighbours, layer by layer, down and up again."""
    rows: list[list[int]] = [[] for _ in range(max(nodes[number].layer for number in part) + 1)]
    for number in part:
        rows[nodes[number].layer].append(number)

    best, fewest = [list(row) for row in rows], _crossings(nodes, rows)
    for sweep in range(_sweeps(nodes)):
        down = sweep % 2 == 0
        order = rows[1:] if down else rows[-2::-1]
        for row in order:
            _sort_by_neighbours(nodes, rows, row, above=down)

        crossings = _crossings(nodes, rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings

    return best


def _sweeps(nodes: Sequence[_Node]) -> int:
    """Choose how often to go over all nodes: large diagrams are not worth the wait."""
    return max(2, min(_MOST_SWEEPS, _MOST_VISITS // len(nodes)))


def _walk(nodes: Sequence[_Node]) -> list[int]:
    """List all nodes depth first, so that what belongs together starts out together."""
    found: dict[int, None] = {}
    for start in range(len(nodes)):
        ahead = [start]
        while ahead:
            number = ahead.pop()
            if number not in found:
                found[number] = None
                ahead += reversed(nodes[number].below)

    return list(found)


def _sort_by_neighbours(
    nodes: Sequence[_Node], rows: Sequence[list[int]], row: list[int], *, above: bool
) -> None:
    layer = nodes[row[0]].layer
    place = {number: place for place, number in enumerate(rows[layer + (-1 if above else 1)])}
    own = {number: float(place) for place, number in enumerate(row)}

    def barycentre(number: int) -> float:
        near = nodes[number].above if above else nodes[number].below
        return sum(place[other] for other in near) / len(near) if near else own[number]

    row.sort(key=barycentre)


def _crossings(nodes: Sequence[_Node], rows: Sequence[Sequence[int]]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        place = {number: place for place, number in enumerate(lower)}
        passed: list[int] = []
        for number in upper:
            ends = sorted(place[other] for other in nodes[number].below)
            total += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)

    return total


def _place_across(nodes: Sequence[_Node], rows: Sequence[Sequence[int]]) -> None:
    """Give every node its x, in order and without touching: near its neighbours, and knots in line with knots."""
    for row in rows:
        _settle(nodes, row, lambda _: ())

    for _ in range(_sweeps(nodes)):
        for row in rows:
            _settle(nodes, row, lambda node: node.above)

        for row in reversed(rows):
            _settle(nodes, row, lambda node: node.below)

    for _ in range(_sweeps(nodes)):
        for row in (*rows, *reversed(rows)):
            _settle(nodes, row, lambda node: (*node.above, *node.below))


def _settle(
    nodes: Sequence[_Node], row: Sequence[int], near: Callable[[_Node], Sequence[int]]
) -> None:
    wanted: list[float] = []
    weights: list[float] = []
    for number in row:
        node = nodes[number]
        pulls = [
            (other.x, _pull(node, other)) for other in (nodes[number] for number in near(node))
        ]
        weight = sum(pull for _, pull in pulls)
        wanted.append(sum(x * pull for x, pull in pulls) / weight if pulls else node.x)
        weights.append(weight or 0.1)

    distances = [nodes[one].right + nodes[next_].left + _BESIDE for one, next_ in pairwise(row)]
    for number, x in zip(row, spread(wanted, weights, distances), strict=True):
        nodes[number].x = x


def _pull(one: _Node, other: _Node) -> float:
    return _STRAIGHT if one.pull and other.pull else max(one.pull, other.pull)


def _side_by_side(nodes: Sequence[_Node], parts: Sequence[Sequence[list[int]]]) -> list[list[int]]:
    """Move every part to the right until it is clear of those before, layer by layer; give the layers of them all."""
    rows: list[list[int]] = [[] for _ in range(max(map(len, parts)))]
    for part in parts:
        beside = [
            (nodes[row[-1]], nodes[added[0]]) for row, added in zip(rows, part, strict=False) if row
        ]
        shift = max(
            (end.x + end.right + _BESIDE - (next_.x - next_.left) for end, next_ in beside),
            default=0.0,
        )
        for row, added in zip(rows, part, strict=False):
            for number in added:
                nodes[number].x += shift

            row += added

    return rows


def _place_down(nodes: Sequence[_Node], rows: Sequence[Sequence[int]]) -> None:
    """Give every layer its y; the further arrows shift sideways between two layers, the wider the gap."""
    y = 0.0
    for row, following in zip(rows, [*rows[1:], []], strict=True):
        height = max((nodes[number].height for number in row), default=0.0)
        for number in row:
            nodes[number].y = y + height / 2

        shift = max(
            (
                abs(nodes[number].x - nodes[other].x)
                for number in row
                for other in nodes[number].below
            ),
            default=0,
        )
        y += height + min(_MOST_GAP, _LEAST_GAP + _GAP_PER_SHIFT * shift) * bool(following)


def _ports(nodes: Sequence[_Node], chains: Sequence[_Chain]) -> list[tuple[float, float]]:
    """Find where each arrow touches its upper and its lower box: below or above its first knot, if that is free."""
    found: list[list[float]] = [[0.0, 0.0] for _ in chains]
    sides: dict[tuple[int, int], list[int]] = {}
    for number, chain in enumerate(chains):
        sides.setdefault((chain.nodes[0], 0), []).append(number)
        sides.setdefault((chain.nodes[-1], 1), []).append(number)

    for (box, end), arriving in sides.items():
        node = nodes[box]
        knots = {
            number: nodes[chains[number].nodes[1 if end == 0 else -2]].x for number in arriving
        }
        arriving.sort(key=lambda number: knots[number])
        room = max(0.0, node.left - _PORT_MARGIN)
        wanted = [knots[number] for number in arriving]
        for number, x in zip(
            arriving, within(node.x - room, node.x + room, wanted, _PORT_DISTANCE), strict=True
        ):
            found[number][end] = x

    return [(upper, lower) for upper, lower in found]


def _route(
    nodes: Sequence[_Node], rows: Sequence[Sequence[int]], chain: _Chain, ports: tuple[float, float]
) -> Route:
    first, *knots, last = (nodes[number] for number in chain.nodes)
    half = {
        node.layer: max(nodes[number].height for number in rows[node.layer]) / 2
        for node in (first, *knots, last)
    }
    points: list[Point] = [(ports[0], first.y + first.height / 2)]
    if first.height / 2 < half[first.layer]:
        points += [(ports[0], first.y + half[first.layer])] * 2

    for knot in knots:
        points += [(knot.x, knot.y - half[knot.layer]), (knot.x, knot.y + half[knot.layer])]

    if last.height / 2 < half[last.layer]:
        points += [(ports[1], last.y - half[last.layer])] * 2

    points.append((ports[1], last.y - last.height / 2))
    label = nodes[chain.label]

    return Route(tuple(reversed(points) if chain.turned else points), (label.x, label.y))

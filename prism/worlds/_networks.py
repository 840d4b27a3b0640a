"""Who is connected with whom, and who is where: networks and spaces of a world's agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isqrt
from typing import Any, Generic, Protocol, TypeVar, cast

from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.worlds._agent import Thing
from prism.worlds._fields import state

AgentT = TypeVar("AgentT")
AgentT_co = TypeVar("AgentT_co", covariant=True)

Pair = tuple[int, int]


class Populated(Protocol[AgentT_co]):
    """A world, as far as a network needs it."""

    @property
    def agents(self) -> Sequence[AgentT_co]:
        """The agents."""


class Network(Generic[AgentT]):
    """Agents and the connections between them, each in the order in which it was made.

    Args:
        agents: The agents.
        pairs: Places of connected agents.
        directed: Whether a connection leads one way only.

    Attributes:
        directed: Whether a connection leads one way only.
        has_changed: Whether connections have come or gone since it was made.
    """

    def __init__(
        self, agents: Sequence[AgentT], pairs: Iterable[Pair], *, directed: bool = False
    ) -> None:
        self.directed: bool = directed
        self.has_changed: bool = False
        self._agents = agents
        # a dict is a set that keeps its order
        self._links: list[dict[int, None]] = [{} for _ in agents]
        for one, other in pairs:
            self._link(one, other)

    def neighbours(self, agent: AgentT) -> Sequence[AgentT]:
        """Return the agents that one is connected to."""
        return cast(Sequence[AgentT], cast(Any, agent).neighbours)

    def edges(self) -> Iterator[tuple[AgentT, AgentT]]:
        """Yield every connection once."""
        for one, other in self.pairs():
            yield self._agents[one], self._agents[other]

    def pairs(self) -> list[Pair]:
        """Return every connection once, as places of agents."""
        return [
            (one, other)
            for one, others in enumerate(self._links)
            for other in others
            if self.directed or one < other
        ]

    def connect(self, one: AgentT, other: AgentT) -> None:
        """Connect two agents; nothing happens if they are connected."""
        self._link(_place(one), _place(other))
        self._changed(one, other)

    def disconnect(self, one: AgentT, other: AgentT) -> None:
        """Remove the connection of two agents; nothing happens if they have none."""
        first, second = _place(one), _place(other)
        self._links[first].pop(second, None)
        if not self.directed:
            self._links[second].pop(first, None)

        self._changed(one, other)

    def wire(self) -> None:
        """Tell every agent its neighbours."""
        for agent, others in zip(self._agents, self._links, strict=True):
            cast(Any, agent).neighbours = tuple(self._agents[other] for other in others)

    def snapshot(self) -> list[list[int]] | None:
        """Return the connections as plain data; None if they are those it was made with."""
        return [list(others) for others in self._links] if self.has_changed else None

    def restore(self, links: list[list[int]]) -> None:
        """Make the connections those of a snapshot."""
        self._links = [dict.fromkeys(others) for others in links]
        self.has_changed = True
        self.wire()

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self.pairs())

    def _link(self, one: int, other: int) -> None:
        if one == other:
            raise FieldValueError("an agent cannot be connected with itself")

        self._links[one][other] = None
        if not self.directed:
            self._links[other][one] = None

    def _changed(self, *agents: AgentT) -> None:
        self.has_changed = True
        for agent in agents:
            others = self._links[_place(agent)]
            cast(Any, agent).neighbours = tuple(self._agents[other] for other in others)


def ring(world: Populated[AgentT], neighbours: int) -> Network[AgentT]:
    """Connect every agent with those next to it, half of them on either side.

    Args:
        world: The world, in its `World.setup`.
        neighbours: Neighbours of each agent, an even number below that of the agents.

    Raises:
        FieldValueError: If it is odd, or too large.
    """
    return Network(world.agents, ring_pairs(len(world.agents), neighbours))


def small_world(world: Populated[AgentT], neighbours: int, rewired: float) -> Network[AgentT]:
    """Connect agents in a ring and rewire some connections (Watts and Strogatz 1998).

    Args:
        world: The world, in its `World.setup`.
        neighbours: Neighbours of each agent in the ring, an even number below that of the agents.
        rewired: Probability that a connection leads to a random agent instead, 0 to 1.

    Raises:
        FieldValueError: If a number is out of its range.
    """
    size, stream = len(world.agents), _stream(world)
    pairs = ring_pairs(size, neighbours)
    _require_share("rewired", rewired)

    return Network(world.agents, rewired_pairs(size, pairs, rewired, stream))


def rewired_pairs(
    size: int, pairs: Sequence[Pair], rewired: float, stream: RandomStream
) -> list[Pair]:
    """Return connections of which some lead to a random agent instead.

    Args:
        size: Number of agents.
        pairs: The connections, each once.
        rewired: Probability that one is rewired, 0 to 1.
        stream: Random numbers.
    """
    links: list[set[int]] = [set() for _ in range(size)]
    for one, other in pairs:
        links[one].add(other)
        links[other].add(one)

    result = []
    for one, other in pairs:
        target = other
        # an agent that knows everybody has nobody to turn to
        if stream.chance(rewired) and len(links[one]) < size - 1:
            while target == one or target in links[one]:
                target = stream.index(size)
            links[one].remove(other)
            links[other].remove(one)
            links[one].add(target)
            links[target].add(one)

        result.append((one, target))

    return result


def grid(
    world: Populated[AgentT],
    width: int | None = None,
    *,
    diagonal: bool = False,
    wraps: bool = False,
) -> Network[AgentT]:
    """Put agents on a grid, row by row, and connect each with those beside it.

    Args:
        world: The world, in its `World.setup`.
        width: Agents in a row; by default the root of their number.
        diagonal: Whether those at the corners are neighbours, too (Moore's neighbourhood).
        wraps: Whether the first row and column are beside the last.

    Raises:
        FieldValueError: If the last row is not full, or a wrapped row or column is below 3.
    """
    size = len(world.agents)
    width = isqrt(size) if width is None else width
    if width < 1 or size % width:
        raise FieldValueError(f"{size} agents do not fill rows of {width}: give another width")

    height = size // width
    if wraps and min(width, height) < 3:
        raise FieldValueError(f"a grid of {width} by {height} is too small to wrap")

    steps = [(1, 0), (0, 1)] + [(1, 1), (-1, 1)] * diagonal
    return Network(world.agents, _on_grid(width, height, steps, wraps=wraps))


def random_graph(world: Populated[AgentT], probability: float) -> Network[AgentT]:
    """Connect each two agents with the same probability (Erdős and Rényi 1959).

    Args:
        world: The world, in its `World.setup`.
        probability: 0 to 1; the mean number of neighbours is this times the number of others.

    Raises:
        FieldValueError: If it is out of its range.
    """
    _require_share("probability", probability)
    size, stream = len(world.agents), _stream(world)
    pairs = (
        (one, other)
        for one in range(size)
        for other in range(one + 1, size)
        if stream.chance(probability)
    )

    return Network(world.agents, pairs)


def scale_free(world: Populated[AgentT], neighbours: int) -> Network[AgentT]:
    """Connect each agent with some of those before it, rather with the well connected.

    The number of neighbours then follows a power law (Barabási and Albert 1999).

    Args:
        world: The world, in its `World.setup`.
        neighbours: Connections that each agent makes, at least 1, below the number of agents.

    Raises:
        FieldValueError: If it is out of its range.
    """
    size, stream = len(world.agents), _stream(world)
    if not 1 <= neighbours < size:
        raise FieldValueError(
            f"neighbours must be from 1 to {size - 1}, for {size} agents, got {neighbours}"
        )

    pairs: list[Pair] = []
    # every end of a connection, so that a draw meets the well connected more often
    ends: list[int] = []
    targets = list(range(neighbours))
    for one in range(neighbours, size):
        pairs += [(one, other) for other in targets]
        ends += targets + [one] * neighbours
        chosen: dict[int, None] = {}
        while len(chosen) < neighbours:
            chosen[stream.choice(ends)] = None
        targets = list(chosen)

    return Network(world.agents, pairs)


def from_edges(world: Populated[AgentT], edges: Any, *, directed: bool = False) -> Network[AgentT]:
    """Connect agents as a list says, or a graph of networkx or igraph.

    Args:
        world: The world, in its `World.setup`.
        edges: Pairs of agents, of their ids or of their places; or a graph whose nodes are ids or
            places.
        directed: Whether a connection leads one way only.

    Raises:
        FieldValueError: If an end is no agent of the world.
    """
    agents = world.agents
    places: dict[Any, int] = {cast(Any, agent).agent_id: n for n, agent in enumerate(agents)}
    pairs = []
    for edge in edges_of(edges):
        one, other, *_ = edge
        pairs.append((find_place(one, places, len(agents)), find_place(other, places, len(agents))))

    return Network(agents, pairs, directed=directed)


def edges_of(edges: Any) -> Iterable[Any]:
    """Return the connections of a list, or of a graph of networkx or igraph."""
    if hasattr(edges, "get_edgelist"):  # igraph
        return cast(Iterable[Any], edges.get_edgelist())
    if hasattr(edges, "edges") and callable(edges.edges):  # networkx, and a network of ours
        return cast(Iterable[Any], edges.edges())
    if isinstance(edges, (set, frozenset)):
        raise FieldValueError("edges in a set have another order in every process: give a list")

    return cast(Iterable[Any], edges)


def find_place(end: Any, places: dict[Any, int], size: int) -> int:
    """Return the place of an agent that is named by itself, its id or its place."""
    place = places.get(getattr(end, "agent_id", end))
    if place is None and isinstance(end, int) and 0 <= end < size:
        place = end
    if place is None:
        raise FieldValueError(f"{end!r} is no agent: name agents by id, or by place from 0 on")

    return place


def ring_pairs(size: int, neighbours: int) -> list[Pair]:
    """Return the connections of a ring, those of direct neighbours first."""
    if neighbours % 2 or not 2 <= neighbours < size:
        raise FieldValueError(
            f"neighbours must be even, at least 2 and below the number of agents, {size}; "
            f"got {neighbours}"
        )

    # in a ring of an even number, those opposite each other are met from both sides
    return [
        (place, (place + away) % size)
        for away in range(1, neighbours // 2 + 1)
        for place in range(size)
    ]


def _on_grid(
    width: int, height: int, steps: list[tuple[int, int]], *, wraps: bool
) -> Iterator[Pair]:
    for row in range(height):
        for column in range(width):
            for right, down in steps:
                x, y = column + right, row + down
                if wraps:
                    x, y = x % width, y % height
                if 0 <= x < width and 0 <= y < height:
                    yield row * width + column, y * width + x


def _require_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise FieldValueError(f"{name} must be from 0 to 1, got {value!r}")


def _stream(world: Any) -> RandomStream:
    return cast(RandomStream, world._hosted("network").network_stream())


def _place(agent: Any) -> int:
    return cast(int, agent._place)


class Space(Thing, Generic[AgentT]):
    """Cells in rows, numbered from 0 on, in each of which there is room for one agent.

    Make it in a world's `World.setup`, and keep it in a field: ``town: Space[Resident] = state()``.

    Args:
        width: Cells in a row.
        height: Rows.
        wraps: Whether the first row and column are beside the last.

    Attributes:
        width: Cells in a row.
        height: Rows.
        wraps: Whether the first row and column are beside the last.
        taken: Who is where, by cell.
        cells: Where each agent is.
    """

    width: int = 0
    height: int = 0
    wraps: bool = False
    taken: dict[int, AgentT] = state(dict)
    cells: dict[AgentT, int] = state(dict)

    def free(self) -> list[int]:
        """Return the cells in which there is nobody."""
        return [cell for cell in range(self.width * self.height) if cell not in self.taken]

    def put(self, agent: AgentT, cell: int) -> None:
        """Put an agent into a free cell; it leaves the one in which it was.

        Raises:
            FieldValueError: If there is no such cell, or somebody is in it.
        """
        if not 0 <= cell < self.width * self.height:
            raise FieldValueError(
                f"there is no cell {cell}: use 0 to {self.width * self.height - 1}"
            )
        if self.taken.get(cell, agent) is not agent:
            raise FieldValueError(f"cell {cell} is taken by {self.taken[cell]!r}")

        self.remove(agent)
        self.taken[cell], self.cells[agent] = agent, cell

    def remove(self, agent: AgentT) -> None:
        """Take an agent out of its cell; nothing happens if it is in none."""
        if agent in self.cells:
            del self.taken[self.cells.pop(agent)]

    def beside(self, agent: AgentT) -> list[AgentT]:
        """Return who is in the cells around an agent's, corners included, row by row."""
        row, column = divmod(self.cells[agent], self.width)
        around = [(row + down, column + right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
        found: list[Any] = [self._at(*place) for place in around]

        # of a small space that wraps, some places are the same
        return [other for other in dict.fromkeys(found) if other not in (None, agent)]

    def _at(self, row: int, column: int) -> AgentT | None:
        if self.wraps:
            row, column = row % self.height, column % self.width
        elif not (0 <= row < self.height and 0 <= column < self.width):
            return None

        return self.taken.get(row * self.width + column)

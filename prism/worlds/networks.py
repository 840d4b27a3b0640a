"""Networks of a world's agents, and the pairs of places from which they are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import isqrt
from operator import index
from typing import Any, Generic, SupportsIndex, TypeVar, cast

from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.worlds._agent_set import NOBODY, AgentSet

# `prism.worlds` offers the networks themselves
__all__ = ["random_pairs", "rewired_pairs", "ring_pairs", "scale_free_pairs"]

AgentT = TypeVar("AgentT")

Pair = tuple[int, int]
"""Places of two agents that are connected."""

MOST_DRAWN = 2_000
"""The largest number of agents whose connections are logged."""


class Network(Generic[AgentT]):
    """Agents and the connections between them, in the order in which they were made.

    Args:
        agents: The agents.
        pairs: Pairs of places of connected agents.

    Attributes:
        width: Agents per row, on a grid.
    """

    def __init__(self, agents: Sequence[AgentT], pairs: Iterable[Pair]) -> None:
        self._has_news = True
        self.width: int | None = None
        # a dict serves as a set that keeps its order
        self._links: dict[AgentT, dict[AgentT, None]] = {agent: {} for agent in agents}
        everybody = tuple(agents)
        for one, other in pairs:
            self._link(everybody[one], everybody[other])

    def edges(self) -> Iterator[tuple[AgentT, AgentT]]:
        """Return every connection once."""
        agents = [*self._links]
        return ((agents[one], agents[other]) for one, other in self.pairs())

    def pairs(self) -> list[Pair]:
        """Return every connection once, as a pair of places among the agents."""
        numbers = {agent: number for number, agent in enumerate(self._links)}
        links = (
            (numbers[one], numbers[other]) for one in self._links for other in self._links[one]
        )
        return [(one, other) for one, other in links if one < other]

    def connect(self, one: AgentT, other: AgentT) -> None:
        """Connect two agents, unless they are connected, or one has left the run."""
        if one in self._links and other in self._links:
            self._link(one, other)
            self._changed(one, other)

    def disconnect(self, one: AgentT, other: AgentT) -> None:
        """Remove the connection of two agents, if there is one."""
        if other in self._links.get(one, ()):
            del self._links[one][other]
            del self._links[other][one]
            self._changed(one, other)

    def join(self, agent: AgentT, neighbours: Iterable[AgentT] = ()) -> None:
        """Add an agent that has joined the run, connected to some others.

        Args:
            agent: The newcomer.
            neighbours: Those others, such as the neighbours of its parent.
        """
        self._links.setdefault(agent, {})
        others = [each for each in neighbours if each in self._links and each is not agent]
        for other in others:
            self._link(agent, other)
        self._changed(agent, *others)

    def leave(self, agent: AgentT) -> None:
        """Remove an agent with all its connections."""
        others = self._links.pop(agent, None)
        if others is None:
            return
        for other in others:
            del self._links[other][agent]
        cast(Any, agent).neighbours = NOBODY
        self._changed(*others)

    def pictured(self, agents: Sequence[AgentT]) -> dict[str, Any]:
        """Return the places on a grid, or the connections if they have changed, for the log."""
        if self.width is not None:
            size = {"width": self.width, "height": len(agents) // self.width}
            return {"space": "grid", **size, "places": [*range(len(agents))]}
        if len(agents) > MOST_DRAWN:
            return {}

        has_news, self._has_news = self._has_news, False
        return {"space": "network", **({"edges": self.pairs()} if has_news else {})}

    def wire(self) -> None:
        """Set the neighbours of every agent."""
        for agent, others in self._links.items():
            cast(Any, agent).neighbours = AgentSet(others)

    def __len__(self) -> int:
        """Return the number of connections."""
        return sum(map(len, self._links.values())) // 2

    def _link(self, one: AgentT, other: AgentT) -> None:
        if one is other:
            raise FieldValueError("an agent cannot be connected to itself: leave such pairs out")

        self._links[one][other] = None
        self._links[other][one] = None

    def _changed(self, *agents: AgentT) -> None:
        self._has_news = True
        for agent in agents:
            cast(Any, agent).neighbours = AgentSet(self._links[agent])


def ring(world: Any, neighbours: int) -> Network[Any]:
    """Connect every agent with those next to it, half of them on each side.

    Args:
        world: The world, in its `World.setup`.
        neighbours: Neighbours of each agent, an even number below the number of agents.

    Raises:
        FieldValueError: If it is odd, or too large.
    """
    return Network(world.agents, ring_pairs(len(world.agents), neighbours))


def small_world(world: Any, neighbours: int, rewired: float) -> Network[Any]:
    """Connect agents in a ring and rewire some connections (Watts and Strogatz 1998).

    Args:
        world: The world, in its `World.setup`.
        neighbours: Neighbours of each agent in the ring, an even number below the number of agents.
        rewired: Probability that a connection leads to a random agent instead, 0 to 1.

    Raises:
        FieldValueError: If a number is out of its range.
    """
    size = len(world.agents)
    pairs = ring_pairs(size, neighbours)
    _require_share("rewired", rewired)
    return Network(world.agents, rewired_pairs(size, pairs, rewired, _stream(world)))


def grid(world: Any, width: int | None = None, *, diagonal: bool = False) -> Network[Any]:
    """Put agents on a grid, row by row, and connect each with those next to it.

    Args:
        world: The world, in its `World.setup`.
        width: Agents in a row; by default the root of their number.
        diagonal: Whether agents at the corners are also neighbours (Moore's neighbourhood).

    Raises:
        FieldValueError: If the last row is not full.
    """
    size = len(world.agents)
    width = isqrt(size) if width is None else width
    if width < 1 or size % width:
        raise FieldValueError(
            f"{size} agents do not fill rows of {width}: pass another width, or change their number"
        )

    steps = [(1, 0), (0, 1), *([(1, 1), (-1, 1)] if diagonal else [])]
    network = Network(world.agents, grid_pairs(width, size // width, steps))
    network.width = width
    return network


def random_graph(world: Any, probability: float) -> Network[Any]:
    """Connect every two agents with the same probability (Erdős and Rényi 1959).

    Args:
        world: The world, in its `World.setup`.
        probability: The probability, from 0 to 1. The mean number of neighbours is this times the
            number of other agents.

    Raises:
        FieldValueError: If it is out of its range.
    """
    _require_share("probability", probability)
    size, stream = len(world.agents), _stream(world)
    links = stream.binomial(size * (size - 1) // 2, probability)

    return Network(world.agents, random_pairs(size, links, stream))


def scale_free(world: Any, neighbours: int, exponent: float = 3.0) -> Network[Any]:
    """Connect each agent with some earlier ones, with a preference for well-connected ones.

    The number of neighbours follows a power law (Price 1976), by default that of Barabási and
    Albert (1999).

    Args:
        world: The world, in its `World.setup`.
        neighbours: Connections that each agent makes, from 1 to below the number of agents.
        exponent: The exponent of the power law, above 2. The smaller it is, the more connections a
            few agents have.

    Raises:
        FieldValueError: If a number is out of its range.
    """
    size = len(world.agents)
    if not 1 <= neighbours < size:
        raise FieldValueError(
            f"neighbours must be at least 1 and below the number of agents, {size}; "
            f"got {neighbours}"
        )
    if not exponent > 2:
        raise FieldValueError(f"exponent must be above 2, got {exponent!r}")

    # the first agents have fewer predecessors than connections to make
    links = neighbours * (size - 1) - neighbours * (neighbours - 1) // 2

    return Network(world.agents, scale_free_pairs(size, links, exponent, _stream(world)))


def from_edges(world: Any, edges: Any) -> Network[Any]:
    """Connect agents as given by a list, or by a graph of networkx.

    Args:
        world: The world, in its `World.setup`.
        edges: Pairs of agents, ids or places, or a graph whose nodes are ids or places;
            directions are ignored.

    Raises:
        FieldValueError: If an end is not an agent of the world.
    """
    agents = world.agents
    places: dict[Any, int] = {cast(Any, agent).agent_id: n for n, agent in enumerate(agents)}
    if isinstance(edges, (set, frozenset)):
        raise FieldValueError("edges in a set have a different order in every process: pass a list")

    # a graph of networkx has a method that returns its pairs
    listed = edges.edges() if hasattr(edges, "edges") else edges
    size = len(agents)
    pairs = [(_find_place(a, places, size), _find_place(b, places, size)) for a, b in listed]

    return Network(agents, pairs)


def _find_place(end: Any, places: dict[Any, int], size: int) -> int:
    """Return the place of an agent, given the agent, its id or its place."""
    position = places.get(getattr(end, "agent_id", end))
    # numpy has whole numbers of its own
    if position is None and isinstance(end, SupportsIndex) and 0 <= index(end) < size:
        position = index(end)
    if position is None:
        raise FieldValueError(f"{end!r} is not an agent: name agents by id, or by position from 0")

    return position


def _require_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise FieldValueError(f"{name} must be from 0 to 1, got {value!r}")


def _stream(world: Any) -> RandomStream:
    """Return the random numbers of the next network."""
    stream: RandomStream = world._running("network").network_stream()
    return stream


# Pairs of places


def ring_pairs(size: int, neighbours: int) -> list[Pair]:
    """Return the connections of a ring, beginning with direct neighbours.

    Raises:
        FieldValueError: If the number of neighbours is odd, or too large.
    """
    if neighbours % 2 or not 2 <= neighbours < size:
        raise FieldValueError(
            f"neighbours must be even, at least 2 and below the number of agents, {size}; "
            f"got {neighbours}"
        )
    return [
        (position, (position + away) % size)
        for away in range(1, neighbours // 2 + 1)
        for position in range(size)
    ]


def rewired_pairs(
    size: int, pairs: Sequence[Pair], rewired: float, stream: RandomStream
) -> list[Pair]:
    """Return connections, some of which lead to a random agent instead (Watts and Strogatz 1998).

    Args:
        size: Number of agents.
        pairs: The connections.
        rewired: Probability that a connection is rewired, from 0 to 1.
        stream: Random numbers.
    """
    links: list[set[int]] = [set() for _ in range(size)]
    for one, other in pairs:
        links[one].add(other)
        links[other].add(one)

    result = []
    for one, other in pairs:
        target = other
        # an agent that is connected to all others cannot be rewired
        if stream.chance(rewired) and len(links[one]) < size - 1:
            while target == one or target in links[one]:
                target = stream.index(size)
            links[one].remove(other)
            links[other].remove(one)
            links[one].add(target)
            links[target].add(one)

        result.append((one, target))

    return result


def scale_free_pairs(size: int, links: int, exponent: float, stream: RandomStream) -> list[Pair]:
    """Return a network whose numbers of connections follow a power law (Price 1976).

    Each agent connects to some earlier agents: with probability ``1 / (exponent - 1)`` to the end
    of a random earlier connection (the copying of Kumar et al. 2000), or else to any of them. With
    m connections each, the share of agents with k incoming connections falls as ``(k + a) **
    -exponent`` with ``a = m * (exponent - 2)``; an exponent of 3 is the network of Barabási and
    Albert (1999).

    Args:
        size: Number of agents.
        links: Number of connections.
        exponent: Of the power law, above 2.
        stream: Random numbers.

    Returns:
        Pairs, whose first agent made the connection.
    """
    copying = 1 / (exponent - 1)
    pairs: list[Pair] = []
    chosen_before: list[int] = []
    for one in range(1, size):
        # the first agents have few predecessors; later ones make up for their missing connections
        share = (links - len(pairs)) / (size - one)
        wanted = min(one, int(share) + stream.chance(share % 1))
        chosen: dict[int, None] = {}
        while len(chosen) < wanted:
            copies = chosen_before and stream.chance(copying)
            chosen[stream.choice(chosen_before) if copies else stream.index(one)] = None

        pairs += [(one, other) for other in chosen]
        chosen_before += chosen

    return pairs


def random_pairs(size: int, links: int, stream: RandomStream) -> list[Pair]:
    """Return a number of pairs, all equally likely (Erdős and Rényi 1959)."""
    numbers = stream.sample(range(size * (size - 1) // 2), links)
    return [_pair_numbered(number) for number in numbers]


def _pair_numbered(number: int) -> Pair:
    """Return the pair with a number among (1, 0), (2, 0), (2, 1), (3, 0) and so on."""
    one = (1 + isqrt(1 + 8 * number)) // 2
    return one, number - one * (one - 1) // 2


def grid_pairs(width: int, height: int, steps: Sequence[Pair]) -> Iterator[Pair]:
    """Yield the connections of a grid: from each place those at some steps, right and down."""
    for row, column in product(range(height), range(width)):
        for right, down in steps:
            x, y = column + right, row + down
            if 0 <= x < width and y < height:
                yield row * width + column, y * width + x

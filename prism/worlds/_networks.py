"""Networks of a world's agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar, cast

from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.worlds._agent_set import NOBODY, AgentSet

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
    """

    def __init__(self, agents: Sequence[AgentT], pairs: Iterable[Pair]) -> None:
        self._has_news = True
        # a dict serves as a set that keeps its order
        self._links: dict[AgentT, dict[AgentT, None]] = {agent: {} for agent in agents}
        everybody = tuple(agents)
        for one, other in pairs:
            self._link(everybody[one], everybody[other])

    def pairs(self) -> list[Pair]:
        """Return every connection once, as a pair of places among the agents."""
        links = self._links
        numbers = {agent: number for number, agent in enumerate(links)}
        pairs = ((numbers[one], numbers[other]) for one in links for other in links[one])
        return [(one, other) for one, other in pairs if one < other]

    def connect(self, one: AgentT, other: AgentT) -> None:
        """Connect two agents, unless they are connected, or one has left the run.

        Raises:
            FieldValueError: If one of them is not in the network.
        """
        for each in (one, other):
            if each not in self._links:
                if getattr(each, "has_left", False):
                    return
                raise FieldValueError(f"{each!r} is not in the network: connect agents in the run")
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
        if not cast(Any, agent).has_left:
            self._links.setdefault(agent, {})
            self._changed(agent)
        for other in neighbours:
            if other is not agent:
                self.connect(agent, other)

    def leave(self, agent: AgentT) -> None:
        """Remove an agent with all its connections."""
        others = self._links.pop(agent, {})
        for other in others:
            del self._links[other][agent]
        cast(Any, agent).neighbours = NOBODY
        self._changed(*others)

    def pictured(self, agents: Sequence[AgentT]) -> dict[str, Any]:
        """Return the connections, if they have changed, for the log."""
        if len(agents) > MOST_DRAWN:
            return {}

        has_news, self._has_news = self._has_news, False
        return {"space": "network", **({"edges": self.pairs()} if has_news else {})}

    def wire(self) -> None:
        """Set the neighbours of every agent."""
        self._changed(*self._links)

    def _link(self, one: AgentT, other: AgentT) -> None:
        if one is other:
            raise FieldValueError("an agent cannot be connected to itself: leave such pairs out")

        self._links[one][other] = None
        self._links[other][one] = None

    def _changed(self, *agents: AgentT) -> None:
        self._has_news = True
        for agent in agents:
            cast(Any, agent).neighbours = AgentSet(self._links[agent])


def small_world(world: Any, neighbours: int, rewired: float) -> Network[Any]:
    """Connect agents in a ring and rewire some connections (Watts and Strogatz 1998).

    Args:
        world: The world, in its `World.setup`.
        neighbours: Neighbours of each agent in the ring, an even number below the number of agents.
        rewired: Probability that a connection leads to a random agent instead, from 0 to 1; 0 keeps
            the ring.

    Raises:
        FieldValueError: If the number of neighbours is odd or out of its range.
    """
    size = len(world.agents)
    if neighbours % 2 or not 2 <= neighbours < size:
        raise FieldValueError(f"neighbours must be even, from 2 to {size - 1}, got {neighbours}")
    steps = range(1, neighbours // 2 + 1)
    ring = [(start, (start + step) % size) for step in steps for start in range(size)]
    stream: RandomStream = world._running("network").network_stream()
    return Network(world.agents, _rewired(size, ring, rewired, stream))


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
    numbers: dict[Any, int] = {
        name: number
        for number, agent in enumerate(agents)
        for name in (number, agent, agent.agent_id)
    }
    # a graph of networkx has a method that returns its pairs
    listed = edges.edges() if hasattr(edges, "edges") else edges
    try:
        return Network(agents, [(numbers[one], numbers[other]) for one, other in listed])
    except KeyError as error:
        problem = f"{error.args[0]!r} is not an agent: name agents by id, or by position from 0"
        raise FieldValueError(problem) from None


def _rewired(size: int, pairs: Sequence[Pair], rewired: float, stream: RandomStream) -> list[Pair]:
    """Return connections, some of which lead to a random agent instead."""
    connected = {*map(frozenset, pairs)}
    degrees = Counter(chain.from_iterable(pairs))
    result = []
    for one, other in pairs:
        target = other
        # an agent that is connected to all others cannot be rewired
        if stream.chance(rewired) and degrees[one] < size - 1:
            while target == one or frozenset((one, target)) in connected:
                target = stream.index(size)
            connected ^= {frozenset((one, other)), frozenset((one, target))}
            degrees.update({target: 1, other: -1})
        result.append((one, target))

    return result

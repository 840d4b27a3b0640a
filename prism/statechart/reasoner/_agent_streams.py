"""Random numbers of agents that have no stream, and those that a question takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import finalize

from prism.randomness import RandomStream, Taken
from prism.statechart._identity import given_name


class AgentStreams:
    """The random numbers of agents' decisions, for reasoners that draw.

    Args:
        seed: Seed of the streams of agents that have none.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._named: dict[str, RandomStream] = {}
        self._nameless: dict[int, tuple[RandomStream, Any]] = {}
        self._met = 0

    def of(self, agent: Any) -> RandomStream:
        """Return ``agent.random`` where that is a `RandomStream`, else a stream kept for the agent.

        An agent that draws for itself, too, has ``decision_random`` beside it, which comes first.

        That one belongs to the agent's id or name, or, for an agent without any, to its place in
        the order in which such agents were first asked.
        """
        for attribute in ("decision_random", "random"):
            own = getattr(agent, attribute, None)
            if isinstance(own, RandomStream):
                return own

        name = given_name(agent)
        if name is None:
            return self._of_nameless(agent)
        if name not in self._named:
            self._named[name] = RandomStream(self._seed, name)

        return self._named[name]

    def _of_nameless(self, agent: Any) -> RandomStream:
        key = id(agent)
        if key not in self._nameless:
            self._met += 1
            stream = RandomStream(self._seed, "", self._met)
            try:
                # its address may become another agent's
                finalize(agent, self._nameless.pop, key, None)
                self._nameless[key] = stream, None
            except TypeError:
                # takes no weak reference: kept, so that its address stays its own
                self._nameless[key] = stream, agent

        return self._nameless[key][0]


@dataclass(frozen=True, slots=True)
class Draw:
    """The random number that a question takes before it is put.

    Args:
        stream: Where the number was taken; None if nothing will be drawn.
        taken: The number, with which an option is drawn.
        fault: What keeps the question from being put.
    """

    stream: RandomStream | None = None
    taken: Taken = (0, 0.0)
    fault: Exception | None = None

    def put_back(self) -> None:
        """Leave the stream as if the question had not been put."""
        if self.stream is not None:
            self.stream.put_back(self.taken)

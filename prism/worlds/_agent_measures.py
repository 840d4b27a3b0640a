"""Measures of individual agents at the end of a round: all values, or quantiles of many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from numbers import Integral, Real
from typing import Any

from prism.errors import SimulationError
from prism.randomness import RandomStream

MOST_MEASURED = 500
"""The largest number of agents of a kind for which every agent's value is kept."""

FOLLOWED = 20
"""Number of agents of a larger kind whose values are kept, besides the quantiles of all."""

_STEPS = 20

_LARGEST_WHOLE = 2**63

Reader = Callable[[Any], Any]


class AgentMeasures:
    """The measures of all agents of a run.

    Args:
        seed: The run's seed, which selects the agents to follow.
        agents: The population at the end of each round.
        readers: A function for each measure, by kind.
    """

    def __init__(
        self, seed: int, agents: Sequence[Any], readers: Mapping[type, Mapping[str, Reader]]
    ) -> None:
        self._seed = seed
        self._agents = agents
        self._readers = readers
        self._followed: dict[type, tuple[int, frozenset[str]]] = {}

    def take(self) -> list[dict[str, Any]]:
        """Return the keys of one event for each measure of each kind.

        Raises:
            SimulationError: If a value is not a number; the message names the agent.
        """
        by_kind = {
            cls: [agent for agent in self._agents if type(agent) is cls] for cls in self._readers
        }

        return [
            {"kind": cls.__name__, "measure": name, **self._taken(cls, name, read, agents)}
            for cls, agents in by_kind.items()
            for name, read in self._readers[cls].items()
        ]

    def _taken(self, cls: type, name: str, read: Reader, agents: Sequence[Any]) -> dict[str, Any]:
        values = {
            agent.agent_id: require_number(read(agent), f"{cls.__name__}.{name} of", agent)
            for agent in agents
        }
        there = sorted(float(value) for value in values.values() if value is not None)
        told = {"agents": len(there)}
        if len(agents) <= MOST_MEASURED:
            return {**told, "values": values}

        followed = self._followed_of(cls, values)
        return {
            **told,
            "values": {each: value for each, value in values.items() if each in followed},
            "quantiles": dict(quantiles(there)),
        }

    def _followed_of(self, cls: type, ids: Mapping[str, Any]) -> frozenset[str]:
        """Return the agents whose own values are kept, which are the same in every round."""
        size, followed = self._followed.get(cls, (0, frozenset()))
        if size != len(ids):
            stream = RandomStream(self._seed, "followed", cls.__name__)
            followed = frozenset(stream.sample(sorted(ids), FOLLOWED))
            self._followed[cls] = len(ids), followed

        return followed


def quantiles(ordered: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Yield the quantiles of sorted numbers in steps of 5 %, interpolated linearly.

    This is type 7 of Hyndman and Fan (1996), the default of numpy and R.
    """
    for step in range(_STEPS + 1) if ordered else ():
        place = (len(ordered) - 1) * step / _STEPS
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        yield (
            f"{step / _STEPS:.2f}",
            ordered[low] + (ordered[high] - ordered[low]) * (place - low),
        )


def require_number(value: Any, what: str, owner: Any = None) -> float | int | bool | None:
    """Return the value of a measure as JSON represents it.

    Args:
        value: The value that it returned.
        what: The name of the measure, for the message.
        owner: The agent that it belongs to, for the message.

    Raises:
        SimulationError: If it is neither a finite number nor None.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Real) and isfinite(value):
        # numbers of numpy, which JSON cannot represent, and numbers that are too large for it
        number: Any = value
        is_whole = isinstance(value, Integral) and abs(number) < _LARGEST_WHOLE
        return int(number) if is_whole else float(number)

    whose = "" if owner is None else f" {owner.agent_id!r}"
    raise SimulationError(
        f"{what}{whose} must return a finite number, or None where there is nothing to measure, "
        f"got {value!r}"
    )

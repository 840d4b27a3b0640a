"""The random streams of agents, which begin anew in every part of a run."""

from __future__ import annotations

from typing import Any

from prism.randomness import RandomStream, Taken
from prism.randomness._stream import GOLDEN, ONE, OTHER, TO_UNIT, WORD

STEPS, DECISIONS = 1, 2
"""The place of a stream's key among an agent's own."""


class AgentStream(RandomStream):
    """A random stream of an agent: one sequence of numbers in each part of a run.

    It turns to the sequence of the current part at the first draw there, so agents that do not draw
    cost nothing.

    Args:
        agent: The agent.
        place: The place of the stream's key among the agent's own: `STEPS` or `DECISIONS`.
    """

    __slots__ = ("_agent", "_begun_in", "_current", "_host", "_place")

    def __init__(self, agent: Any, place: int) -> None:
        self._agent = agent
        self._host = agent._host
        self._place = place
        self._begun_in = -1
        # the part of the run if its next number follows on the last one, else none
        self._current = -1
        self.begin_at(0)

    def random(self) -> float:
        """Draw a float, uniform in [0, 1), with 53 random bits.

        Raises:
            SimulationError: If nothing may be drawn at the moment.
        """
        if self._current != self._host.epoch:
            self._begin_if_due()
            if self._put_back:
                return super().random()
            self._current = self._begun_in

        # as in `RandomStream`, written out, as a call would cost a fifth more
        number = self._at = (self._at + GOLDEN) & WORD
        number = ((number ^ (number >> 30)) * ONE) & WORD
        number = ((number ^ (number >> 27)) * OTHER) & WORD
        return ((number ^ (number >> 31)) >> 11) * TO_UNIT

    def take(self) -> Taken:
        """Draw a number with its place in the sequence, so that it can be put back."""
        self._begin_if_due()
        return super().take()

    def put_back(self, taken: Taken) -> None:
        """Put a number back to be drawn again; the earliest comes first."""
        super().put_back(taken)
        self._current = -1

    def _begin_if_due(self) -> None:
        """Turn to the sequence of the current part of the run."""
        host, agent = self._host, self._agent
        if self._begun_in == host.epoch:
            return

        if host.refusing is not None:
            host.require_drawing(f"agent {agent.agent_id!r}")
        self.begin_epoch((agent._keys or host.keys_of(agent))[self._place], host.epoch)
        self._begun_in = host.epoch

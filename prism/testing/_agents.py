"""Agents for tests."""

from __future__ import annotations

from itertools import count
from typing import Any

from prism.agents import SocialAgent


class AgentMaker:
    """Makes social agents with an interest in music, by default ``agent_1``, ``agent_2``, ..."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self, agent_id: str | None = None, **fields: Any) -> SocialAgent:
        """Make an agent.

        Args:
            agent_id: The agent's id; None for the next ``agent_<number>``.
            fields: Further arguments of `SocialAgent`, such as ``interests`` or ``state``.
        """
        name = f"agent_{next(self._numbers)}" if agent_id is None else agent_id
        return SocialAgent(name, **{"interests": ["music"], **fields})

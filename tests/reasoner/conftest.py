"""Fixtures of the reasoners' tests: agents to drive, and logs to read."""

from typing import Any

import pytest

from prism.agents import StatechartMixin


class Agent(StatechartMixin):
    """An agent as most applications write one."""

    agent_id = "a1"


@pytest.fixture
def agent() -> Agent:
    """Return an agent in IDLE that keeps all fields."""
    return Agent()


@pytest.fixture
def events(heard: list[Any]) -> list[Any]:
    """Return the list of all structlog events."""
    return heard

"""Small charts of agent states, agents to move in them, and what a move changed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prism.reasoner import PolicyReasoner
from prism.statechart import AgentState, Statechart, Transition


@dataclass
class Post:
    """Something that an event is about."""

    post_id: str


class StateOnly:
    """An agent with a state, and with the fields that a test gives it."""

    def __init__(self, **more: Any) -> None:
        self.state = AgentState.IDLE
        vars(self).update(more)


def chart_of(*moves: Transition[AgentState], **options: Any) -> Statechart[AgentState]:
    """Return a chart of agent states that begins in IDLE."""
    return Statechart(AgentState, moves, AgentState.IDLE, **options)


def snapshot(agent: Any) -> tuple[Any, ...]:
    """Return all that a move could change."""
    return agent.state, agent.ticks_in_state, list(agent.state_history)


def moves_of(agent: Any) -> list[tuple[str, str, str]]:
    """Return source, trigger and target of every move in an agent's history."""
    return [
        (entry.from_state.value, entry.trigger, entry.to_state.value)
        for entry in agent.state_history
    ]


def _afire(chart: Statechart[Any], agent: Any, trigger: Any) -> Any:
    return asyncio.run(chart.afire(agent, trigger, reasoner=PolicyReasoner(1)))


DRIVES: dict[str, Callable[[Statechart[Any], Any, Any], Any]] = {
    "fire": lambda chart, agent, trigger: chart.fire(agent, trigger),
    "fire_to": lambda chart, agent, trigger: chart.fire_to(agent, trigger, AgentState.RESTING),
    "enabled_targets": lambda chart, agent, trigger: chart.enabled_targets(agent, trigger),
    "afire": _afire,
    "tick": lambda chart, agent, _: chart.tick(agent),
    "adopt": lambda chart, agent, _: chart.adopt(agent),
}
"""What a chart does with an agent, most of it for an event."""

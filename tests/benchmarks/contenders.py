"""Ways to fire a guarded transition with the same bookkeeping: with prism, and by hand.

Each contender gives an agent's history and a column that fires ``go`` on that agent, so that the
history fills up. The bookkeeping is: the state, ``ticks_in_state = 0``, one record with a UTC time
in a deque of fifty, and one structlog event if the application has configured structlog.
`libraries` holds the other libraries' ways.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from prism.agents import StatechartMixin
from prism.statechart import AgentState, Statechart, Transition
from tests.benchmarks.harness import Column

DEPTH = 50
IDLE, SCROLLING = AgentState.IDLE, AgentState.SCROLLING

Contender = Callable[[str, Any], tuple[deque[Any], Column]]
"""``contender(name, context)``: gives the history that the column fills, and the column."""


@dataclass(slots=True)
class Record:
    """A history entry as one writes it by hand; the context is kept by reference."""

    from_state: Any
    to_state: Any
    trigger: str
    timestamp: datetime
    context: Any


class PlainAgent:
    """An agent that knows nothing of prism."""

    __slots__ = ("max_history_depth", "state", "state_history", "ticks_in_state")

    def __init__(self) -> None:
        self.state: Any = IDLE
        self.ticks_in_state = 0
        self.state_history: deque[Any] = deque(maxlen=DEPTH)
        self.max_history_depth = DEPTH


class MixinAgent(StatechartMixin):
    """An agent built on prism's mixin."""


def allowed(agent: Any, context: Any) -> bool:
    """The guard of every contender."""
    return True


def keep_books(agent: Any, source: Any, target: Any, trigger: str, context: Any) -> None:
    """Do the bookkeeping that prism does, for the contenders that set the state themselves."""
    agent.ticks_in_state = 0
    agent.state_history.append(Record(source, target, trigger, datetime.now(UTC), context))
    if structlog.is_configured():
        announce(source, target, trigger, context)


def announce(source: Any, target: Any, trigger: str, context: Any) -> None:
    """Write one transition to the log."""
    structlog.get_logger().info(
        "transition", from_state=source, to_state=target, trigger=trigger, context=context
    )


def two_state_chart(logger: Any = None) -> Statechart[AgentState]:
    """Make the chart of prism's contenders: to and fro, with a guard."""
    moves = [
        Transition("go", IDLE, SCROLLING, guard=allowed),
        Transition("go", SCROLLING, IDLE, guard=allowed),
    ]
    return Statechart(AgentState, moves, IDLE, logger=logger)


def prism_on_mixin(name: str, context: Any) -> tuple[deque[Any], Column]:
    """`Statechart.fire` on an agent built on the mixin."""
    agent = MixinAgent()
    names = {"chart": two_state_chart(), "agent": agent, "context": context}
    return agent.state_history, Column(name, "chart.fire(agent, 'go', context)", names)


def prism_on_plain(name: str, context: Any) -> tuple[deque[Any], Column]:
    """`Statechart.fire` on an object with slots."""
    agent = PlainAgent()
    names = {"chart": two_state_chart(), "agent": agent, "context": context}
    return agent.state_history, Column(name, "chart.fire(agent, 'go', context)", names)


def by_hand(name: str, context: Any) -> tuple[deque[Any], Column]:
    """A function over a dict, as short and fast as one would write it."""
    table = {(IDLE, "go"): ((allowed, SCROLLING),), (SCROLLING, "go"): ((allowed, IDLE),)}

    def fire(agent: Any, trigger: str, context: Any = None) -> Any:
        source = agent.state
        for guard, target in table.get((source, trigger), ()):
            if guard is None or guard(agent, context):
                agent.state = target
                agent.ticks_in_state = 0
                agent.state_history.append(
                    Record(source, target, trigger, datetime.now(UTC), context)
                )
                if structlog.is_configured():
                    announce(source, target, trigger, context)
                return target
        return None

    agent = PlainAgent()
    names = {"fire": fire, "agent": agent, "context": context}
    return agent.state_history, Column(name, "fire(agent, 'go', context)", names)

"""Ways to fire a guarded transition with the same bookkeeping: prism, transitions, and by hand.

Each contender gives an agent's history and a column that fires ``go`` on that agent, so that the
history fills up. The bookkeeping is: the state, ``ticks_in_state = 0``, one record with a UTC time
in a deque of fifty, and one structlog event if the application has configured structlog."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from prism.agents import StatechartMixin
from prism.statechart import AgentState, Statechart, Transition
from tests.benchmarks.harness import Column

DEPTH = 50
IDLE, SCROLLING = AgentState.IDLE, AgentState.SCROLLING

Contender = Callable[..., tuple[deque[Any], Column]]
"""``contender(name, context)``: gives the history that the column fills, and the column."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a fire meets besides its guard.

    Args:
        has_hook: Whether the application has set an ``after_state_change`` of the Machine.
        size: How many transitions the chart has.
    """

    has_hook: bool = False
    size: int = 2

    def others(self) -> Iterator[tuple[str, AgentState, AgentState]]:
        """Yield the transitions of a large chart that never fire."""
        states = list(AgentState)
        for number in range(self.size - 2):
            source, target = states[number % 8], states[number // 8 % 8]
            yield f"other_{number // 64}", source, target


USUAL = Situation()


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


def nothing(*_: Any) -> None:
    """The hook of every contender."""


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


def two_state_chart(logger: Any = None, situation: Situation = USUAL) -> Statechart[AgentState]:
    """Make the chart of prism's contenders: to and fro, with a guard."""
    moves = [
        Transition("go", IDLE, SCROLLING, guard=allowed),
        Transition("go", SCROLLING, IDLE, guard=allowed),
        *(Transition(*each, guard=allowed) for each in situation.others()),
    ]
    chart = Statechart(AgentState, moves, IDLE, logger=logger)
    if situation.has_hook:
        chart.machine.after_state_change.append(nothing)
    return chart


def prism_on_mixin(
    name: str, context: Any, situation: Situation = USUAL
) -> tuple[deque[Any], Column]:
    """`Statechart.fire` on an agent built on the mixin."""
    return _fired(name, MixinAgent(), context, situation)


def prism_on_plain(
    name: str, context: Any, situation: Situation = USUAL
) -> tuple[deque[Any], Column]:
    """`Statechart.fire` on an object with slots."""
    return _fired(name, PlainAgent(), context, situation)


def _fired(name: str, agent: Any, context: Any, situation: Situation) -> tuple[deque[Any], Column]:
    chart = two_state_chart(situation=situation)
    names = {"chart": chart, "agent": agent, "context": context}
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


class OpenAgent(PlainAgent):
    """An agent that takes new attributes, as libraries that decorate their models need."""


def stock_transitions(
    name: str, context: Any, situation: Situation = USUAL
) -> tuple[deque[Any], Column]:
    """``model.trigger`` of ``transitions``, with the bookkeeping in ``after_state_change``."""
    from transitions import EventData

    def after(event: EventData) -> None:
        move: Any = event.transition
        keep_books(event.model, move.source, move.dest, event.event.name, event.kwargs["context"])

    agent: Any = OpenAgent()
    _stock_machine(agent, situation).after_state_change.insert(0, after)
    names = {"agent": agent, "context": context}
    return agent.state_history, Column(name, "agent.trigger('go', context=context)", names)


def _stock_machine(agent: Any, situation: Situation) -> Any:
    from transitions import EventData, Machine

    def allowed_event(event: EventData) -> bool:
        return allowed(event.model, event.kwargs["context"])

    machine = Machine(agent, AgentState, initial=IDLE, auto_transitions=False, send_event=True)
    if situation.has_hook:
        machine.after_state_change.append(nothing)
    for trigger, source, target in situation.others():
        machine.add_transition(trigger, source, target, conditions=allowed_event)
    machine.add_transition("go", IDLE, SCROLLING, conditions=allowed_event)
    machine.add_transition("go", SCROLLING, IDLE, conditions=allowed_event)
    return machine

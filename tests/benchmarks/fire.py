"""One guarded fire with its whole bookkeeping, by prism and by transitions.

Each contender fires ``go`` on an agent with a history that fills up. The bookkeeping is the state,
``ticks_in_state = 0``, one record with a UTC time in a deque of fifty, and one event of structlog
if the application has configured that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from transitions import EventData, Machine

from prism.agents import StatechartMixin
from prism.statechart import AgentState, Statechart, Transition
from tests.benchmarks.harness import Claim, Column, Effort, Measurement, Table, measure, ratio

DEPTH = 50
IDLE, SCROLLING = AgentState.IDLE, AgentState.SCROLLING


@dataclass(frozen=True, slots=True)
class Situation:
    """What a fire meets besides its guard.

    Args:
        context: The context of the event.
        has_hook: Whether the application has set an ``after_state_change`` of the Machine.
        size: How many transitions the chart has.
    """

    context: Any = None
    has_hook: bool = False
    size: int = 2

    def others(self) -> Iterator[tuple[str, AgentState, AgentState]]:
        """Yield the transitions of a large chart that never fire."""
        states = list(AgentState)
        for number in range(self.size - 2):
            source, target = states[number % 8], states[number // 8 % 8]
            yield f"other_{number // 64}", source, target


SITUATIONS = {
    "a guard": Situation(),
    "a guard and a context": Situation({"post_id": "post_1"}),
    "a hook of the application's": Situation(has_hook=True),
    "512 transitions": Situation(size=512),
}


class MixinAgent(StatechartMixin):
    """An agent built on prism's mixin."""


class PlainAgent:
    """An agent that knows nothing of prism; it takes new attributes, as transitions needs."""

    def __init__(self) -> None:
        self.state: Any = IDLE
        self.ticks_in_state = 0
        self.state_history: deque[Any] = deque(maxlen=DEPTH)
        self.max_history_depth = DEPTH


def allowed(agent: Any, context: Any) -> bool:
    """The guard of every contender."""
    return True


def nothing(*_: Any) -> None:
    """The hook of every contender."""


def two_state_chart(situation: Situation = SITUATIONS["a guard"]) -> Statechart[AgentState]:
    """Make the chart of prism's contenders: to and fro, with a guard."""
    moves = [
        Transition("go", IDLE, SCROLLING, guard=allowed),
        Transition("go", SCROLLING, IDLE, guard=allowed),
        *(Transition(*each, guard=allowed) for each in situation.others()),
    ]
    chart = Statechart(AgentState, moves, IDLE)
    if situation.has_hook:
        chart.machine.after_state_change.append(nothing)
    return chart


def run(effort: Effort) -> Sequence[Table]:
    """Compare the ways to fire in each situation."""
    return [_table(title, situation, effort) for title, situation in SITUATIONS.items()]


def _table(title: str, situation: Situation, effort: Effort) -> Table:
    columns = [
        _by_prism("prism, mixin", MixinAgent(), situation),
        _by_prism("prism, plain class", PlainAgent(), situation),
        _by_transitions("transitions", PlainAgent(), situation),
    ]
    found = measure(columns, effort)
    for column in columns:
        _check_books(column)

    *ours, stock = found
    claims = [claim for each in ours for claim in _claims(each, stock, situation)]

    return Table(f"fire with {title}", "µs", stock.name, found, claims)


def _claims(prism: Measurement, stock: Measurement, situation: Situation) -> list[Claim]:
    if situation.has_hook:
        text = f"{prism.name}: how many times as long as {stock.name}"
        return ratio(text, prism, stock, at_most=2.0)
    text = f"{prism.name}: how many times faster than {stock.name}"
    return ratio(text, stock, prism, at_least=10.0)


def _by_prism(name: str, agent: Any, situation: Situation) -> Column:
    names = {"chart": two_state_chart(situation), "agent": agent, "context": situation.context}
    return Column(name, "chart.fire(agent, 'go', context)", names)


def _by_transitions(name: str, agent: Any, situation: Situation) -> Column:
    """``model.trigger``, with the bookkeeping in ``after_state_change``."""
    machine = Machine(agent, AgentState, initial=IDLE, auto_transitions=False, send_event=True)
    machine.after_state_change.append(_keep_books)
    if situation.has_hook:
        machine.after_state_change.append(nothing)
    for move in (*situation.others(), ("go", IDLE, SCROLLING), ("go", SCROLLING, IDLE)):
        machine.add_transition(*move, conditions=_is_allowed)

    names = {"agent": agent, "context": situation.context}
    return Column(name, "agent.trigger('go', context=context)", names)


def _is_allowed(event: EventData) -> bool:
    return allowed(event.model, event.kwargs["context"])


def _keep_books(event: EventData) -> None:
    """Do the bookkeeping that prism does."""
    agent: Any = event.model
    move: Any = event.transition
    record = Record(move.source, move.dest, "go", datetime.now(UTC), event.kwargs["context"])

    agent.ticks_in_state = 0
    agent.state_history.append(record)
    if structlog.is_configured():
        structlog.get_logger().info("transition", record=record)


@dataclass(slots=True)
class Record:
    """A history entry as one writes it by hand; the context is kept by reference."""

    from_state: Any
    to_state: Any
    trigger: str
    timestamp: datetime
    context: Any


def _check_books(column: Column) -> None:
    """Refuse a comparison in which a contender did less work than the others."""
    history, context = column.names["agent"].state_history, column.names["context"]
    for _ in range(DEPTH):  # a short measurement on a slow machine makes fewer
        exec(column.statement, dict(column.names))
    if len(history) != DEPTH or history[-1].context != context:
        raise RuntimeError(f"{column.name} did not keep its history, so its time says nothing")

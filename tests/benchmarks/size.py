"""The same fire in small and large charts: its cost must not depend on their size."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import cycle
from typing import Any

from prism.statechart import Statechart, Transition, state_enum
from tests.benchmarks.contenders import MixinAgent, allowed
from tests.benchmarks.harness import Column, Effort, Table, measure, ratio

SIZES = (8, 64, 512)
_STATES = 8


def run(effort: Effort) -> Sequence[Table]:
    """Compare charts that grow by states and charts that grow by triggers."""
    return [
        _table("size, a ring of states with one trigger: transitions in the chart", _ring, effort),
        _table(
            f"size, {_STATES} states with more and more triggers: transitions in the chart",
            _crowd,
            effort,
        ),
    ]


def _table(title: str, build: Any, effort: Effort) -> Table:
    found = measure([build(size) for size in SIZES], effort)
    text = f"{SIZES[-1]} transitions: how many times as long as {SIZES[0]}"
    return Table(title, "µs", str(SIZES[0]), found, ratio(text, found[-1], found[0], at_most=1.1))


def _ring(size: int) -> Column:
    """As many states as transitions; the agent walks round through all of them."""
    states = list(state_enum("Ring", map(str, range(size))))
    return _column(size, states, _circle("go", states), ["go"])


def _crowd(size: int) -> Column:
    """Always the same states; the agent walks round by each trigger in turn."""
    states = list(state_enum("Crowd", map(str, range(_STATES))))
    triggers = [f"go_{number}" for number in range(size // _STATES)]
    moves = [move for trigger in triggers for move in _circle(trigger, states)]
    return _column(size, states, moves, triggers)


def _circle(trigger: str, states: Sequence[Any]) -> list[Transition[Any]]:
    following = [*states[1:], states[0]]
    return [
        Transition(trigger, here, there, guard=allowed)
        for here, there in zip(states, following, strict=True)
    ]


def _column(
    size: int, states: Sequence[Enum], moves: list[Transition[Any]], triggers: list[str]
) -> Column:
    chart = Statechart(states, moves, states[0])

    class Agent(MixinAgent):
        state_type = chart.state_type

    agent = Agent()
    names = {"chart": chart, "agent": agent, "triggers": cycle(triggers), "next": next}
    return Column(str(size), "chart.fire(agent, next(triggers))", names)

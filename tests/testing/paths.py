"""Agents and charts for the tests of `assert_path`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest

from prism.agents import SocialAgent
from prism.statechart import State, Statechart, Transition, social_media_chart, state_enum

CHART = social_media_chart()


def sent(*events: Any, **fields: Any) -> SocialAgent:
    """Make an agent and send it events, each a trigger or a trigger with its context."""
    agent = SocialAgent("ada", **fields)
    for event in events:
        trigger, context = event if isinstance(event, tuple) else (event, None)
        CHART.fire(agent, trigger, context)
    return agent


Mood = StrEnum("Mood", ["CALM", "ANGRY", "GONE"])
"""States that are equal to those of other enums, but are not theirs."""


def regions() -> Statechart[Any]:
    """Make a chart of two regions, one of which never moves."""
    states = state_enum("Regions", ["p", "q", "r", "a", "b", "c", "out"])
    p, q, r, a, b, c, out = states
    return Statechart(
        [State(p, [State(q, [a, b]), State(r, [c])], parallel=True), out],
        [Transition("x", a, b), Transition("o", p, out)],
        p,
    )


@dataclass
class Plain:
    """An agent whose history is a plain list."""

    state: str = Mood.CALM
    state_history: list[Any] = field(default_factory=list)
    ticks_in_state: int = 0


def moods(guard: Any = None, **settings: Any) -> Statechart[Mood]:
    """Make a chart of moods in which one is guarded."""
    moves = [
        Transition("bumped", Mood.CALM, Mood.ANGRY, guard),
        Transition("soothed", Mood.ANGRY, Mood.CALM),
        Transition("bumped", Mood.ANGRY, Mood.GONE, guard),
    ]
    return Statechart(Mood, moves, Mood.CALM, name="moods", **settings)


def complaint(check: Callable[[], None]) -> str:
    """Return the message with which an assertion fails."""
    with pytest.raises(AssertionError) as caught:
        check()
    return str(caught.value)

"""A day of work, sleep and a phone: a chart with regions for the tests of worlds."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from prism.statechart import History, State, Statechart, Transition
from prism.worlds import Agent, state

Day = StrEnum(
    "Day", ["AWAKE", "PLACE", "HOME", "WORK", "PHONE", "POCKET", "FEED", "WRITING", "ASLEEP"]
)
"""Where somebody is, and what is on the phone."""


TREE = [
    State(
        Day.AWAKE,
        [
            State(Day.PLACE, [Day.HOME, Day.WORK]),
            State(Day.PHONE, [Day.POCKET, Day.FEED, Day.WRITING]),
        ],
        parallel=True,
    ),
    Day.ASLEEP,
]
STEPS = [
    Transition("leaves", Day.HOME, Day.WORK),
    Transition("opens", Day.POCKET, Day.FEED),
    Transition("writes", Day.FEED, Day.WRITING),
    Transition("closes", Day.PHONE, Day.POCKET),
    Transition("sleeps", Day.AWAKE, Day.ASLEEP),
    Transition("wakes", Day.ASLEEP, History(Day.AWAKE, deep=True)),
]


def person(*more: Any, tree: Any = TREE, **options: Any) -> type[Agent]:
    """Return a kind of agents whose chart has more transitions."""

    class Person(Agent):
        chart = Statechart(tree, [*STEPS, *more], initial=Day.AWAKE, name="day", **options)
        said: list[str] = state(list)
        level: float = state(0.0)

    return Person

"""Two charts that the tests of this folder use: a phone, and a day with regions."""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import Any

from prism.agents import StatechartMixin
from prism.statechart import History, State, Statechart, Transition, done

Phone = StrEnum("Phone", ["POCKET", "ENGAGING", "READING", "REPLYING", "SENT", "BROKEN"])
"""A phone, in a pocket or in use."""


Day = StrEnum(
    "Day", ["ASLEEP", "AWAKE", "PHONE", "IDLE", "FEED", "WRITING", "BODY", "FRESH", "TIRED"]
)
"""Somebody with a phone and a body."""


class Owner(StatechartMixin):
    """Who has a phone; notes what actions ran."""

    state_type = Phone

    def __init__(self, seed: int = 1) -> None:
        self.notes: list[str] = []
        self.random = Random(seed)


class Sleeper(Owner):
    """Who has a day."""

    state_type = Day


def note(text: str) -> Any:
    """Return an action that notes that it ran, and in which state."""

    def noting(agent: Any, context: Any) -> None:
        agent.notes.append(f"{text}@{agent.state}")

    noting.__qualname__ = text
    return noting


USED = State(
    Phone.ENGAGING,
    [Phone.READING, Phone.REPLYING, Phone.SENT],
    entry=note("unlock"),
    exit=note("lock"),
)

OPENS = Transition("opens", Phone.POCKET, Phone.ENGAGING)

BASE = [
    OPENS,
    Transition("writes", Phone.READING, Phone.REPLYING),
    Transition("sends", Phone.REPLYING, Phone.SENT),
    Transition("rings", Phone.ENGAGING, Phone.POCKET),
]


def phone(*more: Transition[Phone], states: Any = None, **options: Any) -> Statechart[Phone]:
    """Return the chart of a phone with further transitions, which are tried after the others."""
    return Statechart(
        states or [Phone.POCKET, USED, Phone.BROKEN],
        [*BASE, *more],
        initial=Phone.POCKET,
        **{"final_states": [Phone.SENT, Phone.BROKEN], **options},
    )


def whole_phone() -> Statechart[Phone]:
    """Return the chart of a phone with a history, and that goes back into the pocket when done."""
    return phone(
        Transition("resumes", Phone.POCKET, History(Phone.ENGAGING)),
        Transition(done(Phone.ENGAGING), Phone.ENGAGING, Phone.POCKET),
    )


def is_fresh(agent: Any, context: Any) -> bool:
    """Pass while the body is fresh."""
    return "fresh" in agent.state.split("+")


AWAKE = State(
    Day.AWAKE,
    [State(Day.PHONE, [Day.IDLE, Day.FEED, Day.WRITING]), State(Day.BODY, [Day.FRESH, Day.TIRED])],
    parallel=True,
)


def day(*more: Transition[Day], **options: Any) -> Statechart[Day]:
    """Return the chart of a day with regions and further transitions."""
    return Statechart(
        [Day.ASLEEP, AWAKE],
        [
            Transition("wakes", Day.ASLEEP, Day.AWAKE),
            Transition("opens", Day.IDLE, Day.FEED),
            Transition("posts", Day.FEED, Day.WRITING, is_fresh),
            Transition("tires", Day.FRESH, Day.TIRED),
            Transition("sleeps", Day.AWAKE, Day.ASLEEP),
            *more,
        ],
        initial=Day.ASLEEP,
        **options,
    )

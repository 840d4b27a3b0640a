"""Answers of reasoners in charts with regions: each holds while its own region does not move."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from prism.statechart import Statechart, Transition
from tests.statechart.nested.phone import AWAKE, Day, Sleeper, note

ASKED_IN = "feed+fresh"

Meanwhile = Callable[[Statechart[Any], Any], object]


class Chooser:
    """A reasoner that chooses a state by its text, after something has happened."""

    def __init__(self, choice: str, meanwhile: Callable[[], object]) -> None:
        self.choice, self.meanwhile = choice, meanwhile

    async def decide(
        self, agent: Any, state: Any, trigger: str, options: list[Any], context: Any = None
    ) -> Any:
        """Choose."""
        self.meanwhile()
        return next(option for option in options if option == self.choice)


def chart_of(*more: Transition[Any], **options: Any) -> Statechart[Any]:
    """Return a chart in which the feed decides, and the body tires and rests."""
    steps = [
        Transition("thinks", Day.FEED, Day.FEED, action=note("reads on")),
        Transition("thinks", Day.FEED, Day.WRITING, action=note("writes")),
        *more,
        Transition("closes", Day.FEED, Day.IDLE),
        Transition("opens", Day.IDLE, Day.FEED),
        Transition("tires", Day.FRESH, Day.TIRED),
        Transition("rests", Day.TIRED, Day.FRESH),
    ]
    arguments = {"decision_states": [Day.FEED], "initial": (Day.FEED, Day.FRESH), **options}
    return Statechart([AWAKE, Day.ASLEEP], steps, **arguments)


def bare() -> Any:
    """Return an agent without a history."""
    return SimpleNamespace(agent_id="a1", notes=[])


def fires(*triggers: str) -> Meanwhile:
    """Return what fires events one after the other."""
    return lambda chart, agent: [chart.fire(agent, trigger) for trigger in triggers]


async def asked(
    chart: Statechart[Any], agent: Any, choice: str, meanwhile: Meanwhile, way: str
) -> Any:
    """Let an agent be asked, and something happen before the answer is carried out."""
    state = chart.begin(agent)
    assert state == ASKED_IN
    if way == "afire":
        chooser = Chooser(choice, lambda: meanwhile(chart, agent))
        return await chart.afire(agent, "thinks", reasoner=chooser)

    (option,) = (each for each in chart.enabled_targets(agent, "thinks") if each == choice)
    meanwhile(chart, agent)
    return chart.fire_to(agent, "thinks", option, asked_in=state)


def discarded(events: list[Any]) -> list[str]:
    """Return why answers were discarded."""
    return [each["reason"] for each in events if each["event"] == "statechart.answer_discarded"]


@pytest.mark.parametrize("way", ["afire", "fire_to"])
@pytest.mark.parametrize("made", [Sleeper, bare])
@pytest.mark.parametrize(
    ("choice", "end", "note"),
    [
        (ASKED_IN, "feed+tired", "reads on@feed+tired"),
        ("writing+fresh", "writing+tired", "writes@feed+tired"),
    ],
)
async def test_an_answer_holds_though_another_region_has_moved(
    way: str, made: Callable[[], Any], choice: str, end: str, note: str, events: list[Any]
) -> None:
    """Whether it leads elsewhere or stays: its own region is where it was."""
    agent = made()
    assert await asked(chart_of(), agent, choice, fires("tires"), way) == end
    assert (agent.state, agent.notes, discarded(events)) == (end, [note], [])


@pytest.mark.parametrize("choice", [ASKED_IN, "writing+fresh"])
async def test_an_answer_is_discarded_once_its_own_region_has_moved(
    choice: str, events: list[Any]
) -> None:
    """Even if the region is back where it was, and another one has moved as well."""
    agent = Sleeper()
    meanwhile = fires("tires", "closes", "opens")
    assert await asked(chart_of(), agent, choice, meanwhile, "afire") is None
    assert (agent.state, agent.notes, discarded(events)) == ("feed+tired", [], ["moved"])

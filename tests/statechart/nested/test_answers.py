"""Answers of reasoners in charts with regions: each holds while its own region does not move."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from prism.statechart import Statechart, Transition
from tests.statechart.nested.phone import AWAKE, Day, Sleeper, note

STEPS = [
    Transition("thinks", Day.FEED, Day.FEED, action=note("reads on")),
    Transition("thinks", Day.FEED, Day.WRITING, action=note("writes")),
    Transition("closes", Day.FEED, Day.IDLE),
    Transition("opens", Day.IDLE, Day.FEED),
    Transition("tires", Day.FRESH, Day.TIRED),
]
STAYS, WRITES = "feed+fresh", "writing+fresh"


@pytest.mark.parametrize("has_history", [True, False])
@pytest.mark.parametrize(
    ("choice", "meanwhile", "state", "done"),
    [
        (STAYS, ["tires"], "feed+tired", ["reads on@feed+tired"]),
        (WRITES, ["tires"], "writing+tired", ["writes@feed+tired"]),
        (STAYS, ["tires", "closes"], "idle+tired", []),
        (WRITES, ["tires", "closes"], "idle+tired", []),
        # its own region is back where it was, which the history tells
        (STAYS, ["tires", "closes", "opens"], "feed+tired", []),
        (WRITES, ["tires", "closes", "opens"], "feed+tired", []),
    ],
)
async def test_an_answer_holds_unless_its_own_region_has_moved(
    choice: str,
    meanwhile: list[str],
    state: str,
    done: list[str],
    has_history: bool,
    events: list[Any],
) -> None:
    """Whether it leads elsewhere or stays, and whatever another region has done."""
    if "opens" in meanwhile and not has_history:
        return
    chart = Statechart([AWAKE], STEPS, (Day.FEED, Day.FRESH), decision_states=[Day.FEED])
    agent: Any = Sleeper() if has_history else SimpleNamespace(agent_id="a1", notes=[])

    class Chooser:
        async def decide(self, *question: Any) -> Any:
            for trigger in meanwhile:
                chart.fire(agent, trigger)
            return next(option for option in question[3] if option == choice)

    assert chart.begin(agent) == STAYS
    made = await chart.afire(agent, "thinks", reasoner=Chooser())
    assert (made, agent.state, agent.notes) == (state if done else None, state, done)
    reasons = [each["reason"] for each in events if each["event"] == "statechart.answer_discarded"]
    assert reasons == ([] if done else ["moved"])

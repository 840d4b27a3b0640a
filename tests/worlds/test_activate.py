"""Turns that a world gives itself: repeated, in stages, and given wrongly."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest

from prism import Run
from prism.errors import DefinitionError, PrismError
from prism.statechart import State, Statechart, Transition
from prism.worlds import Agent, World, during, state

Lamp = StrEnum("Lamp", ["BOX", "OFF", "ON"])


class Bulb(Agent):
    """Something that goes on at a rate, by chance in each tick."""

    chart = Statechart(
        [State(Lamp.BOX, [Lamp.OFF, Lamp.ON])],
        [
            Transition("lights", Lamp.OFF, Lamp.ON, rate=0.5),
            Transition("asks", Lamp.OFF, Lamp.OFF),
            Transition("asks", Lamp.OFF, Lamp.ON),
        ],
        initial=Lamp.OFF,
        decision_states=[Lamp.OFF],
    )
    turns: int = state(0)


class Room(World[Bulb]):
    """Counts turns, in one stage."""

    rounds = 8
    stages: int = 1
    order_of_turns: list[str] = state(list)

    async def tick(self) -> None:
        """Activate all in each stage."""
        for _ in range(self.stages):
            await self.activate(self.agents)

    @during(Lamp.BOX)
    def live(self, bulb: Bulb) -> None:
        """Count the turn."""
        bulb.turns += 1


def test_time_passes_once_a_tick_in_any_number_of_stages() -> None:
    """What a chart does by chance in a tick is as likely, and every stage gives a turn."""
    lit, turns = [], []
    for stages in (1, 3):
        run = Run(Room(stages=stages), 200, seed=1)
        lit.append([each.states["on"] for each in run.run().rounds])
        turns.append(sum(bulb.turns for bulb in run.agents))
    assert lit[0] == lit[1]
    assert turns == [1600, 4800]


def test_who_is_activated_twice_has_two_turns_one_after_the_other() -> None:
    """Also if the first has to wait for a decision."""

    class Twice(Room):
        rounds = 1

        async def tick(self) -> None:
            first, second = self.agents
            await self.activate([first, second, first, first])
            await self.activate(second)

        @during(Lamp.BOX)
        async def live(self, bulb: Bulb) -> None:
            self.order_of_turns.append(f"{bulb.agent_id} begins")
            await bulb.decide("asks", weights={Lamp.OFF: 1})
            self.order_of_turns.append(f"{bulb.agent_id} ends")

    run = Run(Twice(), 2, seed=1)
    run.run()
    told = [each.removeprefix("bulb_") for each in run.world.order_of_turns]
    assert told == [
        *("1 begins", "2 begins", "1 ends", "2 ends", "1 begins", "1 ends", "1 begins", "1 ends"),
        *("2 begins", "2 ends"),
    ]


def tick_of(tick: Any, **more: Any) -> type[World[Any]]:
    return type("Own", (Room,), {"tick": tick, "__module__": __name__, **more})


async def by_id(world: Any) -> None:
    await world.activate(["bulb_1"])


async def fine(world: Any) -> None:
    await world.activate()


@pytest.mark.parametrize(
    ("world", "problem"),
    [
        (lambda: tick_of(by_id), "activate must get agents, got 'bulb_1'"),
        (lambda: tick_of(lambda _: None), "Own.tick must be async: write  async def tick"),
        (lambda: tick_of(fine, live=during(Lamp.BOX, rate=1.0)(lambda *_: None)), "leave out tick"),
        (
            lambda: tick_of(fine, live=during(Lamp.BOX, rate="stagse")(lambda *_: None)),
            "Own.live: Own has no field 'stagse'.* did you mean 'stages'",
        ),
    ],
)
def test_a_tick_that_gives_no_turns_is_refused(
    world: Callable[[], type[World[Any]]], problem: str
) -> None:
    """In words that tell the cure."""
    with pytest.raises((PrismError, DefinitionError), match=problem):
        Run(world(), 2).run()

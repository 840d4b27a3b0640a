"""Timers and rates of charts in worlds: to the tick, and by their laws."""

from __future__ import annotations

from enum import StrEnum
from math import exp, sqrt
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.statechart import (
    History,
    State,
    Statechart,
    Transition,
)
from prism.worlds import Agent, World, during, state
from tests.kit.days import Day, person
from tests.kit.worlds import run_logged

SEEDS = range(20)


def config(agent: Any) -> str:
    """Return the text of an agent's state."""
    return str(agent.state)


@pytest.mark.parametrize("way", ["all", "one", "together", "independent", "listed"])
@pytest.mark.sampled(5)
def test_after_fires_in_its_tick_however_turns_are_given(way: str) -> None:
    """Of a leaf, a region and a composite; only an agent that moves begins anew."""
    kind = person(
        Transition("leaves", Day.HOME, Day.WORK, after=3),
        Transition("opens", Day.POCKET, Day.FEED, after=2),
        Transition("dozes", Day.AWAKE, Day.ASLEEP, after=7),
        Transition("rises", Day.ASLEEP, History(Day.AWAKE, deep=True), after=2),
    )

    class House(World[Any]):
        rounds = 6
        ticks = 2
        together = way == "together"
        independent = way == "independent"

        async def tick(self) -> None:
            chosen = {"one": self.agents.sample(1), "listed": self.agents}
            await self.activate(chosen.get(way))

    run = Run(House, [kind() for _ in range(4)], seed=3)
    run.run()
    for agent in run.agents:
        assert [record.trigger for record in agent.state_history] == [
            *("opens", "leaves", "dozes", "rises"),
        ]
        # ticks 2, 3, 7, 9: and so three more have passed
        assert agent.ticks_in_state == 3
        assert config(agent) == "work+feed"


def test_a_limit_of_a_state_around_others_is_counted_as_a_time_out() -> None:
    """More than so many ticks; what happens inside does not begin it anew."""
    kind = person(
        Transition("timeout", Day.PHONE, Day.POCKET),
        Transition("turns", Day.WRITING, Day.FEED, after=1),
        Transition("turns", Day.FEED, Day.WRITING, after=1),
        timeouts={Day.PHONE: 4},
    )

    class House(World[Any]):
        rounds = 5

        def setup(self) -> None:
            for agent in self.agents:
                agent.begin_in(kind.chart.state_of("home+feed"))

    results = Run(House, [kind()], seed=1).run()
    assert [each.timeouts for each in results.rounds] == [{}, {}, {}, {}, {"home+feed": 1}]


RATE, OTHER = 0.3, 0.6


class Lamp(StrEnum):
    """A lamp that others switch."""

    ON = "on"
    OFF = "off"
    RED = "red"
    LEFT = "left"
    RIGHT = "right"
    BOTH = "both"
    SIDE = "side"
    LIGHT = "light"


class Bulb(Agent):
    """One that is switched at rates, in one region of two."""

    chart = Statechart(
        [
            State(
                Lamp.BOTH,
                [
                    State(Lamp.LIGHT, [Lamp.OFF, Lamp.ON, Lamp.RED]),
                    State(Lamp.SIDE, [Lamp.LEFT, Lamp.RIGHT]),
                ],
                parallel=True,
            )
        ],
        [
            Transition("lights", Lamp.OFF, Lamp.ON, rate=RATE),
            Transition("reddens", Lamp.OFF, Lamp.RED, rate=lambda agent, _: agent.other),
            Transition("ends", Lamp.ON, Lamp.OFF),
            Transition("ends", Lamp.RED, Lamp.OFF),
            Transition("turns", Lamp.LEFT, Lamp.RIGHT, after=3),
            Transition("turns", Lamp.RIGHT, Lamp.LEFT, after=3),
        ],
        initial=Lamp.BOTH,
        name="bulb",
    )
    other: float = OTHER
    waits: list[int] = state(list)
    kinds: list[str] = state(list)
    draws: list[float] = state(list)
    since: int = state(0)


class Bulbs(World[Bulb]):
    """Bulbs that go out as soon as they are lit."""

    rounds = 25
    draws_a_turn: int = 1
    now: int = state(0)

    def tick_begins(self) -> None:
        """Count the ticks."""
        self.now += 1

    @during(Lamp.SIDE)
    def burn(self, bulb: Bulb) -> None:
        """Draw something that has nothing to do with the chart."""
        bulb.draws = [*bulb.draws, *(bulb.random.random() for _ in range(self.draws_a_turn))]

    @during(Lamp.ON, Lamp.RED)
    def end(self, bulb: Bulb) -> None:
        """Go out, in the tick after that in which it was lit."""
        bulb.waits = [*bulb.waits, self.now - bulb.since - 1]
        bulb.kinds = [*bulb.kinds, str(bulb.state).partition("+")[0]]
        bulb.since = self.now
        bulb.fire("ends")


def test_the_chart_draws_from_numbers_of_its_own() -> None:
    """Whatever steps draw, the chart does the same; and what steps draw does not depend on it."""

    def run(**given: Any) -> Any:
        made = Run(Bulbs(**given), 5, seed=4, rounds=20)
        made.run()
        return made.agents

    once, often = run(), run(draws_a_turn=3)
    assert [bulb.waits for bulb in once] == [bulb.waits for bulb in often]
    assert [bulb.kinds for bulb in once] == [bulb.kinds for bulb in often]
    assert sum(len(bulb.waits) for bulb in once) > 20
    fast = Run(Bulbs, [Bulb(other=9.0) for _ in range(5)], seed=4, rounds=20)
    fast.run()
    assert [bulb.draws for bulb in once] == [bulb.draws for bulb in fast.agents]
    assert [bulb.waits for bulb in once] != [bulb.waits for bulb in fast.agents]


class Rated(World[Bulb]):
    """The bulbs in continuous time."""

    rounds = 3
    ticks = 2
    lit: list[tuple[float, str]] = state(list)

    @during(Lamp.ON, Lamp.RED, rate=5.0)
    def end(self, bulb: Bulb) -> None:
        """Go out at a rate, and note when."""
        bulb.fire("ends")


@pytest.mark.slow
def test_rates_are_exact_in_time_in_a_world_of_rates(tmp_path: Path) -> None:
    """The share of those lit in continuous time is that of the theory, not of a tick's chance."""
    lit = red = 0
    total = RATE + OTHER
    for seed in SEEDS:
        run = Run(Rated, 60, seed=seed)
        run.run()
        lit += 60 - run.world.count(Lamp.OFF)
        red += run.world.count(Lamp.RED)
    # two states: dark with rate `total`, lit with rate 5, after three rounds at rest
    share = total / (total + 5) * (1 - exp(-3 * (total + 5)))
    number = 60 * len(SEEDS)
    assert abs(lit / number - share) < 4 * sqrt(share * (1 - share) / number)
    part = OTHER / total
    assert abs(red / lit - part) < 4 * sqrt(part * (1 - part) / lit)

    log = run_logged(tmp_path, Rated(), 50, seed=1)
    times = [
        event["timestamp"]
        for event in log.events("statechart.transition")
        if event["trigger"] in ("lights", "reddens", "ends")
    ]
    assert times == sorted(times)
    assert len({*times}) == len(times) > 100

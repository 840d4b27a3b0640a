"""Worlds whose charts have states inside states."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from prism import Run
from prism.statechart import State, Statechart, Transition
from prism.worlds import Agent, World, during, state
from tests.kit.worlds import run_logged


class Day(StrEnum):
    """What somebody does all day."""

    ASLEEP = "asleep"
    AWAKE = "awake"
    WORK = "work"
    IDLE = "idle"
    FEED = "feed"


TREE = [Day.ASLEEP, State(Day.AWAKE, [Day.IDLE, State(Day.WORK, [Day.FEED])])]
STEPS = [
    Transition("wakes", Day.ASLEEP, Day.AWAKE),
    Transition("reads", Day.IDLE, Day.FEED),
    Transition("sleeps", Day.AWAKE, Day.ASLEEP),
]


class Person(Agent):
    """Somebody with a chart of composites."""

    chart = Statechart(TREE, STEPS, initial=Day.ASLEEP, name="day")
    done: str = ""


class House(World[Person]):
    """People who wake up and read."""

    rounds = 4

    @during(Day.ASLEEP)
    def dream(self, person: Person) -> None:
        """Wake up at once."""
        person.fire("wakes")

    @during(Day.AWAKE)
    def live(self, person: Person) -> None:
        """Read, or go to bed."""
        person.done += "l"
        person.fire("reads")

    @during(Day.WORK)
    def work(self, person: Person) -> None:
        """Go to bed, whatever there is to do inside of work."""
        person.done += "w"
        person.fire("sleeps")


def test_the_innermost_step_around_a_leaf_runs() -> None:
    """The step of a composite is that of whatever is active inside, unless an inner one has one."""
    run = Run(House, 3, seed=1)
    run.run()
    assert [agent.done for agent in run.agents] == ["lw"] * 3
    assert {agent.state for agent in run.agents} == {Day.IDLE}


def test_composites_are_counted_with_all_that_is_inside() -> None:
    """By the world, by its share, and by sets of agents."""
    run = Run(House, 4, seed=1, rounds=1)
    run.run()
    world = run.world
    assert (world.count(Day.AWAKE), world.count(Day.WORK), world.count(Day.IDLE)) == (4, 0, 4)
    assert world.share(Day.AWAKE) == 1.0
    assert len(world.agents.where(state=Day.AWAKE)) == 4
    assert len(world.agents.where(state=[Day.ASLEEP, Day.AWAKE])) == 4
    assert len(world.agents.where(state=Day.WORK)) == 0
    assert world.agents.count(Day.AWAKE) == 4


def test_at_rates_what_happens_in_a_composite_happens_in_each_leaf(tmp_path: Path) -> None:
    """As many events come as the rate says, whichever leaf is active."""

    class Rated(World[Person]):
        rounds = 1
        seen: int = state(0)

        def setup(self) -> None:
            for person in self.agents.sample(50):
                person.begin_in(Day.IDLE)
            for person in self.agents.where(state=Day.IDLE).sample(25):
                person.begin_in(Day.FEED)

        @during(Day.AWAKE, rate=20.0)
        def live(self, person: Person) -> None:
            self.seen += 1

    run = run_logged(tmp_path, Rated(), 100, seed=1).run
    # 1,000 events are expected, with a standard deviation of 32
    assert 870 < run.world.seen < 1130

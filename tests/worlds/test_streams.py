"""The random streams of agents."""

from enum import StrEnum

import pytest

from prism import Run
from prism.errors import SimulationError
from prism.randomness import RandomStream
from prism.randomness._stream import GOLDEN, keys_of, mixed
from prism.statechart import Statechart
from prism.worlds import Agent, World, during, measure

Mood = StrEnum("Mood", ["CALM", "KEEN"])


class Person(Agent):
    """Somebody."""

    chart = Statechart(Mood, [], Mood.CALM)


drawn: list[float] = []


class Noted(World[Person]):
    """One person who draws a number in every tick, the last of which is put back."""

    rounds, ticks = 2, 2

    @during(Mood.CALM)
    def draw(self, person: Person) -> None:
        """Draw a number twice."""
        taken = person.random.take()
        person.random.put_back(taken)
        assert person.random.random() == taken[1]
        drawn.append(taken[1])


def _numbers(seed: int, part: int) -> list[float]:
    key = keys_of(3, seed, "agent", "person_1")[1]
    stream = RandomStream.of_key(mixed(key + part * GOLDEN))
    return [stream.random(), stream.random()]


def test_each_round_has_its_own_sequence_which_goes_on_from_tick_to_tick() -> None:
    """Numbers are keyed by seed, agent and round, and taken ones that are put back come again."""
    drawn.clear()
    Run(Noted(), 1, seed=5).run()

    assert drawn == [*_numbers(5, 2), *_numbers(5, 4)]


def test_a_number_that_is_put_back_does_not_outlast_its_round() -> None:
    """The next round begins with its own first number, whatever was put back before."""
    run = Run(Noted(), 1, seed=5, rounds=1)
    run.run()
    person = run.agents[0]
    host = person._host
    person.random.put_back(person.random.take())
    host.epoch += 1

    assert person.random.take()[1] == _numbers(5, host.epoch)[0]


class Looking(World[Person]):
    """A world whose measure draws."""

    @measure
    def drawn(self) -> float:
        """Draw from the stream of an agent."""
        return self.agents[0].random.random()


def test_a_measure_cannot_draw_from_an_agents_stream() -> None:
    """Who draws where nothing may be drawn is told so."""
    with pytest.raises(SimulationError, match="'person_1' cannot draw random numbers"):
        Run(Looking(), 1, rounds=1).run()

"""How many agents are in a state, and how long they stay there, against exact laws."""

from enum import StrEnum
from pathlib import Path

import pytest

from prism import Run
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, state
from tests.kit.laws import assert_follows, on_fixed_seeds, p_of_counts, p_of_outcomes
from tests.kit.textbook import Vote, Voter
from tests.kit.worlds import run_logged

pytest.importorskip("scipy")

LIMIT = 6


class Lamp(StrEnum):
    """States of a light."""

    OFF = "off"
    ON = "on"


class Bulb(Voter):
    """A lamp that is switched on, which is blue, and off."""

    was_on: bool = state(False)


class Switching(World[Bulb]):
    """Lamps that are switched at random: each a Markov chain of two states."""

    rounds = 4
    ticks = 20
    on: float = 0.3
    off: float = 0.2
    pairs: list[int] = state(lambda: [0, 0, 0, 0])

    @during(*Vote)
    def switch(self, bulb: Bulb) -> None:
        """Switch with the probability that belongs to the state."""
        bulb.was_on = bulb.state is Vote.BLUE
        if bulb.random.chance(self.off if bulb.was_on else self.on):
            bulb.take(Vote.RED if bulb.was_on else Vote.BLUE)

    def round_ends(self) -> None:
        """Count the lamps by their states before and after the last tick."""
        for bulb in self.agents:
            self.pairs[2 * bulb.was_on + (bulb.state is Vote.BLUE)] += 1


class Candle(Agent):
    """A light that goes out by itself, or after a time."""

    chart = Statechart(
        Lamp,
        [Transition("goes_out", Lamp.ON, Lamp.OFF)],
        Lamp.ON,
        final_states=[Lamp.OFF],
    )


class Stump(Candle):
    """A candle that lasts no longer than a few ticks."""

    chart = Candle.chart.extended(
        transitions=[Transition("timeout", Lamp.ON, Lamp.OFF)], timeouts={Lamp.ON: LIMIT}
    )


class Burning(World[Candle]):
    """Candles that go out with one probability at every tick."""

    ticks = 60
    rounds = 1
    is_short: bool = False
    out: float = 0.25

    def populate(self, agents: int) -> list[Candle]:
        """Make candles of one kind."""
        return [Stump() if self.is_short else Candle() for _ in range(agents)]

    @during(Lamp.ON)
    def burn(self, candle: Candle) -> None:
        """Go out with the probability."""
        if candle.random.chance(self.out):
            candle.fire("goes_out")


def p_of_pairs(seed: int) -> float:
    """Return the p-value of the states before and after a tick, against the stationary chain."""
    world = Switching()
    Run(world, 800, seed=seed).run()
    on, off = world.on, world.off
    share = on / (on + off)
    law = [(1 - share) * (1 - on), (1 - share) * on, share * off, share * (1 - off)]

    return p_of_counts(world.pairs, law)


def p_of_dwell(seed: int, folder: Path, world: Burning) -> float:
    """Return the p-value of the dwell times in a log against the geometric law, cut at a limit."""
    done = run_logged(folder, world, 1200, seed=seed)
    dwelt = [line["ticks_in_state"] for line in done.events("statechart.transition")]
    most = LIMIT if world.is_short else world.ticks
    assert len(dwelt) == 1200
    assert max(dwelt) <= most + world.is_short

    return p_of_outcomes(dwelt, lambda k: world.out * (1 - world.out) ** (k - 1) * (k > 0), most)


@on_fixed_seeds
def test_shares_of_two_states(seeds: range) -> None:
    """After 20 ticks the states of a tick's beginning and end have the stationary law.

    A chain that is switched on with probability a and off with b is on with a / (a + b), and the
    rest of its start is (1 - a - b)^t, here below 1e-6 (Feller 1968, An Introduction to Probability
    Theory I, XV.2 and XVI.2); the four pairs of states have this share times the probability of the
    transition. The lamps are counted four times, 20 ticks apart.
    """
    assert_follows([p_of_pairs(seed + 1) for seed in seeds])


@on_fixed_seeds
def test_geometric_dwell(seeds: range, tmp_path: Path) -> None:
    """What is left with probability q at every tick lasts k ticks with q (1 - q)^(k - 1).

    Feller (1968), VI.8 and XIII.9: the only law on whole numbers without memory.
    """
    assert_follows([p_of_dwell(seed, tmp_path, Burning()) for seed in seeds])


@on_fixed_seeds
def test_geometric_dwell_that_times_out(seeds: range, tmp_path: Path) -> None:
    """A time-out after L ticks ends all visits that would have lasted longer, at tick L + 1.

    The law of min(K, L + 1) for a geometric K: the last value has (1 - q)^L, all others are as they
    were.
    """
    assert_follows([p_of_dwell(seed, tmp_path, Burning(is_short=True)) for seed in seeds])

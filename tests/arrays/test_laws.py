"""Worlds of arrays agree with exact laws, whoever is named in which order."""

from collections import Counter
from enum import StrEnum
from math import comb, sqrt

import numpy as np
import pytest

from prism import Agent, Run, Statechart, Transition, World
from prism.arrays import Agents, ArrayChart, ArrayNetwork, ArrayWorld, small_world
from tests.kit.laws import LEAST_P, p_of_counts

Lamp = StrEnum("Lamp", ["OFF", "DIM", "BRIGHT"])
AROUND = [(Lamp.OFF, Lamp.DIM), (Lamp.DIM, Lamp.BRIGHT), (Lamp.BRIGHT, Lamp.OFF)]


class Lamps(ArrayWorld):
    """Lamps that change when they are told to."""

    chart = ArrayChart(
        Lamp,
        [
            *(Transition("turns", one, other) for one, other in AROUND),
            Transition("picks", Lamp.OFF, Lamp.OFF),
            Transition("picks", Lamp.OFF, Lamp.DIM),
            Transition("picks", Lamp.OFF, Lamp.BRIGHT),
        ],
        Lamp.OFF,
        name="lamp",
    )


# Draws


class Chances(Lamps):
    """Each lamp turns with the same chance in each round."""

    rounds = 6
    chance: float = 0.3

    def step(self) -> None:
        self.fire(self.agents[self.random(self.agents) < self.chance], "turns")


def test_agents_that_draw_are_a_markov_chain() -> None:
    """After six rounds of independent draws, states have the binomial law of the chain."""
    size, rounds, chance = 30_000, 6, 0.3
    counts = Chances(size, seed=4).run()[-1].states
    law = [0.0, 0.0, 0.0]
    for turns in range(rounds + 1):
        law[turns % 3] += comb(rounds, turns) * chance**turns * (1 - chance) ** (rounds - turns)
    assert p_of_counts([counts[each] for each in Lamp], law) > LEAST_P


def test_decisions_have_the_chances_of_their_weights() -> None:
    """Where agents with different weights decide, each group has the shares that it weighs."""
    world = Lamps(30_000, seed=5)
    is_odd = world.agents % 2 == 1
    weights = {Lamp.OFF: np.where(is_odd, 1, 0), Lamp.DIM: 2.0, Lamp.BRIGHT: np.where(is_odd, 1, 6)}
    drawn = world.decide(world.agents, "picks", weights)
    for group, law in ((is_odd, [0.25, 0.5, 0.25]), (~is_odd, [0.0, 0.25, 0.75])):
        counts = [int(drawn[each][group].sum()) for each in Lamp]
        assert p_of_counts(counts, law) > LEAST_P
        assert [int(world.is_in(world.agents[group], each).sum()) for each in Lamp] == counts


def test_numbers_of_an_agent_are_uniform_and_independent() -> None:
    """Numbers of successive draws, agents and seeds fill the unit square evenly."""
    one, other = Lamps(20_000, seed=1), Lamps(20_000, seed=2)
    first, second, elsewhere = (world.random(world.agents) for world in (one, one, other))
    for left, right in ((first, second), (first, elsewhere), (first[1:], first[:-1])):
        cells = np.histogram2d(left, right, bins=8, range=[[0, 1], [0, 1]])[0].ravel()
        assert p_of_counts(cells.tolist(), [1 / 64] * 64) > LEAST_P


def test_numbers_do_not_depend_on_who_else_draws() -> None:
    """Of one draw, an agent has the same number in any company and order; named again, others."""
    few = np.array([7, 3, 950])
    alone = Lamps(1000, seed=3).random(few)
    assert alone.tolist() == Lamps(1000, seed=3).random(np.arange(1000))[few].tolist()
    repeated = Lamps(1000, seed=3).random(np.array([3, 3, 7, 950, 7, 3]))
    assert repeated[[2, 0, 3]].tolist() == alone.tolist()
    assert len({*repeated.tolist()}) == 6


def test_the_order_of_a_round_is_random_and_that_of_its_agents() -> None:
    """All orders are equally likely, and two agents keep theirs whoever else is ordered."""
    orders = Counter(tuple(Lamps(3, seed=seed).in_order([0, 1, 2]).tolist()) for seed in range(600))
    assert len(orders) == 6
    assert p_of_counts([*orders.values()], [1 / 6] * 6) > LEAST_P
    world = Lamps(100, seed=np.int64(1))
    among = world.in_order(world.agents)
    assert world.in_order([41, 3]).tolist() == [each for each in among if each in (3, 41)]


# Order


def test_it_does_not_matter_in_which_order_agents_are_named() -> None:
    """Events, decisions and draws have the same results for agents in any order."""
    shuffled = np.random.default_rng(1).permutation(500)
    results = []
    for who in (np.arange(500), shuffled):
        world = Lamps(500, seed=9)
        world.decide(who, "picks", {Lamp.OFF: 1, Lamp.DIM: 1, Lamp.BRIGHT: 1})
        world.fire(who[world.random(who) < 0.5], "turns")
        results.append([world.where(each).tolist() for each in Lamp])
    assert results[0] == results[1]


def test_an_agent_that_is_named_twice_moves_once() -> None:
    """An event is fired once for each agent, where it is named first."""
    world = Lamps(4)
    assert world.fire([2, 1, 2, 2], "turns").tolist() == [True, True, False, False]
    assert world.where(Lamp.DIM).tolist() == [1, 2]
    assert world.count(Lamp.BRIGHT) == 0


def test_an_agent_that_is_asked_twice_decides_again_while_it_may() -> None:
    """It is asked in order, as often as the event has a transition from its state."""
    world = Lamps(2000, seed=1)
    asked = np.concatenate([world.agents, world.agents])
    drawn = world.decide(asked, "picks", {Lamp.OFF: 1, Lamp.BRIGHT: 1})
    first, second = (drawn[Lamp.BRIGHT][part] for part in (slice(2000), slice(2000, None)))
    assert not (first & second).any()
    assert (drawn[Lamp.OFF][2000:] | second).tolist() == drawn[Lamp.OFF][:2000].tolist()
    law = [0.5, 0.25, 0.25]
    assert p_of_counts([first.sum(), second.sum(), world.count(Lamp.OFF)], law) > LEAST_P


def test_the_first_transition_whose_guard_passes_is_made() -> None:
    """Transitions are tried in order, for each agent; actions run before agents move."""
    seen: list[tuple[str, list[int], int]] = []

    def note(world: ArrayWorld, who: Agents) -> None:
        seen.append(("low", who.tolist(), world.count(Lamp.DIM)))

    class Guarded(ArrayWorld):
        chart = ArrayChart(
            Lamp,
            [
                Transition(
                    "goes", Lamp.OFF, Lamp.DIM, lambda world, who: world.level[who] < 3, note
                ),
                Transition("goes", Lamp.OFF, Lamp.BRIGHT, lambda world, who: world.level[who] < 6),
            ],
            Lamp.OFF,
        )

        def setup(self) -> None:
            self.level = np.arange(self.size)

    world = Guarded(8)
    moved = world.fire([7, 0, 4, 1], "goes")
    assert moved.tolist() == [False, True, True, True]
    assert world.where(Lamp.DIM).tolist() == [0, 1]
    assert world.where(Lamp.BRIGHT).tolist() == [4]
    assert seen == [("low", [0, 1], 0)]


# Time


TIMED = [
    Transition("timeout", Lamp.OFF, Lamp.DIM),
    Transition("timeout", Lamp.DIM, Lamp.BRIGHT),
    Transition("timeout", Lamp.BRIGHT, Lamp.OFF),
]
LIMITS = {Lamp.OFF: 2, Lamp.DIM: 1, Lamp.BRIGHT: 4}


class Timed(ArrayWorld):
    """Lamps that change by themselves."""

    chart = ArrayChart(Lamp, TIMED, Lamp.OFF, timeouts=LIMITS)
    rounds = 30

    def setup(self) -> None:
        self.begin_in([1, 2], Lamp.DIM)
        self.begin_in([3], Lamp.BRIGHT)


class TimedLamp(Agent):
    """One of them."""

    chart = Statechart(Lamp, TIMED, Lamp.OFF, timeouts=LIMITS)


class TimedOfObjects(World[TimedLamp]):
    """The same, of objects."""

    rounds = 30

    def setup(self) -> None:
        for place, state in ((1, Lamp.DIM), (2, Lamp.DIM), (3, Lamp.BRIGHT)):
            self.agents[place].begin_in(state)


def test_states_time_out_in_the_round_in_which_those_of_objects_do() -> None:
    """Without chance, both engines have the same counts in every round."""
    objects = [dict(each.states) for each in Run(TimedOfObjects(), 5).run().rounds]
    assert [dict(each.states) for each in Timed(5).run()] == objects


# Networks


class Household(ArrayWorld):
    """Households of four, in each of which one is ill for a round (Reed and Frost)."""

    chart = ArrayChart(
        Lamp,
        [Transition("lights", Lamp.OFF, Lamp.DIM), Transition("burns", Lamp.DIM, Lamp.BRIGHT)],
        Lamp.OFF,
    )
    rounds = 4
    chance: float = 0.3

    def setup(self) -> None:
        first = np.arange(0, self.size, 4)
        within = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
        self.network = ArrayNetwork(self, (first[:, None, None] + within).reshape(-1, 2))
        self.begin_in(first, Lamp.DIM)

    def step(self) -> None:
        lit = self.where(Lamp.DIM)
        givers, takers = self.network.edges(lit)
        self.fire(takers[self.random(givers) < self.chance], "lights")
        self.fire(lit, "burns")


def test_households_have_the_law_of_reed_and_frost() -> None:
    """The final number of ill members has the exact law of the chain-binomial epidemic."""

    def final(well: int, ill: int, chance: float) -> dict[int, float]:
        law: Counter[int] = Counter()
        catches = 1 - (1 - chance) ** ill
        for new in range(well + 1):
            p = comb(well, new) * catches**new * (1 - catches) ** (well - new)
            rest = {0: 1.0} if new == 0 else final(well - new, new, chance)
            for more, q in rest.items():
                law[new + more] += p * q
        return law

    world = Household(40_000, seed=6)
    world.run()
    numbers = world.is_in(world.agents, Lamp.BRIGHT).reshape(-1, 4).sum(axis=1) - 1
    law = final(3, 1, 0.3)
    counts = np.bincount(numbers, minlength=4).tolist()
    assert p_of_counts(counts, [law[n] for n in range(4)]) > LEAST_P


@pytest.mark.parametrize("rewired", [0.0, 0.2, 1.0])
def test_small_worlds_keep_their_connections(rewired: float) -> None:
    """None is lost, doubled or to oneself, and as many are rewired as chance has it."""
    world = Lamps(4000, seed=8)
    network = small_world(world, 6, rewired)
    one, other = network.edges(world.agents)
    links = {*zip(one.tolist(), other.tolist(), strict=True)}
    assert len(one) == 6 * 4000 == len(links)
    assert not (one == other).any()
    assert links == {(far, near) for near, far in links}
    away = np.minimum((one - other) % 4000, (other - one) % 4000)
    moved = np.count_nonzero(away > 3) / 2
    assert (
        abs(moved - rewired * 12_000) <= 4 * sqrt(12_000 * rewired * (1 - rewired)) + 25 * rewired
    )


def test_neighbours_are_those_of_the_pairs_and_equally_likely() -> None:
    """A pair that is there twice counts once."""
    world = Lamps(4, seed=1)
    pairs = [[0, 1], [1, 0], [0, 2], [0, 1]]
    both = ArrayNetwork(world, pairs)
    assert both.degree(np.arange(4)).tolist() == [2, 1, 1, 0]
    assert [each.tolist() for each in both.edges([2, 0])] == [[2, 0, 0], [0, 1, 2]]
    picked = both.pick(np.zeros(4000, int))
    assert p_of_counts(np.bincount(picked).tolist(), [0, 0.5, 0.5]) > LEAST_P

"""Worlds in columns against what is known of them: exact chains, and limits of a million."""

from collections import Counter
from math import comb, sqrt
from typing import Any

import numpy as np
import pytest

from prism.examples.epidemic import Epidemic, Health
from prism.examples.rumour import Mind
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, Network, Run, World, during

pytestmark = pytest.mark.long


class Household(Epidemic):
    """The epidemic among people who all meet each other, until nobody is ill."""

    rounds = 500

    def until(self) -> bool:
        """End when nobody is ill."""
        return self.count(Health.INFECTED) == 0


def final_sizes(others: int, infectious: float, recovery: float) -> list[float]:
    """Return how likely it is that one ill person infects so many, by Bailey's recursion.

    Somebody is ill for a geometric number of rounds, in each of which it meets all others.
    """
    escaped = []
    for left in range(others + 1):
        of_all = (1 - infectious) ** left
        escaped.append(recovery * of_all / (1 - (1 - recovery) * of_all))

    found: list[float] = []
    for size in range(others + 1):
        power = escaped[others - size]
        before = sum(
            comb(others - each, size - each) * chance / power ** (each + 1)
            for each, chance in enumerate(found)
        )
        found.append((comb(others, size) - before) * power ** (size + 1))

    return found


@pytest.mark.parametrize(("infectious", "recovery"), [(0.15, 1.0), (0.05, 0.4)])
def test_an_epidemic_has_the_sizes_of_the_exact_chain(infectious: float, recovery: float) -> None:
    """Where all meet all, final sizes are as likely as the chain says, each within 4.5 sigma."""
    runs, others = 1_500, 20
    given = {"contacts": 20, "begun": 0.01, "infectious": infectious, "recovery": recovery}
    counts: Counter[int] = Counter()
    for seed in range(runs):
        run: Run[Any] = Run(Household, 21, seed=seed, columns=True, parameters=given)
        counts[run.run().rounds[-1].states["recovered"] - 1] += 1

    expected = final_sizes(others, infectious, recovery)
    assert sum(expected) == pytest.approx(1)
    for size, chance in enumerate(expected):
        spread = sqrt(runs * chance * (1 - chance))
        assert abs(counts[size] - runs * chance) < 4.5 * spread + 1, size


class Hearer(Agent):
    """Somebody who may hear a rumour, tell it, and tire of it."""

    chart = Statechart(
        Mind,
        [
            Transition("hears", Mind.IGNORANT, Mind.SPREADER),
            Transition("tires", Mind.SPREADER, Mind.STIFLER),
        ],
        initial=Mind.IGNORANT,
        name="rumour",
    )


class Meetings(World[Hearer]):
    """A rumour among people who call somebody in each round, drawn from all the others."""

    rounds = 200
    begun: int = 100

    def setup(self) -> None:
        """Let some know."""
        for hearer in self.agents[: self.begun]:
            hearer.begin_in(Mind.SPREADER)

    def round_begins(self) -> None:
        """Give everybody the number of somebody."""
        numbers = np.random.Generator(np.random.PCG64(self.random.index(2**31)))
        size = len(self.agents)
        places = np.arange(size)
        called = (places + numbers.integers(1, size, size)) % size
        pairs: Any = np.stack([places, called], axis=1)
        self.network = Network(self.agents, pairs, directed=True)

    @during(Mind.SPREADER)
    def tell(self, hearer: Hearer) -> None:
        """Tell somebody; tire of it if they know it."""
        other = hearer.random.choice(hearer.neighbours)
        if other.state is Mind.IGNORANT:
            other.fire("hears", hearer)
        else:
            hearer.fire("tires")

    def until(self) -> bool:
        """End when nobody spreads it."""
        return self.count(Mind.SPREADER) == 0


def test_a_fifth_of_a_million_never_hears_the_rumour() -> None:
    """Where all meet all, 20.3 % of a million stay ignorant (Daley and Kendall 1964)."""
    results = Run(Meetings, 1_000_000, seed=1, columns=True).run()
    assert results.rounds[-1].states["spreader"] == 0
    assert results.rounds[-1].states["ignorant"] / 1_000_000 == pytest.approx(0.20319, abs=0.002)

"""Kept runs of worlds, to read."""

from enum import StrEnum
from pathlib import Path

import pytest

from prism import Run
from prism.examples.rumour import Rumour
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, measure, state, uniform

Need = StrEnum("Need", ["LOOKING", "SATISFIED"])
Stock = StrEnum("Stock", ["SELLING", "SOLD_OUT"])


class Buyer(Agent):
    """Somebody who needs one good."""

    chart = Statechart(
        Need, [Transition("buys", Need.LOOKING, Need.SATISFIED)], initial=Need.LOOKING, name="buyer"
    )
    worth: float = uniform(5, 15)


class Seller(Agent):
    """Somebody with two goods."""

    chart = Statechart(
        Stock,
        [Transition("sells_last", Stock.SELLING, Stock.SOLD_OUT)],
        initial=Stock.SELLING,
        name="seller",
    )
    cost: float = uniform(5, 15)
    goods: int = state(2)


class Bazaar(World[Buyer | Seller]):
    """Buyers ask some seller from the second round on."""

    least_gain: float = 0.5
    earned: float = state(0.0)
    traded: int = state(0)

    def populate(self, agents: int) -> list[Buyer | Seller]:
        """Make four buyers for each seller."""
        return [Seller() if place % 5 == 4 else Buyer() for place in range(agents)]

    @during(Need.LOOKING)
    def ask(self, buyer: Buyer) -> None:
        """Buy from some seller, if both gain by it."""
        seller = buyer.random.choice([each for each in self.agents if isinstance(each, Seller)])
        if self.round == 1 or seller.goods == 0 or buyer.worth < seller.cost + self.least_gain:
            return

        seller.goods -= 1
        self.traded += 1
        self.earned += seller.cost
        self.log("sold", agent=seller, buyer=buyer, price=seller.cost)
        buyer.fire("buys")
        if seller.goods == 0:
            seller.fire("sells_last")

    @measure
    def mean_price(self) -> float | None:
        """Return what a good has cost so far."""
        return self.earned / self.traded if self.traded else None


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with two kinds of agents, and events of its own."""
    folder = tmp_path_factory.mktemp("worlds") / "market"
    Run(Bazaar, 20, rounds=12, seed=1).keep(folder)
    return folder


@pytest.fixture(scope="session")
def rumours(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the folders of two runs with other parameters and treatments."""
    parent = tmp_path_factory.mktemp("worlds")
    for friends, treated in ((4, "warning@3"), (8, "warning@5")):
        options = Run(
            Rumour, 30, rounds=10, seed=1, parameters={"friends": friends}, treatments=(treated,)
        )
        options.keep(parent / f"friends-{friends}")

    return sorted(parent.iterdir())

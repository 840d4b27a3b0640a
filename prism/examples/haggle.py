"""Buyers and sellers who haggle over a price in messages, by a model or by templates."""

from enum import StrEnum

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, from_edges, measure, uniform

Deal = StrEnum("Deal", ["HAGGLING", "AGREED", "OFF"])
MOVES = [Transition(on, Deal.HAGGLING, each) for each in Deal for on in ("hears", each.value)]


class Trader(Agent):
    """Somebody who offers more and more, or less and less, until a limit."""

    chart = Statechart(Deal, MOVES, Deal.HAGGLING, decision_states=[Deal.HAGGLING])
    limit: float = uniform(8, 12)


class Buyer(Trader):
    """Who pays at most the limit."""


class Seller(Trader):
    """Who takes at least the limit."""


class Haggle(World[Buyer | Seller]):
    """Pairs of a buyer and a seller, who answer each other until they agree or one goes."""

    def populate(self, agents: int) -> list[Buyer | Seller]:
        """Make as many buyers as sellers."""
        return [(Buyer, Seller)[number % 2]() for number in range(agents)]

    def setup(self) -> None:
        """Bring each buyer together with a seller."""
        buyers, sellers = self.agents.of(Buyer), self.agents.of(Seller)
        self.network = from_edges(self, list(zip(buyers, sellers, strict=False)))

    @during(Deal.HAGGLING)
    async def talk(self, trader: Trader) -> None:
        """Weigh the last offer, and make another one."""
        buys = isinstance(trader, Buyer)
        for other in trader.neighbours:
            if trader.inbox:
                offer = trader.inbox.pop().content
                good = (offer["price"] <= trader.limit) is buys
                weights = {Deal.AGREED: good, Deal.HAGGLING: 0.95 * (not good), Deal.OFF: 0.05}
                if await trader.decide("hears", offer, weights=weights) is not Deal.HAGGLING:
                    other.fire(trader.state.value)
                    return
            price = trader.limit * (1 + (-0.5 if buys else 0.5) * 0.7**self.round)
            text = f"{price:.2f}, please."
            words = await trader.write(f"In your own words: {text}", template=text)
            trader.send(other, {"price": price, "words": words})

    @measure
    def agreed(self) -> float:
        """Return the share of those who have agreed."""
        return self.share(Deal.AGREED)

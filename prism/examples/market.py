"""A market whose buyers and sellers haggle by messages within a tick."""

from enum import StrEnum

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, measure, state, uniform

Need = StrEnum("Need", ["LOOKING", "SATISFIED"])
Stock = StrEnum("Stock", ["SELLING", "SOLD_OUT"])


class Buyer(Agent):
    """Somebody who needs one good and offers more from day to day."""

    chart = Statechart(Need, [Transition("buys", Need.LOOKING, Need.SATISFIED)], Need.LOOKING)
    worth: float = uniform(5, 15)
    offer: float = state(2.0)


class Seller(Agent):
    """Somebody with a few goods, who sells none below its cost."""

    chart = Statechart(Stock, [Transition("ends", Stock.SELLING, Stock.SOLD_OUT)], Stock.SELLING)
    cost: float = uniform(1, 10)
    goods: int = state(3)


class Market(World[Buyer | Seller]):
    """Buyers bid, sellers answer, and buyers read the answer, all in one tick."""

    raised: float = 1.3

    def populate(self, agents: int) -> list[Buyer | Seller]:
        """Make four buyers for each seller."""
        return [Seller() if number % 5 == 4 else Buyer() for number in range(agents)]

    @during(Need.LOOKING)
    async def bid(self, buyer: Buyer) -> None:
        """Bid to some seller, and wait for the answer."""
        if sellers := self.agents.where(state=Stock.SELLING):
            buyer.offer = min(buyer.offer * self.raised, buyer.worth)
            buyer.send(sellers.sample(1)[0], buyer.offer)
            if (answer := await buyer.receive()) and answer.content:
                buyer.fire("buys")

    @during(Stock.SELLING)
    async def serve(self, seller: Seller) -> None:
        """Answer bids as they come, as long as there are goods."""
        while seller.goods and (bid := await seller.receive()):
            if is_sold := bid.content >= seller.cost:
                seller.goods -= 1
                self.log("sold", agent=seller, buyer=bid.sender, price=bid.content)
            seller.send(bid.sender, is_sold)
        if not seller.goods:
            seller.fire("ends")

    @measure
    def bought(self) -> float:
        """Return the share of the buyers who have their good."""
        return self.share(Need.SATISFIED)

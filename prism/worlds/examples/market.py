"""A market of buyers and sellers who haggle by messages within a tick."""

from enum import StrEnum

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, Thing, World, during, measure, state, uniform


class Need(StrEnum):
    """What a buyer does."""

    LOOKING = "looking"
    SATISFIED = "satisfied"


class Stock(StrEnum):
    """What a seller does."""

    SELLING = "selling"
    SOLD_OUT = "sold_out"


class Bid(Thing):
    """What a buyer offers a seller, who writes the answer on it."""

    price: float
    accepted: bool = False


class Buyer(Agent):
    """Somebody who needs one good and offers more from day to day."""

    chart = Statechart(
        Need, [Transition("buys", Need.LOOKING, Need.SATISFIED)], initial=Need.LOOKING, name="buyer"
    )
    worth: float = uniform(5, 15)
    offered: float = state(1.0)


class Seller(Agent):
    """Somebody with a few goods, none of which is sold below its cost."""

    chart = Statechart(
        Stock,
        [Transition("sells_last", Stock.SELLING, Stock.SOLD_OUT)],
        initial=Stock.SELLING,
        name="seller",
    )
    cost: float = uniform(1, 10)
    goods: int = state(3)


class Market(World[Buyer | Seller]):
    """Buyers bid, sellers answer, and buyers read the answer, all in one tick."""

    rounds = 20
    raise_by: float = 1.2
    earned: float = state(0.0)
    traded: int = state(0)

    def populate(self, agents: int) -> list[Buyer | Seller]:
        """Make four buyers for each seller."""
        return [Seller() if place % 5 == 4 else Buyer() for place in range(agents)]

    @during(Need.LOOKING)
    async def bid(self, buyer: Buyer) -> None:
        """Bid to some seller, and wait for the answer."""
        sellers = [each for each in self.of(Seller) if each.state is Stock.SELLING]
        if not sellers:
            return

        buyer.send(buyer.random.choice(sellers), Bid(price=buyer.offered))
        answer = await buyer.receive()
        if answer is not None and answer.content.accepted:
            buyer.fire("buys")
        else:
            buyer.offered = min(buyer.offered * self.raise_by, buyer.worth)

    @during(Stock.SELLING)
    async def serve(self, seller: Seller) -> None:
        """Answer bids as they come, as long as there are goods."""
        while message := await seller.receive():
            bid = message.content
            bid.accepted = seller.goods > 0 and bid.price >= seller.cost
            if bid.accepted:
                seller.goods -= 1
                self.traded += 1
                self.earned += bid.price
                self.log("sold", agent=seller, buyer=message.sender, price=bid.price)
            seller.send(message.sender, bid)

        if seller.goods == 0:
            seller.fire("sells_last")

    @measure
    def mean_price(self) -> float | None:
        """Return what a good has cost so far."""
        return self.earned / self.traded if self.traded else None

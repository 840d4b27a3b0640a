"""A bazaar whose traders think: they see what is offered and paid, and bid or ask."""

from collections.abc import Iterable

from prism.programs.thinking import ActionRefusedError, CognitiveAgent, Config, Memory, action
from prism.worlds import Guest, World, measure, state


class Trader(CognitiveAgent):
    """Somebody with money and goods."""

    def perceive(self, world: "Bazaar") -> Iterable[str]:
        """See your own money and goods, the asking prices of others, and the last prices paid."""
        self.tell(instead=True)
        money, goods = world.purses[self.agent_id], world.goods[self.agent_id]
        asks = [f"{seller} asks {price:g}" for seller, price in world.asks.items()]
        return [f"You have {money:g} money and {goods} goods.", *asks, f"Paid: {world.paid[-3:]}"]

    @action
    def ask(self, world: "Bazaar", price: float) -> None:
        """Offer to sell one good at a price."""
        if not world.goods[self.agent_id] or world.asks.get(self.agent_id) == price:
            raise ActionRefusedError("you have no goods, or ask that price already")
        world.asks[self.agent_id] = price

    @action
    def bid(self, world: "Bazaar", price: float) -> str:
        """Buy one good from the cheapest seller, for at most a price."""
        others = {name: price for name, price in world.asks.items() if name != self.agent_id}
        seller = min(others, key=others.__getitem__, default="")
        if not seller or others[seller] > min(price, world.purses[self.agent_id]):
            raise ActionRefusedError("nobody asks as little as you bid and have")
        world.paid.append(paid := world.asks.pop(seller))
        for name, goods in ((seller, -1), (self.agent_id, 1)):
            world.goods[name] += goods
            world.purses[name] -= goods * paid
        return f"bought from {seller} for {paid:g}"


class Bazaar(World[Guest[Trader]]):
    """Traders with the same money, and goods for every second one."""

    rounds = 10
    purses: dict[str, float] = state(dict)
    goods: dict[str, int] = state(dict)
    asks: dict[str, float] = state(dict)
    paid: list[float] = state(list)

    def populate(self, agents: int) -> list[Guest[Trader]]:
        """Give every trader a memory and money, and every second one goods."""
        names = [f"trader_{number + 1}" for number in range(agents)]
        self.purses = dict.fromkeys(names, 20.0)
        self.goods = {name: 2 * (number % 2) for number, name in enumerate(names)}
        config = Config(goal="Trade so that you end with as much money and goods as you can.")
        return [Guest(object=Trader(config, Memory.in_memory(), agent_id=name)) for name in names]

    @measure
    def trades(self) -> int:
        """Return the number of trades."""
        return len(self.paid)

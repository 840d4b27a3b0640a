"""Two groups who sort themselves into quarters, after Schelling (1971)."""

from enum import StrEnum

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, Space, World, draw, during, measure, param, picture, state

Home = StrEnum("Home", ["STAYS", "MOVES"])


class Resident(Agent):
    """Somebody who wants a share of the neighbours to be alike."""

    chart = Statechart(
        Home,
        [Transition("goes", Home.STAYS, Home.MOVES), Transition("comes", Home.MOVES, Home.STAYS)],
        initial=Home.MOVES,
    )
    group: str = draw(lambda random: random.choice(("red", "blue")))


class Schelling(World[Resident]):
    """Houses in rows; people who are unhappy with their neighbours move to a free house."""

    rounds = 30
    together = True
    width: int = param(12, "houses in a row, and rows", least=3)
    wanted: float = param(0.4, "share of neighbours to be alike", least=0, most=1)
    town: Space[Resident] = state(Space)

    def setup(self) -> None:
        """Build the town, in which everybody is looking for a house at first."""
        self.town = Space(width=self.width, height=self.width, wraps=True)

    @during(Home.STAYS)
    def look_around(self, resident: Resident) -> None:
        """Leave if too few of the neighbours are of the same group."""
        if self.alike(resident) < self.wanted:
            resident.fire("goes")

    def tick_ends(self) -> None:
        """Give a free house to everybody who moves, sorted by id so that no other order matters."""
        for resident in sorted(self.agents.where(state=Home.MOVES), key=lambda each: each.agent_id):
            self.town.put(resident, self.random.choice(self.town.free()))
            resident.fire("comes")

    def alike(self, resident: Resident) -> float:
        """Return the share of a resident's neighbours that are of the same group."""
        beside = self.town.beside(resident)
        return sum(other.group == resident.group for other in beside) / (len(beside) or 1)

    @picture
    def look(self, resident: Resident) -> str:
        """Draw residents in the colours of their groups."""
        return {"red": "#cc6677", "blue": "#332288"}[resident.group]

    @measure
    def segregation(self) -> float:
        """Return the mean share of neighbours of the same group."""
        return self.agents.mean(self.alike)

"""Two groups who sort themselves into quarters, after Schelling (1971)."""

from enum import StrEnum

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, measure, one_of, param, state


class Home(StrEnum):
    """Whether a resident stays."""

    SETTLED = "settled"
    MOVING = "moving"


class Resident(Agent):
    """Somebody who wants a share of the neighbours to be alike."""

    chart = Statechart(
        Home,
        [
            Transition("leaves", Home.SETTLED, Home.MOVING),
            Transition("arrives", Home.MOVING, Home.SETTLED),
        ],
        initial=Home.SETTLED,
        name="schelling",
    )
    group: str = one_of("red", "blue")
    house: int = state(-1)


class Schelling(World[Resident]):
    """Houses in rows; whoever is unhappy with the neighbours moves to a free house."""

    rounds = 30
    together = True
    width: int = param(12, "houses in a row, and rows", least=3)
    wanted: float = param(0.4, "share of neighbours to be alike", least=0, most=1)
    houses: list[Resident | None] = state(list)

    def setup(self) -> None:
        """Give everybody a house."""
        self.houses = [None] * self.width**2
        self.move(sorted(self.agents, key=lambda each: each.agent_id))

    @during(Home.SETTLED)
    def look_around(self, resident: Resident) -> None:
        """Leave if too few of the neighbours are alike."""
        if self.alike(resident) < self.wanted:
            resident.fire("leaves")

    @during(Home.MOVING)
    def arrive(self, resident: Resident) -> None:
        """Stay in the new house."""
        resident.fire("arrives")

    def tick_ends(self) -> None:
        """Give those who move a free house, in an order of its own."""
        self.move(sorted(self.in_state(Home.MOVING), key=lambda each: each.agent_id))

    def move(self, residents: list[Resident]) -> None:
        """Move residents to free houses."""
        free = [house for house, owner in enumerate(self.houses) if owner is None]
        for resident, house in zip(residents, self.random.shuffled(free), strict=False):
            if resident.house >= 0:
                self.houses[resident.house] = None
            self.houses[house], resident.house = resident, house

    def alike(self, resident: Resident) -> float:
        """Return the share of a resident's neighbours that are of the same group."""
        row, column = divmod(resident.house, self.width)
        beside = [
            other
            for y in range(max(row - 1, 0), min(row + 2, self.width))
            for x in range(max(column - 1, 0), min(column + 2, self.width))
            if (other := self.houses[y * self.width + x]) not in (None, resident)
        ]
        return sum(other.group == resident.group for other in beside if other) / max(len(beside), 1)

    @measure
    def segregation(self) -> float:
        """Return the mean share of neighbours that are alike."""
        return sum(map(self.alike, self.agents)) / len(self.agents)

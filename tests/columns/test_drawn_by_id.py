"""Draws among agents in columns, which depend on their ids and not on the order of the list."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from prism.worlds import World, during, from_edges
from tests.columns.worlds import Health, Patient
from tests.kit.permuted import AGENTS, IDS, ORDERS, permuted

DRAWS: dict[str, Callable[[Any, Any], Sequence[Any]]] = {
    "sample": lambda world, _: world.agents.sample(3),
    "shuffled": lambda world, _: world.agents.shuffled()[:3],
    "sample of some": lambda world, _: world.agents.where(state=Health.WELL).sample(1),
    "some of some": lambda world, _: (
        world.agents.where(state=Health.WELL).where(lambda each: each.age > 9).shuffled()[:2]
    ),
    "sample of a group": lambda world, one: world.agents.group("party")[one.party].sample(2),
    "choice of the world": lambda world, _: [world.random.choice(world.agents)],
    "sample of the world": lambda world, _: world.random.sample(world.agents, 3),
    "shuffled by the world": lambda world, _: world.random.shuffled(world.agents)[:3],
    "choice of an agent": lambda world, one: [one.random.choice(world.agents)],
    "choice in a group": lambda world, one: [
        one.random.choice(world.agents.group("party")[one.party])
    ],
    "sample of an agent": lambda world, one: one.random.sample(world.agents, 3),
    "shuffled by an agent": lambda world, one: one.random.shuffled(world.agents)[:3],
    "neighbours": lambda _, one: one.neighbours.sample(2),
    "choice of a neighbour": lambda _, one: [one.random.choice(one.neighbours)],
}
EDGES = [(IDS[one], IDS[(one + away) % AGENTS]) for one in range(AGENTS) for away in (7, 5)]


class Ward(World[Patient]):
    """Patients of whom a hook draws some, who infect others in compiled steps."""

    rounds = 3
    ticks = 2
    way: str = ""

    def setup(self) -> None:
        """Connect the patients."""
        self.network = from_edges(self, EDGES)

    def tick_begins(self) -> None:
        """Let those that are drawn meet the one who draws."""
        one = min(self.agents, key=lambda each: each.agent_id)
        for other in DRAWS[self.way](self, one):
            other.met += 1
            other.fire("meets")
            self.log("drew", agent=other)

    @during(Health.ILL)
    def infect(self, patient: Patient) -> None:
        """Infect a neighbour, or recover."""
        patient.random.choice(patient.neighbours).fire("meets", patient)
        if patient.random.chance(0.3):
            patient.fire("recovers")


@pytest.mark.parametrize("way", DRAWS)
def test_draws_are_the_same_for_every_list(way: str, tmp_path: Path) -> None:
    """A permuted list gives the same log, results and fields, as columns and as objects."""
    first = permuted(Ward(way=way), Patient, IDS, tmp_path)
    for order in (IDS, *ORDERS):
        for columns in (False, True):
            assert permuted(Ward(way=way), Patient, order, tmp_path, columns=columns) == first
    assert sum(event["event"] == "world.drew" for event in first[0]) >= 6

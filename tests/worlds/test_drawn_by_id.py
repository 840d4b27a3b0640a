"""Draws among agents, which depend on their ids and not on the order of the list."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from prism import Run
from prism.worlds import AgentSet, Plane, World, during, from_edges, state
from prism.worlds._agent_set import BackwardsById, StreamById, natural_order
from tests.kit.lamps import Lamp, Light
from tests.kit.permuted import AGENTS, IDS, ORDERS, permuted

DRAWS: dict[str, Callable[[Any, Any], Sequence[Any]]] = {
    "sample": lambda world, _: world.agents.sample(3),
    "shuffled": lambda world, _: world.agents.shuffled()[:3],
    "sample of some": lambda world, lamp: world.agents.where(state=lamp.state).sample(1),
    "shuffled some": lambda world, lamp: world.agents.where(state=lamp.state).shuffled()[:2],
    "some of some": lambda world, lamp: (
        world.agents.where(kind=Lamp).where(lambda other: other is not lamp).sample(1)
    ),
    "sample of a group": lambda world, lamp: world.agents.group("state")[lamp.state].sample(1),
    "choice of the world": lambda world, _: [world.random.choice(world.agents)],
    "sample of the world": lambda world, _: world.random.sample(world.agents, 3),
    "shuffled by the world": lambda world, _: world.random.shuffled(world.agents)[:3],
    "choice among some": lambda world, lamp: [
        world.random.choice(world.agents.where(state=lamp.state))
    ],
    "choice of an agent": lambda world, lamp: [lamp.random.choice(world.agents)],
    "sample of an agent": lambda world, lamp: lamp.random.sample(world.agents, 3),
    "shuffled by an agent": lambda world, lamp: lamp.random.shuffled(world.agents)[:3],
    "choice of an agent in a group": lambda world, lamp: [
        lamp.random.choice(world.agents.group("state")[lamp.state])
    ],
    "choice of a chart": lambda world, lamp: [lamp.chart_random.choice(world.agents)],
    "choice of a decision": lambda world, lamp: [lamp.decision_random.choice(world.agents)],
    "neighbours": lambda _, lamp: lamp.neighbours.sample(2),
    "some neighbours": lambda _, lamp: lamp.neighbours.where(kind=Lamp).shuffled()[:1],
    "choice of a neighbour": lambda _, lamp: [lamp.random.choice(lamp.neighbours)],
    "those nearby": lambda world, lamp: world.town.within(lamp, 0.6).sample(1),
    "those around": lambda world, lamp: [lamp.random.choice(world.town.around(0.5, 0.5, 0.6))],
}
EDGES = [(IDS[one], IDS[(one * away + away) % AGENTS]) for one in range(AGENTS) for away in (5, 7)]


class Town(World[Lamp]):
    """Lamps that switch others, drawn in one of several ways."""

    rounds = 3
    ticks = 2
    way: str = ""
    town: Plane[Lamp] = state(Plane)
    chosen: AgentSet[Lamp] = state(AgentSet[Lamp])

    def setup(self) -> None:
        """Connect the lamps, and put them somewhere."""
        self.network = from_edges(self, [(one, other) for one, other in EDGES if one != other])
        for lamp in self.agents:
            self.town.put(lamp, lamp.random.random(), lamp.random.random())

    @during(Light.OFF, Light.ON)
    def switch(self, lamp: Lamp) -> None:
        """Switch those that are drawn."""
        drawn = DRAWS[self.way](self, lamp)
        for other in drawn:
            other.heard.append(lamp.agent_id)
            other.fire("pressed", lamp)
        self.log("drew", agent=lamp, drawn=[other.agent_id for other in drawn])


@pytest.mark.parametrize("way", DRAWS)
def test_draws_are_the_same_for_every_list(way: str, tmp_path: Path) -> None:
    """Whichever way agents are drawn, a permuted list gives the same log, results and fields."""
    first = permuted(Town(way=way), Lamp, IDS, tmp_path)
    for order in ORDERS:
        assert permuted(Town(way=way), Lamp, order, tmp_path) == first
    drew = [event["drawn"] for event in first[0] if event["event"] == "world.drew"]
    assert len({who for drawn in drew for who in drawn}) > 3


class Listed(Town):
    """The same, where the order of the list is declared to matter."""

    order = "listed"

    def setup(self) -> None:
        """Leave the lamps where they are."""


def test_draws_follow_a_list_that_matters(tmp_path: Path) -> None:
    """With ``order = "listed"``, agents are drawn by their places."""
    places = []
    for order in ORDERS:
        events, *_ = permuted(Listed(way="sample of the world"), Lamp, order, tmp_path)
        first = next(event for event in events if event["event"] == "world.drew")
        places.append([order.index(each) for each in first["drawn"]])

    assert places[0] == places[1] == places[2]


def in_town(order: Sequence[str] = ORDERS[0], world: type[Town] = Town) -> Any:
    """Return a town that has been set up."""
    return Run(world(way="sample"), [Lamp(agent_id=each) for each in order]).world


def test_loops_and_places_are_those_of_the_list() -> None:
    """Only draws go by ids; loops, places and values are in the order that was given."""
    agents = in_town().agents
    assert [lamp.agent_id for lamp in agents] == agents.values("agent_id") == list(ORDERS[0])
    assert [agents[place].agent_id for place in range(AGENTS)] == list(ORDERS[0])
    assert agents.where(kind=Lamp) == agents == agents.group("state")[Light.OFF]


def test_only_a_list_in_another_order_costs_anything() -> None:
    """Where the list is in the order of the ids, or is to matter, sets are ordinary ones."""
    assert type(in_town(IDS).agents) is type(in_town(ORDERS[0], Listed).agents) is AgentSet
    assert type(in_town().agents[0].neighbours) is AgentSet
    assert type(in_town().agents.sample(3)) is AgentSet


def test_a_set_that_is_kept_is_drawn_from_by_ids() -> None:
    """A resumed run draws the same from sets that are in fields."""
    first = Run(Town(way="sample"), [Lamp(agent_id=each) for each in ORDERS[0]], rounds=1)
    town: Any = first.world
    town.chosen = town.agents.where(lambda lamp: lamp.agent_id != "agent_7")
    first.run()
    again = Run(Town(way="sample"), [Lamp(agent_id=each) for each in ORDERS[0]], rounds=1)
    again.loop.restore(first.loop.snapshot(), [])
    kept: Any = again.world.chosen
    assert kept == tuple(lamp for lamp in again.agents if lamp.agent_id != "agent_7")
    drawn = [StreamById(1).sample(each, 9) for each in (town.chosen, kept)]
    ids = [[lamp.agent_id for lamp in lamps] for lamps in drawn]
    assert ids[0] == ids[1] == StreamById(1).sample([each for each in IDS if each != "agent_7"], 9)


@pytest.mark.parametrize("order", [IDS, ORDERS[0]])
def test_a_list_that_is_turned_round_is_looped_through_but_not_drawn_from(
    order: Sequence[str],
) -> None:
    """`prism world check` reverses loops and the order by which draws are sorted; draws stay."""
    straight = in_town(order).agents
    backwards = BackwardsById(straight)
    assert list(backwards) == list(straight)[::-1]
    assert backwards[0] is straight[0]
    assert StreamById(1).choice(backwards) is StreamById(1).choice(straight)
    assert StreamById(1).sample(backwards, 5) == StreamById(1).sample(straight, 5)
    some = backwards.where(kind=Lamp)
    assert StreamById(1).shuffled(some) == StreamById(1).shuffled(straight)


def test_numbers_in_ids_are_compared_as_numbers() -> None:
    """Ids are in natural order; those that differ only in zeros are in that of their texts."""
    ids = ["", "7", "07b", "7b", "p", "p_2", "p_02x", "p_2x", "p_10", "p_10_9", "p_10_10", "q_1"]
    large = ["p" + "9" * 5000, "p1" + "0" * 5000]
    assert sorted(Random(1).sample(ids, len(ids)), key=natural_order) == ids
    assert natural_order(large[0]) < natural_order(large[1])

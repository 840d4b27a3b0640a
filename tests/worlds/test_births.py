"""Agents that join and leave a run while it goes on."""

from enum import StrEnum
from math import exp
from pathlib import Path
from statistics import mean, stdev

import orjson
import pytest

from prism import Run
from prism.errors import AgentError
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, Space, World, during, measure, ring, state
from tests.kit.worlds import run_logged

Life = StrEnum("Life", ["ALIVE"])
CHART = Statechart(Life, [Transition("lives", Life.ALIVE, Life.ALIVE)], Life.ALIVE, name="life")


class Cell(Agent):
    """Something that divides and dies."""

    chart = CHART
    turns: int = state(0)


class Dish(World[Cell]):
    """A birth-death chain: each event is a birth or a death, in continuous time."""

    rounds = 40
    birth: float = 1.0
    death: float = 1.5
    born: list[str] = state(list)

    @during(Life.ALIVE, rate="birth")
    def divide(self, cell: Cell) -> None:
        """Bear another."""
        self.born.append(self.add(Cell(), cell).agent_id)

    @during(Life.ALIVE, rate="death")
    def die(self, cell: Cell) -> None:
        """Leave."""
        cell.leave()

    def until(self) -> bool:
        """End when nobody is left."""
        return len(self.agents) == 0

    @measure
    def number(self) -> int:
        """Return how many there are."""
        return len(self.agents)


@pytest.mark.slow
def test_a_birth_death_chain_dies_out_as_often_as_it_must() -> None:
    """From one cell, extinct by time t with the exact probability of a linear chain."""
    birth, death, time, runs = 1.0, 1.5, 2, 400
    growth = exp((birth - death) * time)
    exact = death * (1 - growth) / (death - birth * growth)
    extinct = 0
    for seed in range(runs):
        run = Run(Dish(birth=birth, death=death), 1, rounds=time, seed=seed)
        extinct += run.run().rounds[-1].measures["number"] == 0
    spread = (exact * (1 - exact) / runs) ** 0.5
    assert abs(extinct / runs - exact) < 4 * spread


Health = StrEnum("Health", ["WELL", "ILL", "IMMUNE"])


class Person(Agent):
    """Somebody who may fall ill once in a life."""

    chart = Statechart(
        Health,
        [
            Transition("catches", Health.WELL, Health.ILL),
            Transition("recovers", Health.ILL, Health.IMMUNE),
        ],
        initial=Health.WELL,
    )


class Village(World[Person]):
    """An SIR in which everybody who dies is followed by somebody who is well."""

    rounds = 300
    imported: float = 0.1
    contacts: float = 1.5
    recovery: float = 0.5
    death: float = 0.25

    def risk(self, _person: Person) -> float:
        """Return the rate at which somebody falls ill."""
        return self.imported + self.contacts * self.ill() / 4

    @during(Health.WELL, rate=risk)
    def catch(self, person: Person) -> None:
        """Fall ill, from abroad or from others."""
        person.fire("catches")

    @during(Health.ILL, rate="recovery")
    def recover(self, person: Person) -> None:
        """Be immune from now on."""
        person.fire("recovers")

    @during(*Health, rate="death")
    def die(self, person: Person) -> None:
        """Make room for somebody else."""
        person.leave()
        self.add(Person())

    @measure
    def ill(self) -> int:
        """Return how many are ill."""
        return self.count(Health.ILL)


class VillageWithLargestRate(Village):
    """The same, with the largest rate at which anybody falls ill."""

    @during(Health.WELL, rate=Village.risk, most=2)
    def catch(self, person: Person) -> None:
        """Fall ill, from abroad or from others."""
        person.fire("catches")


def ill_in_the_chain(world: Village, size: int) -> float:
    """Return the mean number of ill people in the stationary distribution of the exact chain."""
    states = [(well, ill) for well in range(size + 1) for ill in range(size + 1 - well)]
    chances = dict.fromkeys(states, 1 / len(states))
    for _ in range(4000):
        after = dict.fromkeys(states, 0.0)
        for (well, ill), chance in chances.items():
            immune = size - well - ill
            moves = {
                (well - 1, ill + 1): well * (world.imported + world.contacts * ill / size),
                (well, ill - 1): ill * world.recovery,
                (well + 1, ill - 1): ill * world.death,
                (well + 1, ill): immune * world.death,
            }
            for state_after, rate in moves.items():
                if rate:
                    after[state_after] += chance * rate / 20
            after[well, ill] += chance * (1 - sum(moves.values()) / 20)
        chances = after
    return sum(ill * chance for (_, ill), chance in chances.items())


@pytest.mark.slow
@pytest.mark.parametrize("village", [Village, VillageWithLargestRate])
def test_an_epidemic_with_births_and_deaths_stays_as_large_as_it_must(
    village: type[Village],
) -> None:
    """Of four people as many are ill on average as in the exact chain."""
    runs = [Run(village(), 4, seed=seed).run() for seed in range(16)]
    found = [mean(map(float, run.series("ill")[40:])) for run in runs]
    exact = ill_in_the_chain(Village(), 4)
    assert abs(mean(found) - exact) < 4 * stdev(found) / 4, (mean(found), exact)


class Town(World[Cell]):
    """Cells in a space and a network that bear and leave by turns."""

    rounds = 8
    ticks = 2
    place: Space[Cell] = state(Space)

    def setup(self) -> None:
        """Connect all, and put them into the middle."""
        self.network = ring(self, 2)
        self.place = Space(5, 5, wraps=True, capacity=None)
        for cell in self.agents:
            self.place.put(cell, 12)

    @during(Life.ALIVE)
    def live(self, cell: Cell) -> None:
        """Move, and bear or leave by chance."""
        cell.turns += 1
        self.place.put(cell, cell.random.choice(self.place.near(self.place.cells[cell])))
        if cell.random.chance(0.2):
            self.add(Cell(), cell, neighbours=cell.neighbours)
        elif cell.random.chance(0.15):
            cell.leave()

    @measure
    def number(self) -> int:
        """Return how many there are."""
        return len(self.agents)


def test_sets_counts_spaces_and_networks_have_who_is_there(tmp_path: Path) -> None:
    """After births and deaths, all of them agree, and the log tells of each."""
    done = run_logged(tmp_path, Town(), 12, seed=4)
    world = done.run.world
    there = {*world.agents}
    assert world.count(Life.ALIVE) == len(there) == done.run.finished[-1].states["alive"]
    assert {*world.place.cells} == there
    beside = {frozenset((cell, other)) for cell in there for other in cell.neighbours}
    assert {*map(frozenset, world.network.edges())} == beside
    assert set().union(*beside) <= there
    # newcomers have the neighbours of their parents
    assert len(beside) > 100

    joined = [each["agent_id"] for each in done.events("agent.joined")]
    left = [each["agent_id"] for each in done.events("agent.left")]
    assert len({*joined}) == len(joined) > 12
    assert {*joined} - {*left} == {cell.agent_id for cell in there}
    newcomers = [each for each in done.events("agent.joined") if "parent" in each]
    assert all(each["agent_id"].startswith(f"{each['parent']}.") for each in newcomers)
    numbers = [each["measures"]["number"] for each in done.events("round.ended")]
    assert numbers[-1] == len(there)


def test_a_newcomer_acts_from_the_next_tick_on() -> None:
    """Whoever bears it, and in whatever order."""

    class Nursery(World[Cell]):
        rounds = 3

        @during(Life.ALIVE)
        def live(self, cell: Cell) -> None:
            cell.turns += 1
            if self.round == 2 and "." not in cell.agent_id:
                self.add(Cell(), cell).fire("lives")

    run = Run(Nursery(), 10, seed=1)
    run.run()
    assert sorted({(cell.agent_id.count("."), cell.turns) for cell in run.agents}) == [
        *((0, 3), (1, 1)),
    ]


def test_a_newcomer_does_not_act_in_a_later_stage_of_its_tick() -> None:
    """Where a world gives turns in stages, it acts from the next tick on, too."""

    class Staged(World[Cell]):
        rounds = 2

        async def tick(self) -> None:
            await self.activate(self.agents[:1])
            await self.activate(self.agents[1:])

        @during(Life.ALIVE)
        def live(self, cell: Cell) -> None:
            cell.turns += 1
            if self.round == 1 and cell is self.agents[0]:
                self.add(Cell(), cell)

    run = Run(Staged(), 2)
    run.run()
    assert [cell.turns for cell in run.agents] == [2, 2, 1]


def test_one_that_leaves_while_it_is_asked_decides_nothing(tmp_path: Path) -> None:
    """Its answer is discarded, which the log says, and no message reaches it."""
    turn = StrEnum("Turn", ["HERE", "THERE"])

    class Walker(Agent):
        chart = Statechart(
            turn,
            [Transition("goes", turn.HERE, each) for each in turn],
            turn.HERE,
            decision_states=[turn.HERE],
        )

    class Street(World[Walker]):
        rounds = 1

        async def tick(self) -> None:
            await self.activate(self.agents)

        @during(turn.HERE)
        async def go(self, walker: Walker) -> None:
            if walker is self.agents[-1] and len(self.agents) == 3:
                gone = self.agents[0]
                gone.leave()
                walker.send(gone, "too late")
            await walker.decide("goes")

    done = run_logged(tmp_path, Street(), 3, seed=1)
    (discarded,) = done.events("statechart.answer_discarded")
    assert (discarded["agent_id"], discarded["reason"]) == ("walker_1", "left")
    assert len(done.run.agents) == 2
    assert not done.events("message.sent")


def test_who_has_joined_cannot_be_added_again() -> None:
    """The same object twice is refused, and so is what is no agent."""

    class Twice(World[Cell]):
        rounds = 1
        twice: bool = True

        def round_begins(self) -> None:
            self.add(self.agents[0] if self.twice else object())  # type: ignore[type-var]

    with pytest.raises(AgentError, match="has joined a run already"):
        Run(Twice(), 2).run()
    with pytest.raises(AgentError, match="add must get an agent"):
        Run(Twice(twice=False), 2).run()


def test_messages_are_events(tmp_path: Path) -> None:
    """Sender, receiver and content of each message are in the log, in their order."""

    class Post(World[Cell]):
        rounds = 1

        async def tick(self) -> None:
            await self.activate(self.agents)

        @during(Life.ALIVE)
        def write(self, cell: Cell) -> None:
            cell.send(self.agents[0], {"price": cell.turns, "to": self.agents[0]})

    done = run_logged(tmp_path, Post(), 2)
    messages = done.events("message.sent")
    assert [(each["agent_id"], each["receiver"]) for each in messages] == [
        *(("cell_1", "cell_1"), ("cell_2", "cell_1")),
    ]
    assert orjson.dumps(messages[1]["content"]).startswith(b'{"price":0')

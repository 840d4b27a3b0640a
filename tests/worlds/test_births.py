"""Agents that join and leave a run: what counts from birth, and what ends with leaving."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from prism import Run, replay
from prism.analysis import check_log, read_log
from prism.errors import AgentError, FieldValueError, ReplayError, SimulationError
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, Plane, Space, World, during, small_world, state
from tests.kit.lamps import Lamp, Light, Room
from tests.kit.worlds import run_logged

Life = StrEnum("Life", ["ALIVE"])
CHART = Statechart(Life, [Transition("lives", Life.ALIVE, Life.ALIVE)], Life.ALIVE, name="life")


class Cell(Agent):
    """Something that divides and dies."""

    chart = CHART
    turns: int = state(0)


class Town(World[Cell]):
    """Cells in a space and a network that bear and leave by turns."""

    rounds = 8
    ticks = 2
    place: Space[Cell] = state(Space)

    def setup(self) -> None:
        self.network = small_world(self, 2, 0)
        self.place = Space(5, 5, wraps=True, capacity=None)
        for cell in self.agents:
            self.place.put(cell, 12)

    @during(Life.ALIVE)
    def live(self, cell: Cell) -> None:
        cell.turns += 1
        self.place.put(cell, cell.random.choice(self.place.near(self.place.cells[cell])))
        if cell.random.chance(0.2):
            self.add(Cell(), cell, neighbours=cell.neighbours)
        elif cell.random.chance(0.15):
            cell.leave()


def test_sets_counts_spaces_and_networks_have_who_is_there(tmp_path: Path) -> None:
    """After births and deaths, all of them agree, and the log tells of each."""
    done = run_logged(tmp_path, Town(), 12, seed=4)
    world = done.run.world
    there = {*world.agents}
    assert world.count(Life.ALIVE) == len(there) == done.run.finished[-1].states["alive"]
    assert {*world.place.cells} == there
    beside = {frozenset((cell, other)) for cell in there for other in cell.neighbours}
    agents = world.agents
    assert {frozenset((agents[a], agents[b])) for a, b in world.network.pairs()} == beside
    assert set().union(*beside) <= there
    # newcomers have the neighbours of their parents
    assert len(beside) > 100

    joined = [each["agent_id"] for each in done.events("agent.joined")]
    left = [each["agent_id"] for each in done.events("agent.left")]
    assert len({*joined}) == len(joined) > 12
    assert {*joined} - {*left} == {cell.agent_id for cell in there}
    newcomers = [each for each in done.events("agent.joined") if "parent" in each]
    assert all(each["agent_id"].startswith(f"{each['parent']}.") for each in newcomers)
    assert done.events("round.ended")[-1]["states"]["alive"] == len(there)


@pytest.mark.parametrize("stages", [0, 1, 2])
def test_a_newcomer_acts_from_the_next_tick_on(stages: int) -> None:
    """Whoever bears it, in whatever order, and in whichever stage of a tick."""

    class Nursery(World[Cell]):
        rounds = 3

        async def tick(self) -> None:
            for stage in range(stages):
                await self.activate(self.agents[stage::stages])
            if not stages:
                await self.activate()

        @during(Life.ALIVE)
        def live(self, cell: Cell) -> None:
            cell.turns += 1
            if self.round == 2 and "." not in cell.agent_id:
                self.add(Cell(), cell).fire("lives")

    run = Run(Nursery(), 5, seed=1)
    run.run()
    assert {(cell.agent_id.count("."), cell.turns) for cell in run.agents} == {(0, 3), (1, 1)}


class Leaving(Room):
    """The last of three lamps sends the first away while that is asked, and writes to it."""

    @during(Light.OFF)
    async def press(self, lamp: Lamp) -> None:
        if lamp is self.agents[-1] and len(self.agents) == 3:
            gone = self.agents[0]
            gone.leave()
            lamp.send(gone, "too late")
        await lamp.decide("pressed")


def test_one_that_leaves_while_it_is_asked_decides_nothing(tmp_path: Path) -> None:
    """Its answer is discarded, which the log says, and no message reaches it."""
    done = run_logged(tmp_path, Leaving(), 3, seed=1)
    (discarded,) = done.events("statechart.answer_discarded")
    assert (discarded["agent_id"], discarded["reason"]) == ("lamp_1", "left")
    assert len(done.run.agents) == 2
    assert not done.events("message.sent")


Age = StrEnum("Age", ["YOUNG", "OLD"])
LIMIT = 5


class Person(Agent):
    """Somebody who is old after so many turns."""

    chart = Statechart(
        Age,
        [Transition("timeout", Age.YOUNG, Age.OLD)],
        initial=Age.YOUNG,
        timeouts={Age.YOUNG: LIMIT},
        name="person",
    )
    turns: int = state(0)


Post = StrEnum("Post", ["OPEN"])


class Keeper(Agent):
    """Somebody who is always there."""

    chart = Statechart(Post, [], initial=Post.OPEN, name="keeper")


class Home(World[Person | Keeper]):
    """Somebody joins in two rounds, and leaves when old."""

    rounds = 40
    ticks = 2
    when: str = "round_begins"

    def populate(self, agents: int) -> list[Any]:
        return [Keeper(), Person()]

    def bear(self, when: str) -> None:
        if when == self.when and self.round in (4, 20) and self.tick_number in (0, 2):
            self.add(Person())

    def round_begins(self) -> None:
        self.bear("round_begins")

    def tick_begins(self) -> None:
        self.bear("tick_begins")

    def tick_ends(self) -> None:
        self.bear("tick_ends")

    @during(Post.OPEN)
    def keep(self, keeper: Keeper) -> None:
        self.bear("step")

    @during(Age.YOUNG)
    def live(self, person: Person) -> None:
        person.turns += 1

    @during(Age.OLD)
    def die(self, person: Person) -> None:
        person.leave()


class HomeTogether(Home):
    """Everything takes effect at the end of the tick."""

    together = True


class HomeInStages(Home):
    """The old have their turns first."""

    async def tick(self) -> None:
        await self.activate(self.agents.where(state=Age.OLD))
        await self.activate(self.agents.where(state=(Age.YOUNG, Post.OPEN)))


@pytest.mark.parametrize("when", ["round_begins", "tick_begins", "step", "tick_ends"])
@pytest.mark.parametrize("home", [Home, HomeTogether, HomeInStages])
@pytest.mark.sampled(5)
def test_time_in_state_is_counted_from_birth(home: type[Home], when: str, tmp_path: Path) -> None:
    """Whoever joins, and when, is young for the same number of turns; the log says the same."""
    address = f"{__file__}:{home.__name__}"
    kept = Run(address, seed=1, parameters={"when": when}).keep(tmp_path / "run")
    replay(kept.folder, tmp_path / "again")
    log = read_log(kept.folder)
    rows = log.sql("select ticks_in_state from events where \"trigger\" = 'timeout'").fetchall()
    assert rows == [(LIMIT + 1,)] * 3
    dwell = log.sql("select state, complete, cut, open, mean from dwell order by state").fetchall()
    assert dwell == [
        *(("old", 3, 0, 0, 1.0), ("open", 0, 0, 1, 80.0), ("young", 3, 0, 0, LIMIT + 1)),
    ]
    assert check_log(log, Person.chart).counts == {}
    there = log.sql("select agent_id from agents where left_round is null").fetchall()
    assert there == [("keeper_1",)]
    for number, states in log.sql(
        "select round, map_from_entries(list((state, agents))) from states "
        "where tick = 2 group by round order by round"
    ).fetchall():
        assert kept.results.rounds[number - 1].states == states


Place = StrEnum("Place", ["WAITING", "SERVED"])


class Customer(Agent):
    """Somebody who is served in turn, and leaves."""

    chart = Statechart(
        Place,
        [Transition("turn", Place.WAITING, Place.SERVED)],
        initial=Place.WAITING,
        name="customer",
    )


class Queue(World[Keeper | Customer]):
    """A queue with one server: arrivals and services are Poisson (M/M/1)."""

    rounds = 200
    arrivals: float = 0.5
    services: float = 1.0
    most: int = 1000
    line: list[Any] = state(list)
    passed: float = state(0.0)
    last: float = state(0.0)

    def populate(self, agents: int) -> list[Any]:
        return [Keeper()]

    def account(self) -> None:
        self.passed += len(self.line) * (self.time - self.last)
        self.last = self.time

    @during(Post.OPEN, rate="arrivals")
    def arrive(self, _: Keeper) -> None:
        self.account()
        self.line.append(self.add(Customer()))
        self.serve()

    @during(Place.SERVED, rate="services")
    def depart(self, customer: Customer) -> None:
        self.account()
        customer.leave()
        self.line.remove(customer)
        self.serve()

    def serve(self) -> None:
        if self.line and self.line[0].state is Place.WAITING:
            self.line[0].fire("turn")

    def until(self) -> bool:
        return len(self.line) >= self.most

    def round_ends(self) -> None:
        self.account()


@pytest.mark.parametrize("most", [4, 1000])
@pytest.mark.sampled(2)
def test_a_queue_passes_as_much_time_in_the_log_as_in_the_world(most: int, tmp_path: Path) -> None:
    """Little's area is that of the table of dwell, also of a run that stops between ticks."""
    options = Run(f"{__file__}:Queue", 1, seed=3, parameters={"most": most})
    kept = options.keep(tmp_path / "run")
    world = Queue(most=most)
    Run(world, 1, seed=3).run()
    log = read_log(kept.folder)
    dwell = "select sum(at_risk), sum(open) from dwell where chart = 'customer'"
    ((passed, still_there),) = log.sql(dwell).fetchall()
    assert passed == pytest.approx(world.passed, abs=1e-3)
    assert still_there == len(world.line)
    ends = log.sql("select state, agents from states order by round desc limit 3").fetchall()
    assert dict(ends) == kept.results.rounds[-1].states


@pytest.mark.slow
def test_the_log_of_a_queue_has_as_many_as_it_must(tmp_path: Path) -> None:
    """The mean of `prism log states` is r / (1 - r), and a customer is served for 1 / services."""
    numbers, served = [], []
    for seed in range(16):
        kept = Run(f"{__file__}:Queue", 1, seed=seed).keep(tmp_path / str(seed))
        log = read_log(kept.folder)
        of_rounds = "select sum(agents) as n from states where chart = 'customer' and round > 50"
        ((number,),) = log.sql(f"select sum(n) / 150 from ({of_rounds})").fetchall()
        ((length,),) = log.sql("select mean from dwell where state = 'served'").fetchall()
        assert log.sql("from visits where state = ''").fetchall() == []
        numbers.append(number)
        served.append(length)
    assert abs(mean(numbers) - 1) < 4 * stdev(numbers) / 4
    assert abs(mean(served) - 1) < 4 * stdev(served) / 4


def test_until_ends_a_run_at_its_event() -> None:
    """`World.time` and the results tell the event's own time, as `World.stop` does."""

    class Pair(World[Customer]):
        rounds = 50
        stops: bool = False
        told: list[float] = state(list)

        @during(Place.WAITING, rate=0.3)
        def move(self, customer: Customer) -> None:
            customer.fire("turn")
            self.told = [self.time]
            if self.stops and self.until():
                self.stop("over")

        def until(self) -> bool:
            assert not self.stopped_at() or self.told[-1] == self.time
            return self.stopped_at()

        def stopped_at(self) -> bool:
            return self.count(Place.WAITING) == 0

        def tick_ends(self) -> None:
            self.told.append(self.time)

    for stops in (False, True):
        run = Run(Pair(stops=stops), 5, seed=1)
        stopped = run.run().stopped
        assert stopped is not None
        assert stopped["time"] % 1 > 0
        assert run.world.told == pytest.approx([stopped["time"]] * 2, abs=1e-9)


class Yard(World[Person]):
    """People in a space and a plane, of whom one does something odd."""

    rounds = 2
    field: Space[Person] = state(Space)
    sky: Plane[Person] = state(Plane)

    def setup(self) -> None:
        self.field, self.sky = Space(3, 3), Plane(10, 10, 1)
        for number, person in enumerate(self.agents):
            self.field.put(person, number)
            self.sky.put(person, number, number)


class Acting(Yard):
    """A yard in which the first one does something."""

    rounds = 1
    act: Any = None

    @during(Age.YOUNG)
    def live(self, person: Person) -> None:
        if person.agent_id == "person_1":
            self.act(self, person)


class ActingAlone(Acting):
    """The same, with agents in different ticks."""

    independent = True


def test_who_has_left_is_put_nowhere() -> None:
    """The order of leaving and moving makes no difference."""

    def move(yard: Any, person: Person) -> None:
        person.leave()
        yard.field.put(person, 8)
        yard.sky.put(person, 5, 5)

    run = Run(Acting(act=move), 3, seed=1)
    run.run()
    yard = run.world
    assert len(yard.agents) == len(yard.field.cells) == len(yard.sky.positions) == 2
    assert not yard.field.at(8)
    assert len(yard.sky.within(yard.agents[0], 20)) == 1


class ActingTogether(Acting):
    """The same, with agents that act at the same time."""

    together = True


def bear_without_room(yard: Any, person: Person) -> None:
    """Try to bear somebody where nobody has room."""
    yard.field.capacity = 0
    with pytest.raises(FieldValueError, match=r"there is no room for <Person person_1\.1"):
        yard.add(Person(), at=person)


@pytest.mark.parametrize(
    ("world", "act", "there"),
    [
        (Acting, bear_without_room, {"person_1": 0, "person_2": 1}),
        (
            ActingTogether,
            lambda yard, _: (yard.agents[1].leave(), yard.add(Person(), at=yard.agents[1])),
            {"person_1": 0, "person_2.1": 1},
        ),
        (
            Acting,
            lambda yard, _: (yard.add(Person(agent_id="person_1.1")), yard.add(Person())),
            {"person_1": 0, "person_2": 1, "person_1.1": None, "person_1.2": None},
        ),
    ],
)
def test_who_is_born_is_counted_and_where_it_should_be(
    world: type[Acting], act: Callable[[Any, Person], object], there: dict[str, int | None]
) -> None:
    """Nobody is without room; a dying parent's place is kept; a taken id is passed over."""
    run = Run(world(act=act), 2, seed=1)
    assert run.run().rounds[-1].states["young"] == len(there)
    assert {each.agent_id: run.world.field.cells.get(each) for each in run.agents} == there


def come_back(yard: Any, person: Person) -> None:
    """Leave, and bear somebody."""
    person.leave()
    yard.add(Person(), at=person)


@pytest.mark.parametrize(
    ("world", "act", "error", "problem"),
    [
        (Acting, lambda yard, one: yard.add(one), AgentError, "has joined a run already"),
        (Acting, lambda yard, _: yard.add(Person), AgentError, "must get an agent, got <class"),
        (Acting, come_back, FieldValueError, "is nowhere in this space, .* after leave"),
        (
            Acting,
            lambda yard, one: yard.add(Person(), neighbours=[one]),
            SimulationError,
            "has no network: set one in setup",
        ),
        (ActingAlone, lambda yard, _: yard.add(Person()), SimulationError, "cannot add anybody"),
        (ActingAlone, lambda yard, _: yard.stop(), SimulationError, "cannot stop the run, in an"),
    ],
)
def test_what_cannot_be_done_in_a_step_is_refused(
    world: type[Acting], act: Callable[[Any, Person], object], error: type[Exception], problem: str
) -> None:
    """The message says why, or what to do."""
    with pytest.raises(error, match=problem):
        Run(world(act=act), 3, seed=1).run()


def test_what_is_set_after_add_is_kept_in_a_together_world() -> None:
    """A newcomer has its fields, state and random numbers at once, and is there when all are."""

    class Nursery(World[Person]):
        rounds = 3
        together = True

        @during(Age.YOUNG)
        def live(self, person: Person) -> None:
            person.turns += 1
            if self.round == 2 and person is self.agents[0]:
                child = self.add(Person())
                child.turns = 100
                assert child.state is Age.YOUNG
                assert child not in self.agents

    run = Run(Nursery(), 2, seed=1)
    run.run()
    assert {each.agent_id: each.turns for each in run.agents} == {
        **{"person_1": 3, "person_2": 3, "person_1.1": 101},
    }


class Moved(World[Person]):
    """One leaves before the run, and one joins."""

    def setup(self) -> None:
        self.agents[0].leave()
        self.add(Person())


def test_who_joins_or_leaves_in_setup_is_counted_once(tmp_path: Path) -> None:
    """Counts and log have who is there when the run begins."""
    done = run_logged(tmp_path, Moved(), 4, rounds=1)
    assert done.results.rounds[0].states == {"young": 4, "old": 0}
    assert len(done.events("agent.joined")) == 4
    assert not done.events("agent.left")


def test_a_replay_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Unless somebody has answered: a folder could not be taken again."""
    kept = Run(f"{__file__}:Home", seed=1, rounds=8).keep(tmp_path / "run")
    assert kept.folder is not None
    log = kept.folder / "events.jsonl"
    before, _, after = log.read_bytes().rpartition(b'"timeout"')
    log.write_bytes(before + b'"time-out"' + after)
    with pytest.raises(ReplayError, match="differs"):
        replay(kept.folder, tmp_path / "again")
    assert not (tmp_path / "again").exists()


class Sent(World[Person]):
    """In the third round the first sends the last away, and somebody joins within a tick."""

    rounds = 3

    async def tick(self) -> None:
        if self.round == 3:
            self.add(Person(agent_id="new"))
        await self.activate()

    @during(Age.YOUNG)
    def live(self, person: Person) -> None:
        person.turns += 1
        if self.round == 3 and person is self.agents[0]:
            self.agents[1].leave()


def test_who_is_sent_away_before_its_turn_had_none(tmp_path: Path) -> None:
    """The log has its chart and its turns; who joined in the same tick has none, either."""
    done = run_logged(tmp_path, Sent(), 2, seed=1)
    (left,) = done.events("agent.left")
    assert (left["agent_id"], left["chart"], left["ticks_in_state"]) == ("person_2", "person", 2)
    turns = {each.agent_id: each.turns for each in done.run.agents}
    assert turns == {"person_1": 3, "new": 0}

"""What is counted from the birth of an agent, and what ends as it leaves."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from prism import Run, replay
from prism.analysis import check_log, read_log
from prism.errors import FieldValueError, ReplayError, SimulationError
from prism.social import Feed
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, Plane, Space, World, during, state, treatment
from tests.kit.worlds import run_in

Age = StrEnum("Age", ["YOUNG", "OLD"])
LIMIT = 5


class Person(Agent):
    """Somebody who is old after so many turns."""

    chart = Statechart(
        Age,
        [Transition("timeout", Age.YOUNG, Age.OLD), Transition("rests", Age.OLD, Age.OLD)],
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
    young: list[int] = state(list)

    def populate(self, agents: int) -> list[Any]:
        """Begin with one of each kind."""
        return [Keeper(), Person()]

    def bear(self, when: str) -> None:
        """Let somebody join, if it is the time."""
        if when == self.when and self.round in (4, 20) and self.tick_number in (0, 2):
            self.add(Person())

    def round_begins(self) -> None:
        """Let somebody join before the first tick."""
        self.bear("round_begins")

    def tick_begins(self) -> None:
        """Let somebody join before the steps."""
        self.bear("tick_begins")

    def tick_ends(self) -> None:
        """Let somebody join after the steps."""
        self.bear("tick_ends")

    @during(Post.OPEN)
    def keep(self, keeper: Keeper) -> None:
        """Let somebody join among the steps."""
        self.bear("step")

    @during(Age.YOUNG)
    def live(self, person: Person) -> None:
        """Count a turn."""
        person.turns += 1

    @during(Age.OLD)
    def die(self, person: Person) -> None:
        """Leave."""
        self.young.append(person.turns)
        person.leave()


class HomeTogether(Home):
    """Everything takes effect at the end of the tick."""

    together = True


class HomeInStages(Home):
    """The old have their turns first."""

    async def tick(self) -> None:
        """Activate those in one state, then in the other."""
        await self.activate(self.agents.where(state=Age.OLD))
        await self.activate(self.agents.where(state=(Age.YOUNG, Post.OPEN)))


@pytest.mark.parametrize("when", ["round_begins", "tick_begins", "step", "tick_ends"])
@pytest.mark.parametrize("home", [Home, HomeTogether, HomeInStages])
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
    assert check_log(log, Person.chart).found == {}
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
        """Begin empty."""
        return [Keeper()]

    def account(self) -> None:
        """Add up the time of all who are there."""
        self.passed += len(self.line) * (self.time - self.last)
        self.last = self.time

    @during(Post.OPEN, rate="arrivals")
    def arrive(self, _: Keeper) -> None:
        """Let somebody in."""
        self.account()
        self.line.append(self.add(Customer()))
        self.serve()

    @during(Place.SERVED, rate="services")
    def depart(self, customer: Customer) -> None:
        """Let somebody go."""
        self.account()
        customer.leave()
        self.line.remove(customer)
        self.serve()

    def serve(self) -> None:
        """Serve the first."""
        if self.line and self.line[0].state is Place.WAITING:
            self.line[0].fire("turn")

    def until(self) -> bool:
        """End when there are many."""
        return len(self.line) >= self.most

    def round_ends(self) -> None:
        """Add up to the end."""
        self.account()


@pytest.mark.parametrize("most", [1000, 4])
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
        numbers.append(number)
        served.append(length)
    assert abs(mean(numbers) - 1) < 4 * stdev(numbers) / 4
    assert abs(mean(served) - 1) < 4 * stdev(served) / 4


class Early(World[Keeper | Customer]):
    """Customers join before the events of a tick."""

    rounds = 20

    def populate(self, agents: int) -> list[Any]:
        """Begin empty."""
        return [Keeper()]

    def tick_begins(self) -> None:
        """Let somebody in, at the time at which the tick begins."""
        assert self.time == self.round - 1
        self.add(Customer())

    @during(Place.WAITING, rate=3.0)
    def move(self, customer: Customer) -> None:
        """Be served."""
        customer.fire("turn")


def test_who_joins_before_the_events_of_a_tick_is_there_from_its_beginning(tmp_path: Path) -> None:
    """Nobody stays for less than no time."""
    kept = Run(f"{__file__}:Early", seed=2).keep(tmp_path / "run")
    lengths = read_log(kept.folder).sql("select min(length), max(length) from visits").fetchall()
    assert 0 <= lengths[0][0] <= lengths[0][1] == 20


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
        """Put everybody somewhere."""
        self.field, self.sky = Space(3, 3), Plane(10, 10, 1)
        for number, person in enumerate(self.agents):
            self.field.put(person, number)
            self.sky.put(person, number, number)


def after_leaving(act: Callable[[Any, Person], object]) -> Any:
    """Return a world in which the first one leaves, and then acts."""

    class Left(Yard):
        @during(Age.YOUNG)
        def live(self, person: Person) -> None:
            if person.agent_id == "person_1":
                person.leave()
                act(self, person)

    run = Run(Left(), 3, seed=1)
    run.run()
    return run.world


def test_who_has_left_is_put_nowhere() -> None:
    """The order of leaving and moving makes no difference."""

    def move(yard: Any, person: Person) -> None:
        yard.field.put(person, 8)
        yard.sky.put(person, 5, 5)

    yard = after_leaving(move)
    assert len(yard.agents) == len(yard.field.cells) == len(yard.sky.positions) == 2
    assert not yard.field.at(8)
    assert len(yard.sky.within(yard.agents[0], 20)) == 1
    with pytest.raises(FieldValueError, match="in young> has left the run: bear others"):
        after_leaving(lambda yard, person: yard.add(Person(), at=person))


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


def test_who_joins_or_leaves_in_setup_is_counted_once(tmp_path: Path) -> None:
    """Counts and log have who is there when the run begins."""
    kept = Run(f"{__file__}:Moved", 4, rounds=1).keep(tmp_path / "run")
    assert kept.results.rounds[0].states == {"young": 4, "old": 0}
    events = read_log(kept.folder).sql("select event, count(*) from events group by 1").fetchall()
    assert dict(events)["agent.joined"] == 4
    assert "agent.left" not in dict(events)


class Moved(World[Person]):
    """One leaves before the run, and one joins."""

    def setup(self) -> None:
        """Change who is there."""
        self.agents[0].leave()
        self.add(Person())


def test_nobody_joins_among_the_steps_of_an_independent_world() -> None:
    """Since agents are in different ticks."""

    class Alone(World[Person]):
        independent = True

        @during(Age.YOUNG)
        def live(self, person: Person) -> None:
            self.add(Person())

    with pytest.raises(SimulationError, match="add newcomers in a hook, such as round_begins"):
        Run(Alone(), 2).run()


class Thinned(Feed):
    """A feed of whose readers some leave as the third round begins."""

    @treatment(round=3)
    def thin_out(self) -> None:
        """Let a third of the agents leave."""
        for agent in self.assign("leaves", 0.3):
            agent.leave()


def test_who_has_left_is_not_among_the_silent(tmp_path: Path) -> None:
    """Participation is that of those who are there in a round; the agent's story ends."""
    kept = Run(f"{__file__}:Thinned", 40, rounds=5).keep(tmp_path / "run")
    log = read_log(kept.folder)
    gone = log.sql("select agent_id, state, line from events where event = 'agent.left'").fetchall()
    rows = log.sql("select round, agents, silent * agents from participation").fetchall()
    there = {number: agents for number, agents, _ in rows}
    assert there == {**dict.fromkeys((1, 2, 3, None), 40), **dict.fromkeys((4, 5), 40 - len(gone))}
    writers = "select count(distinct agent_id) from acts where what <> 'likes' and round = 5"
    ((wrote,),) = log.sql(writers).fetchall()
    assert rows[4][2] == pytest.approx(there[5] - wrote)
    agent, last, line = gone[0]
    story = log.sql(f"select line, what from agent('{agent}') order by line").fetchall()
    assert (line, f"leaves the run, {last}") in story


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


@pytest.mark.parametrize("home", [Home, HomeTogether, HomeInStages, Queue])
def test_births_and_deaths_are_resumed_with_the_same_bytes(
    home: type[World[Any]], tmp_path: Path
) -> None:
    """Stopped in the rounds in which somebody joins or leaves."""
    options = Run(f"{__file__}:{home.__name__}", seed=2, rounds=25)
    whole = run_in(tmp_path / "whole", options)
    assert run_in(tmp_path / "stopped", options, [4, 9, 20]) == whole


class Sent(World[Person]):
    """In the third round the first sends the last away, and somebody joins within a tick."""

    rounds = 3

    async def tick(self) -> None:
        """Let somebody join before anybody has a turn."""
        if self.round == 3:
            self.add(Person(agent_id="new"))
        await self.activate()

    @during(Age.YOUNG)
    def live(self, person: Person) -> None:
        """Count a turn; the first sends the last away."""
        person.turns += 1
        if self.round == 3 and person is self.agents[0]:
            self.agents[1].leave()


def test_who_is_sent_away_before_its_turn_had_none(tmp_path: Path) -> None:
    """The log has its chart and its turns; who joined in the same tick has none, either."""
    kept = Run(f"{__file__}:Sent", 2, seed=1).keep(tmp_path / "run")
    log = read_log(kept.folder)
    left = log.sql("select agent_id, chart, ticks_in_state from events where event = 'agent.left'")
    assert left.fetchall() == [("person_2", "person", 2)]
    run = Run(Sent(), 2, seed=1)
    run.run()
    assert [(each.agent_id, each.turns) for each in run.agents] == [("person_1", 3), ("new", 0)]

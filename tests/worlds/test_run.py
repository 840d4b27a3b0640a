"""What holds for a run of any world: the shipped ones, and one that does everything at random."""

import os
import subprocess
import sys
from math import inf
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prism
from prism import Run
from prism.errors import SimulationError
from prism.examples import Rumour, Schelling, Vaccination
from prism.examples.rumour import Person
from prism.examples.schelling import Resident
from prism.reasoner import PolicyReasoner
from prism.testing import LateReasoner
from prism.worlds import AgentSet, World, during, measure, small_world, state, uniform
from tests.kit.lamps import Lamp, Light
from tests.kit.worlds import WITHOUT_MODEL, Gossip, run_in, run_logged

WORLDS = [(Gossip, 12), *WITHOUT_MODEL.items()]
"""Worlds with a number of agents; those of the first remember, decide and send messages."""

FEW = settings(max_examples=max(1, settings().max_examples // 3))
"""For properties each of whose examples is a run and its twin."""

CHILD = """
import sys
from pathlib import Path
from prism import Run
Run(sys.argv[2], int(sys.argv[3]), seed=4).keep(sys.argv[1])
"""


@pytest.mark.parametrize(("world", "agents"), WORLDS[::3])
@pytest.mark.slow
def test_any_process_writes_the_same_bytes(
    world: type[World[Any]], agents: int, tmp_path: Path
) -> None:
    """A process with another hash seed, and this one, leave the same log and run.json."""
    left = run_in(tmp_path / "here", Run(world, agents, seed=4))
    # hashes of texts in this process are random, or those of the machine's PYTHONHASHSEED
    hashes = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hashes,
        "PYTHONPATH": str(Path(prism.__file__).parents[1]),
    }
    folder = tmp_path / "there"
    address = f"{world.__module__}:{world.__name__}"
    line = [sys.executable, "-c", CHILD, str(folder), address, str(agents)]
    subprocess.run(line, env=environment, check=True, timeout=120)
    assert (folder / "events.jsonl").read_bytes() + (folder / "run.json").read_bytes() == left


class Apart(World[Lamp]):
    """Lamps that see those next to them, and may be in different ticks."""

    ticks = 3
    independent = True

    def setup(self) -> None:
        self.network = small_world(self, 2, 0)

    def depends(self, agent: Lamp) -> AgentSet[Lamp]:
        return agent.neighbours

    @during(Light.OFF, Light.ON)
    async def press(self, lamp: Lamp) -> None:
        self.log("seen", agent=lamp, lit=lamp.neighbours.count(Light.ON), at=self.time)
        await lamp.decide("pressed")


@pytest.mark.parametrize(("world", "agents"), WORLDS)
@given(numbers=st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(1, 9)))
@FEW
@pytest.mark.sampled(len(WORLDS))
def test_when_answers_come_changes_nothing(
    world: type[World[Any]], agents: int, numbers: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Answers that overtake each other, however many at once, leave the log as it is."""
    seed, waits, concurrency = numbers
    folder = tmp_path_factory.mktemp("runs")
    late = LateReasoner(PolicyReasoner(seed), concurrency=concurrency, seed=waits)
    at_once = run_logged(folder, world(), agents, seed=seed)
    assert run_logged(folder, world(), agents, seed=seed, reasoner=late).log == at_once.log


def test_agents_ahead_of_each_other_write_one_log(tmp_path: Path) -> None:
    """It is that of turns one after another, however long each answer takes."""
    slow, quick = (LateReasoner(PolicyReasoner(0), concurrency=n, seed=n) for n in (1, 7))
    done = run_logged(tmp_path, Apart(), 9, rounds=2, reasoner=slow)
    assert run_logged(tmp_path, Apart(), 9, rounds=2, reasoner=quick).log == done.log
    turns = [(each["round"], each["tick"], each["at"]) for each in done.events("world.seen")]
    assert turns == sorted(turns)
    assert {round(at * 3) for *_, at in turns} == {*range(1, 7)}


class Nosy(World[Lamp]):
    """Agents that wait for each other, though the world says that they are independent."""

    independent = True
    asks: bool = True

    @during(Light.OFF)
    async def ask(self, lamp: Lamp) -> None:
        await (self.agents[0].decide("pressed") if self.asks else lamp.receive())


@pytest.mark.parametrize("asks", [True, False])
def test_an_independent_step_waits_for_its_own_agent_alone(asks: bool) -> None:
    """Otherwise the run would depend on which answer came first."""
    late = LateReasoner(PolicyReasoner(0), concurrency=2)
    with pytest.raises(SimulationError, match="waits for another agent, in an independent world"):
        Run(Nosy(asks=asks), 3, reasoner=late).run()


class Drawing(PolicyReasoner):
    """Draws numbers that it has no use for."""

    async def answer(self, questions: Any) -> Any:
        for question in questions:
            for _ in range(3):
                question.agent.decision_random.random()
        return await super().answer(questions)


class Wider(Person):
    """A person with one more field."""

    height: float = uniform(1, 2)


class WiderRumour(Rumour):
    """A rumour with more state, more events, another measure, and draws of the world's own."""

    extra: float = state(0.0)

    def populate(self, agents: int) -> list[Person]:
        return [Wider(agent_id=f"person_{number}") for number in range(1, agents + 1)]

    def tick_ends(self) -> None:
        self.extra = self.random.random()
        self.log("drawn", extra=self.extra)

    @measure
    def drawn(self) -> float:
        return self.extra


def test_what_is_added_shifts_nobody_elses_draws(tmp_path: Path) -> None:
    """Another field, measure, event or draw of the world's leaves transitions and decisions."""
    names = ("statechart.transition", "reasoner.decision")
    plain = run_logged(tmp_path, Rumour(), 60, seed=5, rounds=15)
    wider = run_logged(tmp_path, WiderRumour(), 60, seed=5, rounds=15)
    assert wider.steps(*names) == plain.steps(*names) != []


def test_a_reasoner_that_draws_more_shifts_no_step(tmp_path: Path) -> None:
    """The draws of steps, and so the first tick's questions, do not depend on the reasoner."""
    plain = run_logged(tmp_path, Vaccination(), 30, rounds=1, ticks=1)
    other = run_logged(tmp_path, Vaccination(), 30, rounds=1, ticks=1, reasoner=Drawing(0))
    for agent, twin in zip(plain.run.agents, other.run.agents, strict=True):
        assert [agent.random.random() for _ in range(3)] == [twin.random.random() for _ in range(3)]


@given(order=st.permutations(range(20)), seed=st.integers(0, 99))
@FEW
def test_together_the_order_of_agents_changes_no_state(order: list[int], seed: int) -> None:
    """In a together world a population in another order comes to the same states and fields."""

    def fields(places: list[int]) -> dict[str, Any]:
        people = [Resident(agent_id=f"r{place}") for place in places]
        run = Run(Schelling(width=6), people, seed=seed, rounds=6)
        run.run()
        cells = run.world.town.cells
        return {each.agent_id: (each.state, each.group, cells[each]) for each in run.agents}

    assert fields(order) == fields(list(range(20)))


class Measured(Rumour):
    """A world with a measure of a test's own."""

    looks_at: Any = None

    @measure
    def looks(self) -> Any:
        return self.looks_at(self.agents[1])


@pytest.mark.parametrize(
    ("looks", "problem"),
    [
        (lambda one: one.fire("hears"), "'person_2' cannot fire 'hears': a measure must not"),
        (lambda one: one.send(one), "nothing can be sent: a measure must not change anything"),
        (lambda one: one.leave(), "a measure must not change anything"),
        (lambda one: one.world.add(Person()), "a measure must not change anything"),
        (lambda _: inf, "Measured.looks must return a finite number"),
    ],
)
def test_a_measure_only_looks(looks: Any, problem: str) -> None:
    """A measure that fires or sends, or returns no number, is refused in the first round."""
    with pytest.raises(SimulationError, match=problem):
        Run(Measured(looks_at=looks), 20).run()


def test_a_measure_may_be_too_large_for_a_whole_number_in_json(tmp_path: Path) -> None:
    """The log has it with a fraction."""
    done = run_logged(tmp_path, Measured(looks_at=lambda _: 2**70), 20, rounds=1)
    assert repr(done.events("round.ended")[0]["measures"]["looks"]) == repr(2.0**70)


def test_a_world_and_a_run_are_used_once() -> None:
    """Neither a world nor a run can be run a second time: both have changed."""
    world = Rumour()
    run = Run(world, 20, rounds=1)
    run.run()
    with pytest.raises(SimulationError, match="make a new one"):
        run.run()
    with pytest.raises(SimulationError, match="this Rumour is already in a run"):
        _ = Run(world, 20).agents


def test_a_notebook_shows_a_table_of_rounds() -> None:
    """A row for each round: states and measures. As a text, results are their last round."""
    run = Run(Rumour(), 20, rounds=2, seed=1)
    assert run._repr_html_() is None
    results, table = run.run(), run._repr_html_()
    names, _, second = [[cell.text for cell in row] for row in fromstring(str(table))]
    last = {"round": 2, **results.rounds[1].states, **results.rounds[1].measures}
    assert (names, second) == ([*last], [str(value) for value in last.values()])
    assert table == results._repr_html_()
    assert "20 agents, the last round: (WorldRound(number=2, states={" in str(results)


def test_a_run_without_a_log_is_that_with_one(tmp_path: Path) -> None:
    """Whether anybody listens changes no result."""
    logged = run_logged(tmp_path, Gossip(), 12, seed=6)
    silent = Run(Gossip(), 12, seed=6)
    assert silent.run().to_dict()["rounds"] == [each.to_dict() for each in logged.run.finished]

"""Columns make the same run as objects, to the byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.examples.rumour import Rumour
from prism.worlds import AgentTable, Run
from tests.columns.same import fields_of, require_same
from tests.columns.worlds import (
    Deffuant,
    Epidemic,
    Health,
    Late,
    ListedEpidemic,
    MoodyPairs,
    MoodyVoters,
    Patient,
    Together,
    Voter,
    Voters,
)
from tests.columns.written import town
from tests.kit.interpreted import machine_of

WORLDS = (Epidemic, ListedEpidemic, Voters, Deffuant, Together, MoodyVoters, MoodyPairs)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.sampled(2)
def test_the_rumour_is_the_same(seed: int, tmp_path: Path) -> None:
    """The shipped rumour writes the same folder in both engines."""
    log = require_same(Rumour, 60, tmp_path, seed=seed, rounds=15)
    assert b'"reasoner.decision"' in log


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.sampled(8)
def test_worlds_are_the_same(world: Any, tmp_path: Path) -> None:
    """Whatever a step says, and however turns are given, both engines write the same folder."""
    log = require_same(world, 49, tmp_path, seed=3)
    assert log.count(b'"statechart.transition"') > 5


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.slow
def test_fields_are_the_same(world: Any) -> None:
    """Not only moves are the same, but every field of every agent."""
    assert fields_of(Run(world, 49, seed=7)) == fields_of(Run(world, 49, seed=7, columns=True))


ASKED = """
friend = person.random.choice(person.neighbours)
odds = {Mind.LOW: person.random.random(), Mind.HIGH: friend.money}
same = odds
await person.random.choice(friend.neighbours).decide("up", person, weights=same)
await person.random.choice(friend.neighbours).decide(
    "up", person, weights={Mind.LOW: person.random.random(), Mind.HIGH: 0.5}
)
"""


def test_a_question_is_evaluated_in_the_order_of_python(tmp_path: Path) -> None:
    """Who is asked is drawn before the weights, and weights may have two names."""
    log = require_same(town(ASKED, tmp_path), 30, tmp_path, seed=1)
    assert log.count(b'"reasoner.decision"') > 5


COMPARED = """
person.seen = self.doubled(person.money)
friend = person.random.choice(person.neighbours)
other = friend.random.choice(friend.neighbours)
if other not in person.neighbours:
    person.counted += 1
person.is_glad = await person.decide("up") == Mind.HIGH
if not await person.decide("up") is Mind.LOW:
    person.counted += 10
"""
DOUBLED = """
@staticmethod
def doubled(x: float) -> float:
    return x * 2.0
"""


def test_what_is_compared_with_an_answer_or_neighbours_is_the_same(tmp_path: Path) -> None:
    """An answer may be compared where it is awaited, and an agent looked for among neighbours."""
    world = town(COMPARED, tmp_path, more=DOUBLED)
    objects, columns = (fields_of(Run(world, 12, seed=3, columns=each)) for each in (False, True))
    assert objects == columns
    assert sum(objects[0]["fields"]["counted"]) > 0


def test_before_there_is_a_network_nobody_has_neighbours(tmp_path: Path) -> None:
    """A network may come late, and another one in its place."""
    require_same(Late, 5, tmp_path)
    fields = [fields_of(Run(Late, 5, columns=each))[0]["fields"] for each in (False, True)]
    assert fields[0] == fields[1]
    assert fields[1]["met"] == [5, 4, 4, 4, 4]


OF_AGENTS: dict[str, Callable[[Any], Any]] = {
    "values": lambda agents: agents.values(lambda each: each.age),
    "mean": lambda agents: (agents.mean("age"), agents.mean(lambda each: each.strength)),
    "sum": lambda agents: agents.sum(lambda each: each.age),
    "group": lambda agents: list(agents.group("party").items()),
    "group of a state": lambda agents: agents.group("state")[Health.WELL].group("town")["north"],
    "where": lambda agents: agents.where(lambda each: each.age > 60, state=Health.WELL),
    "several states": lambda agents: agents.where(state=[Health.WELL, Health.IMMUNE]).values("age"),
    "kind": lambda agents: (agents.where(kind=Patient)[:3], agents.where(kind=Voter)),
    "count": lambda agents: agents.count(Health.WELL),
    "neighbours": lambda agents: agents[3].neighbours.where(lambda each: each.age > 20),
    "draws": lambda agents: (agents.sample(3), agents.shuffled()),
    "index": lambda agents: agents.index(agents[7]),
    "membership": lambda agents: (agents[7] in agents, agents[7] in agents[:7]),
    "slices": lambda agents: (agents[3:5], agents[-1], agents[:0]),
    "backwards": lambda agents: list(reversed(agents)),
    "joined": lambda agents: (agents[:2] + agents[5:7], agents[:2] * 2),
}


@pytest.fixture(scope="module")
def ended() -> tuple[Run[Any], Run[Any]]:
    """Return a run of objects and one of columns, which have ended."""
    with pytest.MonkeyPatch.context() as patch:
        # a fixture of a module is made before those of its tests
        patch.setattr("prism.columns._stage.machine_of", machine_of)
        runs = [Run(Epidemic, 40, seed=1, columns=columns) for columns in (False, True)]
        for run in runs:
            run.run()
    return runs[0], runs[1]


@pytest.mark.parametrize("what", OF_AGENTS)
@pytest.mark.sampled(4)
def test_a_set_of_rows_is_a_set_of_agents(what: str, ended: tuple[Run[Any], Run[Any]]) -> None:
    """Whatever is asked of sets of agents, rows answer as objects do."""
    of_objects, of_columns = (plain(OF_AGENTS[what](run.agents)) for run in ended)
    assert of_objects == of_columns


def plain(found: Any) -> Any:
    """Return ids instead of agents."""
    if isinstance(found, (tuple, list)):
        return list(map(plain, found))
    return getattr(found, "agent_id", found)


@pytest.mark.slow
def test_agents_of_a_table_are_the_same(tmp_path: Path) -> None:
    """Agents that a table gives their ids and fields are columns as any others."""
    rows = "".join(f"x{each},{each / 50},{each + 20},north\n" for each in range(40))
    table = tmp_path / "people.csv"
    table.write_text(f"agent_id,strength,age,town\n{rows}")
    people = AgentTable(table, ["strength", "age", "town"])
    log = require_same(Epidemic, people, tmp_path, seed=3)
    assert b'"agent_id":"x39"' in log

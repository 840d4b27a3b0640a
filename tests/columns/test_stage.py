"""A population in columns, and what its rows cannot do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.errors import AgentError, FieldTypeError, FieldValueError, PrismError, SimulationError
from prism.worlds import Agent, AgentTable, Run, World, during, ring, state
from tests.columns.worlds import Health, Mood, Patient


class Person(Patient):
    """A patient who needs a number."""

    number: int
    share: float = state(0.0)


class Other(Agent):
    """Somebody of another kind."""


class Town(World[Person]):
    """A world whose population is given."""

    rounds = 2

    @during(Health.WELL)
    def grow(self, person: Person) -> None:
        """Count."""
        person.met += 1


class Ring(World[Patient]):
    """Patients around a table, of whom the first begins ill."""

    rounds = 1

    def populate(self, agents: int) -> list[Patient]:
        """Make them."""
        made = [Patient() for _ in range(agents)]
        made[0].begin_in(Health.ILL)
        return made

    def setup(self) -> None:
        """Connect them."""
        self.network = ring(self, 2)


@pytest.mark.parametrize(
    ("agents", "error", "why"),
    [
        ([], FieldValueError, "a run needs at least one agent"),
        ([Other()], AgentError, "a Other: columns hold one kind of agents, Person"),
        (["Ann"], AgentError, "a str: columns hold one kind of agents, Person"),
        ([Person()], AgentError, "Person.number has no value: give it one, Person(number=...)"),
        (
            [Person(agent_id="a", number=1), Person(agent_id="a", number=2)],
            FieldValueError,
            "agent ids must be unique, used more than once: a",
        ),
        ([Person(number=2**70)], FieldTypeError, "whole number of 64 bits in columns, got 11805"),
        ([Person(number=True)], FieldTypeError, "a whole number in columns, got True"),
        ([Person(number=1, share=1)], FieldTypeError, "got 1: write 0.0 for 0, or float(...)"),
        ([Person(number=1, mood="glad")], FieldTypeError, "must be one of glad, sad in columns"),
    ],
)
def test_a_population_that_columns_cannot_hold_is_refused(
    agents: Any, error: type[PrismError], why: str
) -> None:
    """Whoever has no place in a column is told before the run, with the remedy."""
    with pytest.raises(error) as caught:
        _ = Run(Town, agents, columns=True).agents
    assert why in str(caught.value)


def test_attributes_of_a_table_are_refused(tmp_path: Path) -> None:
    """Columns of a table that are no fields have no place."""
    table = tmp_path / "people.csv"
    table.write_text("number,job\n3,baker\n")
    with pytest.raises(AgentError, match="declare them as fields of Person, or keep none"):
        _ = Run(Town, AgentTable(table, keep=["number", "job"]), columns=True).agents


WAYS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "connect": (lambda world: world.network.connect(*world.agents[:2]), "cannot be connected: a"),
    "disconnect": (
        lambda world: world.network.disconnect(*world.agents[:2]),
        "cannot be disconnected: a network in columns can only be replaced as a whole",
    ),
    "ticks": (
        lambda world: setattr(world.agents[0], "ticks_in_state", 3),
        "ticks_in_state of 'patient_1' cannot be set in columns: let it fire an event",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_rows_cannot_do_is_refused(way: str) -> None:
    """A hook is told what has no column, and what to do instead."""
    do, why = WAYS[way]
    with pytest.raises(SimulationError, match=why):
        do(Run(Ring, 5, columns=True).world)


@pytest.mark.parametrize("which", [5, -6])
def test_there_is_nobody_beyond_the_last(which: int) -> None:
    """A place beyond the last agent is told with the number of agents."""
    with pytest.raises(IndexError, match=f"only 5 agents, so none has the number {which}"):
        _ = Run(Ring, 5, columns=True).agents[which]


@pytest.mark.parametrize("columns", [False, True])
def test_sets_of_agents_are_tuples(columns: bool) -> None:
    """Two sets of the same agents are equal, as tuples are, and nothing else is one of them."""
    agents = Run(Ring, 5, columns=columns).agents
    assert agents == tuple(agents)
    assert hash(agents[:2]) == hash(tuple(agents[:2]))
    assert "Ann" not in agents
    assert [each.state for each in agents[:2]] == [Health.ILL, Health.WELL]
    assert len(agents.where(state=Health.WELL)) == 4
    assert Mood.GLAD not in agents

"""Columns make the same run as objects, to the byte."""

from pathlib import Path
from typing import Any

import pytest

from prism.worlds import AgentTable, Run
from prism.worlds.examples.rumour import Rumour
from tests.columns.same import fields_of, require_same
from tests.columns.worlds import (
    Deffuant,
    Epidemic,
    ListedEpidemic,
    MoodyPairs,
    MoodyVoters,
    Together,
    Voters,
)

WORLDS = (Epidemic, ListedEpidemic, Voters, Deffuant, Together, MoodyVoters, MoodyPairs)


@pytest.mark.parametrize("seed", range(2))
def test_the_rumour_is_the_same(seed: int, tmp_path: Path) -> None:
    """The shipped rumour writes the same folder in both engines."""
    log = require_same(Rumour, 60, tmp_path, seed=seed, rounds=15)
    assert b'"reasoner.decision"' in log


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.sampled(4)
def test_worlds_are_the_same(world: Any, tmp_path: Path) -> None:
    """Whatever a step says, and however turns are given, both engines write the same folder."""
    log = require_same(world, 49, tmp_path, seed=3)
    assert log.count(b'"statechart.transition"') > 5


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.sampled(9)
def test_fields_are_the_same(world: Any) -> None:
    """Not only moves are the same, but every field of every agent."""
    assert fields_of(Run(world, 49, seed=7)) == fields_of(Run(world, 49, seed=7, columns=True))


def test_agents_of_a_table_are_the_same(tmp_path: Path) -> None:
    """Agents that a table gives their ids and fields are columns as any others."""
    rows = "".join(f"x{each},{each / 50},{each + 20},north\n" for each in range(40))
    table = tmp_path / "people.csv"
    table.write_text(f"agent_id,strength,age,town\n{rows}")
    people = AgentTable(table, ["strength", "age", "town"])
    log = require_same(Epidemic, people, tmp_path, seed=3)
    assert b'"agent_id":"x39"' in log

"""Agents from tables: fields, attributes, kinds, and what is wrong by row and column."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import InputError
from prism.examples import Market, Rumour
from prism.examples.rumour import Mind, Person
from prism.worlds import World
from tests.kit.worlds import run_in

OASIS = Path(__file__).parents[1] / "data" / "oasis" / "user_data_36.json"

PEOPLE = "agent_id,name,age,trust,city\nann,Ann,31,0.9,Oslo\nbo,Bo,,0.1,Rome\ncy,,25,,Bern\n"


class Watched(World[Person]):
    """A world that makes its own population, and looks at an attribute."""

    def populate(self, agents: int) -> list[Person]:
        made = [Person(trust=0.3) for _ in range(agents)]
        made[0].begin_in(Mind.STIFLER)
        return made


class Citizen(Person):
    """Somebody with an attribute that has no type."""

    city = "Bergen"


class Town(World[Citizen]):
    """Citizens."""


def table(folder: Path, text: str, name: str = "people.csv") -> Path:
    """Write a table."""
    path = folder / name
    path.write_text(text)
    return path


def test_kept_columns_are_fields_or_attributes(tmp_path: Path) -> None:
    """A declared field takes the cell as its type, an empty one is drawn, the rest is kept.

    An attribute that the class sets without a type takes it as it is.
    """
    people = table(tmp_path, f"{PEOPLE},,,,\n")  # as Excel leaves empty rows
    ann, bo, cy = Run(Rumour(friends=2), people).agents
    drawn = Run(Rumour(friends=2), [Person(agent_id=each) for each in ("ann", "bo", "cy")]).agents
    assert [ann.trust, bo.trust, cy.trust] == [0.9, 0.1, drawn[2].trust]
    assert [each.age for each in (ann, bo, cy)] == [31, None, 25]
    assert dict(ann.attributes) == {"age": 31, "city": "Oslo"}
    assert [each.name for each in (ann, bo, cy)] == ["Ann", "Bo", "cy"]
    assert ann.city == "Oslo"
    assert [each.city for each in Run(Town, people).agents] == ["Oslo", "Rome", "Bern"]
    named_alike = table(tmp_path, "id,leave\nann,yes\nbo,no\ncy,no\n")
    first = Run(Rumour(friends=2), named_alike).agents[0]
    assert (first.agent_id, first.attributes, callable(first.leave)) == (
        *("ann", {"leave": "yes"}),
        True,
    )


def test_a_population_of_the_worlds_own_takes_over_the_rows(tmp_path: Path) -> None:
    """`populate` makes as many as there are rows, and what they say goes before."""
    people = table(tmp_path, "kind,trust\nPerson,0.9\nperson,0.1\nPerson,\n")
    agents = Run(Watched(), people, rounds=1).agents
    assert [each.trust for each in agents] == [0.9, 0.1, 0.3]
    assert [each.state for each in agents] == [Mind.STIFLER, Mind.IGNORANT, Mind.IGNORANT]


def test_a_column_names_the_kinds_and_one_the_states(tmp_path: Path) -> None:
    """Where a world has several kinds, each row has its own, with its fields and its state."""
    rows = "kind,worth,cost,age,state\nbuyer,12,,30,satisfied\nSeller,,2,40,\nBuyer,,,,\n"
    people = table(tmp_path, rows)
    one, two, three = Run(Market(), people).agents
    assert [type(each).__name__ for each in (one, two, three)] == ["Buyer", "Seller", "Buyer"]
    assert (one.worth, two.cost, one.state.value) == (12.0, 2.0, "satisfied")
    assert [each.attributes for each in (one, two, three)] == [{"age": n} for n in (30, 40, None)]


def test_other_peoples_tables_are_read(tmp_path: Path) -> None:
    """Personas of OASIS are agents of a world, under their user names."""
    agents = Run(Rumour(), OASIS).agents
    personas = json.loads(OASIS.read_text(encoding="utf-8"))
    assert [each.agent_id for each in agents] == [each["username"] for each in personas]
    assert [each.name for each in agents] == [each["realname"] for each in personas]
    assert [each.age for each in agents] == [each["age"] for each in personas]
    rows = table(tmp_path, 'agent_id,persona\nann,"x\nChoose it."\nbo,\ncy,\n')
    told = Run(Rumour(friends=2), rows).agents
    assert [each.persona() for each in told[:2]] == ["x\n  Choose it.", "You are bo."]


def test_attributes_are_in_the_log(tmp_path: Path) -> None:
    """A run of a table has the attributes of its agents in its log, and the table's digest."""
    people = table(tmp_path, PEOPLE)
    options = Run(Rumour, people, rounds=3, parameters={"friends": 2})
    whole = run_in(tmp_path / "whole", options)
    joined = [json.loads(line) for line in whole.splitlines()[1:4]]
    assert [each["attributes"]["age"] for each in joined] == [31, None, 25]
    config = json.loads((tmp_path / "whole" / "run.json").read_text())["config"]
    assert config["agents"] == str(people)
    assert len(config["inputs"][str(people)]) == 64


class Twins(World[Person]):
    """Two agents for each row."""

    def populate(self, agents: int) -> list[Person]:
        return [Person() for _ in range(2 * agents)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("agent_id,trust\na,0.5\nb,high\n", "line 3, field 'trust': Person.trust: "),
        ("agent_id,trust\na,nan\n", "line 2, field 'trust': .* a finite number, got 'nan'"),
        ("agent_id\na\na\n", "line 3, field 'agent_id': 'a' is already used on line 2"),
        ("agent_id;trust\na;0,5\n", "line 2, field 'trust': .* as a number, got '0,5'"),
        ("agent_id,Trust\na,0.5\n", "field 'Trust': is no field; did you mean 'trust'"),
        ("kind,trust\nPerson,0.5\nPersn,1\n", "line 3, field 'kind': there is no kind 'Persn'"),
        ("agent_id,state\na,asleep\n", "state 'asleep' is not in chart .*ignorant, spreader"),
        ("agent_id\n", "holds no agents"),
        ("kind\nboss\n", "no kind 'boss': the world has Buyer, Seller"),
        (PEOPLE, r"has 3 rows, but populate made 6 agents"),
    ],
)
def test_what_a_table_has_wrong_is_reported_by_row_and_column(
    text: str, problem: str, tmp_path: Path
) -> None:
    """A cell that is no value of its field's type, and the like, are refused where they stand."""
    world: Any = Twins if text is PEOPLE else Market if "boss" in text else Rumour
    with pytest.raises(InputError, match=problem):
        _ = Run(world, table(tmp_path, text)).agents

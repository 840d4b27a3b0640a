"""Fields of a population file that become attributes of agents."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.agents import load_population
from prism.errors import InputError

Write = Callable[[str, str | bytes], Path]

HEADER = "username,following_agentid_list,previous_tweets,user_char"


def table(column: list[str]) -> str:
    """Return a Twitter population with one more column, ``x``."""
    rows = [f'agent{row},[],[],bread,"{cell}"' for row, cell in enumerate(column)]
    return "\n".join([f"{HEADER},x", *rows]) + "\n"


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (["1", "-20", "0"], [1, -20, 0]),
        (["1", " 2 ", ""], [1, 2, None]),
        (["1", "0.5", "2e3"], [1.0, 0.5, 2000.0]),
        (["True", "false", ""], [True, False, None]),
        (["1", "two", ""], ["1", "two", ""]),
        (["007", "1"], ["007", "1"]),
        (["1", "True"], ["1", "True"]),
        (["", ""], ["", ""]),
        (["nan", "1"], ["nan", "1"]),
        (["[1, 2]"], ["[1, 2]"]),
        (["\u0661", "1"], ["\u0661", "1"]),
    ],
)
def test_a_column_has_one_type(column: list[str], values: list[Any], write: Write) -> None:
    """A column is numbers or truth values if it has nothing else, and texts if it has."""
    population = load_population(write("a.csv", table(column)))
    read = [agent.attributes for agent in population.agents]
    assert read == [{"x": value} for value in values]
    assert [type(found["x"]) for found in read] == [type(value) for value in values]


def test_personas_keep_what_prism_does_not_use(data: Path) -> None:
    """What Reddit personas say of age and country becomes attributes."""
    path = data / "oasis" / "user_data_36.json"
    people = json.loads(path.read_text(encoding="utf-8"))
    agents = load_population(path).agents
    for agent, person in zip(agents, people, strict=True):
        assert agent.attributes.items() >= {(key, person[key]) for key in ("age", "country")}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (10**400, "must be a number of at most 64 bits"),
        (["\ud83d"], "attributes must be values that JSON gives back unchanged"),
    ],
)
def test_what_no_log_could_hold_is_refused(value: Any, problem: str, write: Write) -> None:
    """A kept value that could not be written to a log is refused, with file, line and field."""
    line = json.dumps({"agent_id": "a", "interests": ["tea"], "x": value})
    with pytest.raises(InputError) as refused:
        load_population(write("a.jsonl", line + "\n"))
    assert refused.value.line == 1
    assert refused.value.problem.startswith(problem)

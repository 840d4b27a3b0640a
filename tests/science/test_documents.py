"""Plans that were changed at random: the reader against the schema."""

import copy
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from prism.errors import InputError
from prism.science import Plan
from prism.science._plan_file import plan_schema

jsonschema = pytest.importorskip("jsonschema")

PLAN: dict[str, Any] = {
    "world": "rumour",
    "agents": 3,
    "seeds": [1, 2],
    "parameters": {"tiring": 0.2},
    "vary": {"friends": [4, 8], "ticks": [1, 2]},
    "arm": [{"name": "a", "treatments": ["warning@2"]}, {"name": "b", "rounds": 2}],
    "reasoner": {"model": "m", "host": "h", "mode": "chat"},
    "budget": {"max_calls": 3},
    "bounds": {"rewired": {"least": 0, "most": 1, "step": 0.5}},
}
VALUES: list[Any] = [None, 0, -1, 2, 0.5, True, "", "a", "chat", [], ["a"], [1, 2], {}, {"a": 1}]


def places_in(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where everything inside a document stands."""
    parts = value.items() if isinstance(value, dict) else ()
    for key, part in enumerate(value) if isinstance(value, list) else parts:
        yield (*place, key)
        yield from places_in(part, (*place, key))


def changed(document: dict[str, Any], dice: Random) -> dict[str, Any]:
    """Return a document with one or two parts replaced, left out, repeated or misspelt."""
    made = copy.deepcopy(document)
    for _ in range(dice.choice((1, 1, 2))):
        *above, key = dice.choice(list(places_in(made)))
        inside: Any = made
        for part in above:
            inside = inside[part]
        what = dice.random()
        if what < 0.6:
            inside[key] = copy.deepcopy(dice.choice(VALUES))
        elif what < 0.8:
            del inside[key]
        elif isinstance(inside, list):
            inside.append(copy.deepcopy(inside[key]))
        else:
            inside[f"{key}s"] = inside.pop(key)
        if not made:
            return made

    return made


def refusal(document: dict[str, Any]) -> str:
    """Return why a plan is refused; nothing if it is taken."""
    try:
        Plan(document)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("number", [80, pytest.param(400, marks=pytest.mark.slow)])
def test_the_reader_refuses_what_the_schema_refuses(number: int) -> None:
    """Of many changed documents; and it takes the others, but for what no schema can say."""
    beyond = "twice|also|below its high|another arm|social"
    validator, dice = jsonschema.Draft202012Validator(plan_schema()), Random("plan")
    made = [changed(PLAN, dice) for _ in range(number)]
    refused = list(map(refusal, made))
    assert number / 4 < len(list(filter(None, refused))) < 0.98 * number
    for each, problem in zip(made, refused, strict=True):
        if validator.is_valid(each):
            assert not problem or re.search(beyond, problem), (each, problem)
        else:
            assert problem, each

"""Plans, policies and treatments that were changed at random: the reader against the schema."""

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from prism.errors import InputError
from prism.science import Plan
from prism.science._plan_file import plan_schema
from prism.social import Feed
from prism.worlds._treatment_tables import treatments_in, treatments_schema

jsonschema = pytest.importorskip("jsonschema")

TREATMENTS: dict[str, Any] = {
    "treatment": [
        {"kind": "set", "round": 2, "parameters": {"feed": "random"}},
        {"kind": "likes", "round": 1, "share": 0.5, "posts": ["post"], "where": {"age": [1, 2]}},
        {"kind": "post", "round": 1, "author": "a", "text": "b", "topics": ["c"]},
        {"kind": "model", "round": 1, "model": "m", "temperature": 0.5},
    ]
}
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


def read_tables(document: dict[str, Any]) -> None:
    """Read treatments as ``run.json`` has them, where texts may stand beside tables."""
    tables = document.get("treatment")
    texts = [each for each in tables if isinstance(each, str)] if isinstance(tables, list) else []
    treatments_in("a text" if texts else tables, Feed, Path("run.json"))


def refusal(read: Callable[[Any], object], document: dict[str, Any]) -> str:
    """Return why a document is refused; nothing if it is taken."""
    try:
        read(document)
    except InputError as error:
        return str(error)
    return ""


SCHEMAS = {
    "treatments": treatments_schema(Feed),
    "plan": plan_schema(),
}
Case = tuple[str, dict[str, Any], Callable[[Any], object], str]
CASES: list[Case] = [
    ("treatments", TREATMENTS, read_tables, "cannot be"),
    ("plan", PLAN, Plan, "twice|also|below its high|another arm|social"),
]


@pytest.mark.parametrize("number", [80, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "document", "read", "beyond"), CASES)
@pytest.mark.sampled(3)
def test_the_reader_refuses_what_the_schema_refuses(
    name: str, document: dict[str, Any], read: Callable[[Any], object], beyond: str, number: int
) -> None:
    """Of many changed documents; and it takes the others, but for what no schema can say."""
    validator = jsonschema.Draft202012Validator(SCHEMAS[name])
    dice = Random(name)
    made = [each for _ in range(number) if (each := changed(document, dice)).get("treatment") != []]
    refused = [refusal(read, each) for each in made]
    assert number / 4 < len(list(filter(None, refused))) < 0.98 * number
    for each, problem in zip(made, refused, strict=True):
        if validator.is_valid(each):
            assert not problem or re.search(beyond, problem), (each, problem)
        else:
            assert problem, each

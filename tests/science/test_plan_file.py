"""The published schema of plans, against the reader and against another validator."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.science import Plan
from prism.science._plan_file import SCHEMA_NAME, plan_schema

jsonschema = pytest.importorskip("jsonschema")


PLANS: list[tuple[bool, dict[str, Any]]] = [
    (True, {}),
    (True, {"world": "rumour", "agents": 3, "seeds": 2, "vary": {"friends": [1, 2]}}),
    (True, {"agents": "people.csv", "seeds": [-1, 2], "bounds": {"x": [0, 1.5]}}),
    (True, {"bounds": {"x": {"least": 1, "most": 10, "scale": "log"}}, "budget": {"deadline": 3}}),
    (True, {"reasoner": {"model": "m", "host": "h", "mode": "chat"}, "writer": {"max_length": 9}}),
    (True, {"arm": [{"name": "a", "treatments": ["warning@3"]}]}),
    (False, {"agents": 0}),
    (False, {"agents": True}),
    (False, {"agents": 1.5}),
    (False, {"seeds": []}),
    (False, {"seeds": ["1"]}),
    (False, {"vary": {"x": []}}),
    (False, {"vary": {"x": 3}}),
    (False, {"vary": {"x": [{"y": 1}]}}),
    (False, {"arm": [{"agents": 3}]}),
    (False, {"arm": []}),
    (False, {"reasoner": {"mode": "shout"}}),
    (False, {"reasoner": {"max_calls": 3}}),
    (False, {"budget": {"deadline": 0}}),
    (False, {"bounds": {"x": [1]}}),
    (False, {"bounds": {"x": {"least": 1}}}),
    (False, {"bounds": {"x": {"least": 1, "most": 2, "steps": 1}}}),
    (False, {"treatments": [{"kind": "likes", "round": 1}]}),
    (True, {"vary": {"agents": [10, "people.csv"], "preset": ["classic"], "ticks": [4, 8]}}),
    (False, {"vary": {"ticks": [4.5]}}),
    (False, {"vary": {"preset": []}}),
    (False, {"worlds": "rumour"}),
]


def test_the_published_schema_is_up_to_date() -> None:
    """The schema in the documentation is the one that plans are read by, and is a schema."""
    schema = json.loads((Path(__file__).parents[2] / "docs" / SCHEMA_NAME).read_text())
    assert schema == json.loads(json.dumps(plan_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_reader_takes_what_the_schema_takes() -> None:
    """A plan is refused by its reader if, and only if, a validator of JSON Schema refuses it."""
    validator = jsonschema.Draft202012Validator(plan_schema())
    for is_valid, plan in PLANS:
        assert validator.is_valid(plan) is is_valid, plan
        with nullcontext() if is_valid else pytest.raises(InputError):
            Plan(plan)

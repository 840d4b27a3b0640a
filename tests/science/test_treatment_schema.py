"""The published schema of files of treatments."""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from prism.files._source import Problems, Source
from prism.social import Feed
from prism.worlds import treatment
from prism.worlds._treatment_tables import read_treatments, treatments_schema

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = treatments_schema(Feed)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

TABLES: list[dict[str, Any]] = [
    {"kind": "set", "round": 2, "parameters": {"feed": "random"}, "name": "a"},
    {"kind": "own", "round": 2, "treatment": "warning"},
    {"kind": "likes", "round": 1, "share": 0.5, "posts": ["post"], "where": {"age": [1, 2]}},
    {"kind": "dislikes", "round": 1, "number": 3, "existing": True, "until": 9, "agents": ["a"]},
    {"kind": "post", "round": 1, "author": "a", "text": "b", "topics": ["c"]},
    {"kind": "remove", "round": 1, "share": 1, "experiment": "e"},
    {"kind": "feed", "round": 1, "feed": "popular"},
    {"kind": "model", "round": 1, "model": "m", "temperature": 0.5, "server": "openai"},
]
KINDS = {table["kind"] for table in TABLES}
KEYS = sorted({key for table in TABLES for key in table} | {"shair"})
VALUES = [0, 1, -1, 0.5, 2.5, True, "", " ", "post", "control", [], ["post"], [1], {}, {"a": 1}]


class Warned(Feed):
    """A feed with a treatment of its own."""

    @treatment
    def warning(self) -> None:
        """Warn."""


def accepted(table: dict[str, Any]) -> bool:
    """Return whether a table is read."""

    problems = Problems(Source.of([table]))
    read_treatments([table], Warned, problems, lambda place: (place,))

    return not problems.found


@st.composite
def tables(draw: Any) -> dict[str, Any]:
    """Make a table with up to two keys changed, added or left out."""
    table = copy.deepcopy(draw(st.sampled_from(TABLES)))
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=2)):
        if draw(st.booleans()):
            table[key] = draw(st.sampled_from(VALUES))
        else:
            table.pop(key, None)

    return table


@given(st.lists(tables(), min_size=8, max_size=8))
def test_the_schema_accepts_what_is_read(changed: list[dict[str, Any]]) -> None:
    """But for the order of two rounds, names of the world's own treatments, and kinds of others."""
    for table in changed:
        if isinstance(table.get("kind"), str) and table["kind"] not in KINDS:
            assert not accepted(table)
            continue
        table.pop("until", None)
        if table.get("treatment", "warning") != "warning" and isinstance(table["treatment"], str):
            continue
        assert VALIDATOR.is_valid({"treatment": [table]}) == accepted(table), table


def test_both_accept_every_kind() -> None:
    """The tables that the mutations begin with are accepted."""
    assert all(map(accepted, TABLES))
    VALIDATOR.validate({"treatment": TABLES})
    # another world may know it
    VALIDATOR.validate({"treatment": [{"kind": "flood", "round": 1, "height": 2.5}]})


def test_the_published_schema_is_current() -> None:
    """The file in the documentation is what the classes give, and a valid schema."""
    schema = json.loads((DOCS / "treatments.schema.json").read_text(encoding="utf-8"))
    assert schema == json.loads(json.dumps(SCHEMA))
    jsonschema.Draft202012Validator.check_schema(schema)

"""Data that a model wrote, held to the schema that it was asked for."""

import json
from typing import Any

import pytest

from prism.errors import FieldTypeError
from prism.statechart import Wording

SCHEMA = {
    "type": "object",
    "properties": {
        "mood": {"type": "string", "enum": ["calm", "cross"]},
        "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 120},
        "marks": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["mood"],
}


def read(reply: Any) -> Any:
    """Return what a call with the schema makes of a reply."""
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return Wording().call("ada", "k", "How?", schema=SCHEMA).read(text)


@pytest.mark.parametrize(
    "reply",
    [{"mood": "calm"}, {"mood": "cross", "age": None, "marks": [1, 2.5], "more": {"a": [True]}}],
)
def test_what_the_schema_allows_is_taken(reply: Any) -> None:
    """Data of the schema is given as it is, with keys that it does not name."""
    assert read(reply) == reply


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"mood": "happy"}, "'mood' of the reply must be one of 'calm', 'cross', got 'happy'"),
        ({"mood": 1}, "'mood' of the reply must be a string, got 1"),
        (
            {"mood": "calm", "age": "34"},
            "'age' of the reply must be an integer or a null, got '34'",
        ),
        ({"mood": "calm", "age": True}, "must be an integer or a null, got True"),
        ({"mood": "calm", "age": 1.5}, "must be an integer or a null, got 1.5"),
        ({"mood": "calm", "age": -1}, "must be at least 0, got -1"),
        ({"mood": "calm", "age": 121}, "must be at most 120, got 121"),
        ({"mood": "calm", "marks": [1, "2"]}, "item 2 of 'marks' of the reply must be a number"),
        ({"mood": "calm", "more": 2**63}, "is 9223372036854775808, which is too large"),
        ('{"mood": "calm", "marks": [NaN]}', "is nan, which is too large, or no number"),
        ('{"mood": "calm", "more": 1e999}', "is inf, which is too large"),
        (f'{{"mood": "calm", "more": {"[" * 60}{"]" * 60}}}', "in more than 50 lists and objects"),
    ],
)
def test_what_it_does_not_allow_cannot_be_used(reply: Any, problem: str) -> None:
    """The message names the place; what no checkpoint could hold is refused whatever it says."""
    with pytest.raises(ValueError, match="reply") as raised:
        read(reply)
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("text", "schema must be a JSON Schema, which is an object, got 'text'"),
        ({"properties": ["a"]}, "properties of schema must be an object of schemas, got ['a']"),
        ({"properties": {"a": {"type": 5}}}, "type of 'a' of schema must be the name of a type"),
        ({"items": {"enum": "ab"}}, "enum of items of schema must be a list of values, got 'ab'"),
    ],
)
def test_what_is_no_schema_is_refused_when_a_text_is_asked_for(schema: Any, problem: str) -> None:
    """It is the programmer's mistake, not the model's, and is told with the place."""
    with pytest.raises(FieldTypeError) as raised:
        Wording().call("ada", "k", "How?", schema=schema)
    assert problem in str(raised.value)

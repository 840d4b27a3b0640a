"""Texts of a bounded length: asked for, read, cleaned and cut."""

import json
from typing import Any
from unicodedata import category

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prism.errors import FieldValueError
from prism.reasoner import Wording
from tests.kit.charts import ANY

SHORT = Wording(20)


def read(reply: Any, wording: Wording = SHORT, schema: Any = None) -> Any:
    """Return what the call for a text, or for data of a schema, makes of a reply."""
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return wording.call("ada", "post", "Write.", schema=schema).read(text)


@pytest.mark.parametrize(
    "reply",
    [
        {"text": "Hello!"},
        '```json\n{"text": "Hello!"}\n```',
        'Here it is: {"text": "Hello!"}',
        "<think>a short one</think>Hello!",
        '<think>{"text": "Hi?"} or</think>Hello!',
        '"Hello!"',
        "Hello!",
        {"text": "\r\n\u202eHe\x07llo!\ufeff\x00 \r\n\r\n"},
    ],
)
def test_a_text_is_found_in_what_models_reply(reply: Any) -> None:
    """JSON as it was asked for, in a fence or in words, and a bare text say the same."""
    assert read(reply) == "Hello!"


@pytest.mark.parametrize(
    "reply",
    [
        {"text": ""},
        {"text": " \u200d\x07\u200b\n"},
        {"reply": 1},
        {"text": 1},
        '{"text": "Hel',
        "```<think>and so on",
        '<think>{"text": "Hi?"}</think>',
        [],
    ],
)
def test_a_reply_without_a_text_cannot_be_used(reply: Any) -> None:
    """An empty text, one that was cut off, and data without a text are failures."""
    with pytest.raises(ValueError, match=r"reply|text"):
        read(reply)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("twenty characters ok", "twenty characters…"),
        ("twenty characters ok!", "twenty characters…"),
        ("twenty characters o,", "twenty characters…"),
        ("twenty characters o.", "twenty characters o."),
        ("nineteen characters", "nineteen characters"),
        ("x" * 21, "x" * 19 + "…"),
        ("z" * 18 + "e\u0301e\u0301", "z" * 18 + "…"),
        ("one, two, three, four, five", "one, two, three…"),
    ],
)
def test_a_long_text_is_cut_behind_a_word_or_a_whole_sign(text: str, cut: str) -> None:
    """A cut text ends with an ellipsis, within its length; no letter loses its accent."""
    assert read({"text": text}) == cut


@given(st.text(ANY, min_size=1), st.integers(1, 40))
@settings(max_examples=2 * settings().max_examples)
@example("a\ud83d b", 2)
@example("\u0301" * 30, 5)
def test_any_text_ends_up_clean_and_short(text: str, most: int) -> None:
    """Whatever a model writes, a log can hold, a page show and a platform take."""
    try:
        found = read({"text": text}, Wording(most))
    except ValueError:
        return

    assert 1 <= len(found) <= most
    assert found == found.strip()
    assert not [sign for sign in found if category(sign) in ("Cc", "Cs") and sign != "\n"]
    found.encode()


def test_what_is_the_same_for_all_comes_first() -> None:
    """Length, language and form come before who writes, and that before what."""
    call = Wording(99, "German").call("ada", "k", "Say it.", persona="You are Ada.")
    places = [call.prompt.index(part) for part in ("German", "99", "You are Ada.", "Say it.")]
    assert places == sorted(places)
    assert call.schema is not None
    assert call.schema["properties"]["text"]["maxLength"] == 99


@pytest.mark.parametrize("keys", [{"max_length": 0}, {"max_length": True}])
def test_a_length_that_cannot_be_is_refused(keys: dict[str, Any]) -> None:
    """The message names what is wrong."""
    with pytest.raises(FieldValueError, match=next(iter(keys))):
        Wording(**keys)


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "mood": {"type": "string", "enum": ["calm", "cross"]},
        "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 120},
        "marks": {"type": "array", "items": {"type": "number"}},
        "name": {"type": "string", "pattern": "^(a+)+$"},
        "friend": {"$ref": "#"},
    },
    "required": ["mood"],
}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "txt"}, r"\$.type: 'txt' is not valid"),
        ({"items": {"pattern": "(?=a)b"}}, r"\$.items.pattern: .* look-ahead .* is not supported"),
        ({"pattern": "[a"}, "unclosed character class"),
        ({"patternProperties": {"a": {}}}, "use propertyNames"),
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused(schema: Any, problem: str) -> None:
    """The message says where the schema is wrong, before a model is asked."""
    with pytest.raises(FieldValueError, match=problem):
        SHORT.call("ada", "post", "Write.", schema=schema)


@pytest.mark.parametrize(
    "reply",
    [
        {"mood": "calm", "name": "a"},
        {"mood": "cross", "age": None, "marks": [1, 2.5], "more": {"a": [True]}},
    ],
)
def test_what_the_schema_allows_is_taken(reply: Any) -> None:
    """Data of the schema is given as it is, with keys that it does not name."""
    assert read(reply, schema=SCHEMA) == reply


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"mood": "happy"}, "$.mood of the reply: 'happy' is not one of"),
        ({"mood": "calm", "age": "34"}, "$.age of the reply: '34' is not of type 'integer'"),
        ({"mood": "calm", "age": True}, "True is not of type 'integer', 'null'"),
        ({"mood": "calm", "age": 121}, "121 is greater than the maximum of 120"),
        ({"mood": "calm", "marks": [1, "2"]}, "$.marks[1] of the reply: '2' is not of type"),
        # Python's own engine would search for hours
        ({"mood": "calm", "name": "a" * 60 + "!"}, "!' does not match '^(a+)+$'"),
        (
            {"mood": "calm", "friend": {"mood": "calm", "name": "a" * 60 + "!"}},
            "$.friend.name of the reply",
        ),
        ({"mood": "calm", "more": 2**64}, "too large, or none, for a log"),
        ('{"mood": "calm", "marks": [NaN]}', "too large, or none, for a log"),
        ('{"mood": "calm", "more": 1e999}', "too large, or none, for a log"),
    ],
)
def test_what_it_does_not_allow_cannot_be_used(reply: Any, problem: str) -> None:
    """The message names the place; what no checkpoint could hold is refused whatever it says."""
    with pytest.raises(ValueError, match="reply") as raised:
        read(reply, schema=SCHEMA)
    assert problem in str(raised.value)

"""The strict JSON reader."""

from typing import Any

import pytest

from prism.errors import InputError
from prism.files import parse_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, true, null, "\\u00e9"]}', {"a": [1, 2.5, True, None, "é"]}),
        ('{"a": {"a": {}}}', {"a": {"a": {}}}),
        (" 3 \n", 3),
    ],
)
def test_valid_json_is_parsed(text: str, value: Any) -> None:
    """Valid JSON gives the value that the standard library gives."""
    assert parse_json(text) == value


@pytest.mark.parametrize(
    ("text", "line", "field", "problem"),
    [
        ("", 1, None, r"is not valid JSON: Expecting value \(column 1\)"),
        ('{\n"a": 1,\n2}', 3, None, "is not valid JSON"),
        ('{"a": 1, "b": 2, "a": 3}', None, "a", "appears twice in one object"),
        ('[{"x": {"b": 1, "b": 1}}]', None, "b", "appears twice in one object"),
        ("[NaN]", None, None, "is not valid JSON: NaN is not a finite number"),
        ("[-1e999]", None, None, "is not valid JSON: -1e999 is not a finite number"),
        ("[" * 100_000, None, None, "is nested too deeply"),
        ("1" * 5_000, None, None, "contains a number with too many digits"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_invalid_json_is_refused(
    text: str, line: int | None, field: str | None, problem: str
) -> None:
    """Invalid JSON, a repeated key and a number that is not finite are refused with their place."""
    with pytest.raises(InputError, match=problem) as caught:
        parse_json(text)
    assert (caught.value.path, caught.value.line, caught.value.field) == (None, line, field)


@pytest.mark.parametrize("text", ["{", '{"a": 1, "a": 2}', "[NaN]", "[" * 100_000, "1" * 5_000])
def test_the_error_names_the_given_position(text: str) -> None:
    """File and line that the caller knows stand in every error."""
    with pytest.raises(InputError) as caught:
        parse_json(text, path="people.jsonl", line=7)
    assert (caught.value.path, caught.value.line) == ("people.jsonl", 7)

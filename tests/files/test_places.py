"""Where keys stand in JSON and in TOML."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.files._places import Where, depth_of, json_places, nearest, repeated_key
from prism.files._source import Source
from tests.kit.texts import ANY

JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(ANY),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(ANY), inner),
)


@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_every_value_is_found_where_it_stands(
    value: object, indent: int | None, ascii_only: bool
) -> None:
    """At the place of a key stands the key, and at that of a list's item the item."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    places = json_places(text)
    lines = text.split("\n")

    def look(item: object, where: Where) -> None:
        line, column = places[where]
        begins = "\n".join(lines[line - 1 :])[column - 1 :]
        is_key = bool(where) and isinstance(where[-1], str)
        found, _ = json.JSONDecoder().raw_decode(begins)
        assert found == (where[-1] if is_key else item)

        children = item.items() if isinstance(item, dict) else enumerate(item)  # type: ignore[arg-type,var-annotated]
        for key, inner in children:
            if isinstance(inner, dict | list):
                look(inner, (*where, key))

    if isinstance(value, dict | list):
        look(value, ())


@given(JSON)
def test_depth_is_that_of_the_values(value: object) -> None:
    """Brackets in texts do not count."""

    def depth(item: object) -> int:
        if not isinstance(item, dict | list):
            return 0
        inner = item.values() if isinstance(item, dict) else item
        return 1 + max(map(depth, inner), default=0)

    assert depth_of(json.dumps(value)) == depth(value)


def test_what_is_not_there_stands_where_its_nearest_holder_does() -> None:
    """A missing key is told at the object that lacks it."""
    assert nearest(json_places('{\n "a": {}}'), ("a", "b", "c")) == (2, 2)
    assert nearest(json_places("{}"), ("x",)) == (1, 1)


def test_a_repeated_key_is_told_where_it_stands_again() -> None:
    """The second of two equal keys of one object is found; equal keys of two objects are none."""
    assert repeated_key('{"a": {"b": 1},\n "b": 2,\n "b": 3}') == (("b",), (3, 2))
    assert repeated_key('{"a": {"b": 1}, "b": 2}') is None


TEXT = """name = "a"

[[arm]]
name = "one"
  [[arm.treatment]]
  kind = "likes"

  [[arm.treatment]]
  kind = "remove"
[[arm]]
name = "two"
where.age = 3
[vary]
rate = [
  0.1,
  0.2,
]
"""


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("name",), 1),
        (("arm", 0), 3),
        (("arm", 0, "treatment", 1, "kind"), 9),
        (("arm", 1, "name"), 11),
        (("arm", 1, "where", "age"), 12),
        (("arm", 1, "treatment"), 10),
        (("vary", "rate"), 14),
        (("vary", "missing"), 13),
    ],
)
def test_a_key_has_its_line(keys: tuple[str | int, ...], line: int) -> None:
    """Keys and tables are found, also in arrays of tables; what is missing has its table's line."""
    place = Source.parse(TEXT, "toml").place(keys)
    assert place is not None
    assert (place.line, place.column) == (line, 0)

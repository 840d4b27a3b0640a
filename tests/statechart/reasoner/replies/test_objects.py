"""JSON as models write it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.statechart.reasoner._replies._objects import (
    MOST_DEPTH,
    CutText,
    Members,
    objects_in,
)
from prism.statechart.reasoner._replies._reading import parse_strictly

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(max_size=8), VALUES, min_size=1, max_size=5),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_valid_json_is_read_as_json(
    value: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    """An object that is valid JSON is found in a text as the strict parser reads it."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    (found,) = objects_in(f"Here: {text} and so on")
    assert stripped(found.members) == stripped(parse_strictly(text))


def stripped(value: Any) -> Any:
    """Return a value with spaces taken off the keys of its objects."""
    if isinstance(value, Members):
        return Members((key.strip(), stripped(inner)) for key, inner in value)
    return [stripped(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("{'a': 'b'}", [("a", "b")]),
        ('{"a": "b",}', [("a", "b")]),
        ('{"a": "b"', [("a", "b")]),
        ('{"a": "b"\n\nand so on', [("a", "b")]),
        ('{"a": "two\nlines"}', [("a", "two\nlines")]),
        ("{a: b, c: 1}", [("a", "b"), ("c", 1)]),
        ("{“a”: “b”}", [("a", "b")]),
        ("{'a': 'it isn't', 'b': True}", [("a", "it isn't"), ("b", True)]),
        ('{"a": "he said "no" to it", "b": None}', [("a", 'he said "no" to it'), ("b", None)]),
        ('{"a": 1 "b": 2}', [("a", 1), ("b", 2)]),
        ('{"a": "x" "b": 2}', [("a", "x"), ("b", 2)]),
        ('{"a": {"b": [1, 2]}}', [("a", [("b", [1, 2])])]),
        ('{"a": 1, "a": 2}', [("a", 1), ("a", 2)]),
        ('{"a": "\\u00e9 \\n \\q"}', [("a", "\\u00e9 \\n \\q")]),
        ('{"a": "\\u00e9"}', [("a", "é")]),
        ('{"a": b // why\n, "c": d}', [("a", "b"), ("c", "d")]),
    ],
)
def test_broken_json_is_read_as_it_is_meant(text: str, members: list[Any]) -> None:
    """Quotes, commas, braces and line breaks may be wrong."""
    assert [found.members for found in objects_in(text)] == [members]


def test_objects_are_found_one_after_another() -> None:
    """A text may hold several objects; what is broken ends where it is, and the next is found."""
    found = list(objects_in('{broken {"a": 1} {} {{"b": 2}} x {"c": {"d": 3}}'))
    assert [one.members for one in found] == [[("a", 1)], [("b", 2)], [("c", [("d", 3)])]]


def test_a_text_that_is_cut_off_is_marked() -> None:
    """A text without its closing quote is known as such."""
    ((key, value),) = next(objects_in('{"a": "b')).members
    assert (key, value) == ("a", "b")
    assert isinstance(value, CutText)


def test_nesting_is_bounded() -> None:
    """Objects nested too deeply are broken off, and the text behind them is read on."""
    deep = '{"a": ' * (MOST_DEPTH * 20)
    *_, last = objects_in(deep + "x " + '{"b": 1}')
    assert last.members == [("b", 1)]

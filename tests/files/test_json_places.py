"""Where keys stand in a JSON text."""

import json

from hypothesis import given
from hypothesis import strategies as st

from prism.files._json_places import Places, Where, depth_of

JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_every_value_is_found_where_it_stands(
    value: object, indent: int | None, ascii_only: bool
) -> None:
    """At the place of a key stands the key, and at that of a list's item the item."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    places = Places(text)
    lines = text.split("\n")

    def look(item: object, where: Where) -> None:
        line, column = places.of(where)
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
    assert Places('{\n "a": {}}').of(("a", "b", "c")) == (2, 2)
    assert Places("{}").of(("x",)) == (1, 1)

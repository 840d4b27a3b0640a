"""Names that may occur only once."""

from hypothesis import given
from hypothesis import strategies as st

from prism.agents._loading.unique import told_apart


def test_repeated_names_get_their_row() -> None:
    """The first of several names stays as it is, and later ones get their row."""
    assert told_apart(["ann", "bo", "ann", "ann"]) == ["ann", "bo", "ann#2", "ann#3"]
    assert told_apart(["ann", "ann#2", "ann"]) == ["ann", "ann#2", "ann#2#2"]


@given(st.lists(st.sampled_from(["a", "b", "a#1", "a#2", "b#1", "a#2#2"]), max_size=12))
def test_names_told_apart_are_unique(names: list[str]) -> None:
    """Whatever the names are, each is unique afterwards, and still begins as it did."""
    told = told_apart(names)
    assert len(set(told)) == len(names)
    assert all(new.startswith(old) for new, old in zip(told, names, strict=True))
    assert all(told[row] == name for row, name in enumerate(names) if names.index(name) == row)

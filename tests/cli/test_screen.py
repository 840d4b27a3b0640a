"""What the screens of several commands share."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.cli._screen import evenly, plain
from prism.drawing import printable
from tests.kit.texts import ANY


@given(st.text(ANY))
def test_printable_texts_are_one_line(text: str) -> None:
    """Every character that a terminal would obey becomes a blank, and no other changes."""
    shown = printable(text)
    assert len(shown) == len(text)
    assert shown.isprintable()
    assert all(new in (old, " ") for old, new in zip(text, shown, strict=True))


def test_plain_texts_have_no_markup() -> None:
    """Markup and escapes of a terminal are printed as they are, or as blanks."""
    assert plain("[bold]x[/bold]\x1b[31m").plain == "[bold]x[/bold] [31m"


@given(count=st.integers(0, 200), most=st.integers(2, 20))
def test_places_are_picked_evenly(count: int, most: int) -> None:
    """The first and the last place are picked, all are distinct, and gaps differ by one at most."""
    places = evenly(count, most)
    assert len(places) == min(count, most)
    if count:
        assert (places[0], places[-1]) == (0, count - 1)
    gaps = {after - before for before, after in pairwise(places)}
    assert not gaps or (min(gaps) >= 1 and max(gaps) - min(gaps) <= 1)


@pytest.mark.parametrize(("count", "places"), [(0, []), (2, [0, 1]), (9, [0, 4, 8])])
def test_places_of_known_counts(count: int, places: list[int]) -> None:
    """Three places of nine are the first, the middle and the last."""
    assert evenly(count, 3) == places

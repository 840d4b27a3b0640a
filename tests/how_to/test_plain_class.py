"""A class with a state of its own keeps its ways."""

from types import ModuleType
from typing import Any

import pytest

from tests.how_to.conftest import Load

POSTS = ["night trains", "cats", "trains again", "dogs", "more trains"]


def reader_of(guide: ModuleType) -> Any:
    return guide.Reader("Ada", taste="trains")


def test_transitions_of_the_chart_are_as_before(load: Load) -> None:
    """The same posts lead to the same state, ticks and history as without a chart, and no more."""
    before, after = (reader_of(load("plain-class", side)) for side in ("-", "+"))
    load("plain-class", "-").run([before], POSTS)
    load("plain-class").run([after], POSTS)
    assert vars(after) == vars(before)
    assert after.state_history[0] == ("scrolling", "liking", "like")


def test_other_transitions_do_not_happen(load: Load) -> None:
    """A resting reader likes no post; without the chart it did."""
    states = []
    for side in ("-", "+"):
        guide = load("plain-class", side)
        reader = reader_of(guide)
        reader.state = "resting"
        guide.run([reader], ["trains"])
        states.append(reader.state)
    assert states == ["liking", "resting"]


def test_transition_to_may_raise(load: Load) -> None:
    """An exception of transition_to propagates to the caller."""
    guide = load("plain-class")

    class Strict(guide.Reader):  # type: ignore[misc,name-defined]
        def transition_to(self, new_state: Any, trigger: str, context: Any = None) -> None:
            raise PermissionError(f"not {new_state.value}, because of {context}")

    reader = Strict("Ada", taste="trains")
    with pytest.raises(PermissionError, match=r"not liking, because of \{'post': 'trains'\}"):
        reader.decide("trains")
    assert (reader.state, reader.state_history) == ("scrolling", [])

"""A class with a state of its own keeps its ways."""

import copy
import inspect
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

Load = Callable[..., ModuleType]

POSTS = ["night trains", "cats", "trains again", "dogs", "more trains"]


def reader_of(guide: ModuleType) -> Any:
    return guide.Reader("Ada", taste="trains")


def test_the_loop_is_unchanged(load: Load) -> None:
    """Loop, constructor and transition_to have the same text before and after."""
    before, after = load("plain-class", "-"), load("plain-class")
    for name in ("run", "Reader.__init__", "Reader.transition_to"):
        texts = [inspect.getsource(eval(name, vars(guide))) for guide in (before, after)]
        assert texts[0] == texts[1]


def test_transitions_of_the_chart_are_as_before(load: Load) -> None:
    """The same posts lead to the same state, ticks and history as without a chart."""
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


def test_nothing_is_added_to_the_agent(load: Load) -> None:
    """Firing adds no attribute to an agent."""
    guide = load("plain-class")
    reader = reader_of(guide)
    guide.run([reader], POSTS)
    assert set(vars(reader)) == {"name", "taste", "state", "state_history", "ticks_in_state"}


def test_identity_stays_equality(load: Load) -> None:
    """A class without its own equality compares and hashes by identity."""
    guide = load("plain-class")
    first, second = reader_of(guide), reader_of(guide)
    seen = {first: 1}
    guide.run([first, second], POSTS)
    assert first != second
    assert seen == {first: 1}
    assert repr(first) == object.__repr__(first)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
def test_copies_are_complete(clone: Callable[[Any], Any], load: Load) -> None:
    """A copy has all fields, shares nothing, and can be fired."""
    guide = load("plain-class")
    reader = reader_of(guide)
    guide.run([reader], POSTS[:3])
    twin = clone(reader)
    assert vars(twin) == vars(reader)
    guide.run([twin], ["dogs"])
    assert (twin.state, reader.state) == ("scrolling", "liking")
    assert len(twin.state_history) == len(reader.state_history) + 1


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

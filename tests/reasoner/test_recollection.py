"""What an agent remembers, within its tokens."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.errors import FieldValueError
from prism.programs.thinking import count_tokens
from prism.reasoner._recollection import recollection_of
from prism.statechart import Recollection
from tests.kit.texts import ANY

CUT = "- (earlier things are left out)"


@given(
    things=st.lists(st.text(ANY, max_size=200), max_size=12),
    last=st.integers(1, 10),
    tokens=st.integers(40, 300),
)
@settings(max_examples=2 * settings().max_examples)
def test_the_limit_is_kept_and_the_newest_survive(
    things: list[str], last: int, tokens: int
) -> None:
    """Whatever happened, no more tokens are told than allowed, and the last things of all."""
    told = Recollection(last, tokens).tell(things)
    if not things:
        assert told == ""
        return

    assert count_tokens(told) <= tokens
    lines = [line for line in told.split("\n")[1:] if line != CUT]
    newest = [f"- {' '.join(thing.split())}" for thing in things][-len(lines) :]
    assert 1 <= len(lines) <= last
    assert lines == newest or (len(lines) == 1 and lines[0].endswith(" [...]"))
    assert (CUT in told) is (len(lines) < len(things))


def test_all_that_fits_is_told() -> None:
    """Nothing is left out while there is room, and a heading says what it is."""
    told = Recollection(3, 200).tell(["one", "two\n\nlines", "three"])
    assert told == "What you remember, oldest first:\n- one\n- two lines\n- three"


def test_a_thing_that_is_too_long_is_cut() -> None:
    """The newest thing is told as far as it fits, where nothing else does."""
    told = Recollection(3, 60).tell(["old", "word " * 200])
    assert told.startswith(f"What you remember, oldest first:\n{CUT}\n- word word")
    assert told.endswith(" [...]")
    assert count_tokens(told) == 60


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((0,), "last must be a whole number, 1 or more, got 0"),
        ((5, 3), "tokens must be at least"),
        ((True,), "last must be"),
    ],
)
def test_a_memory_of_nothing_is_refused(arguments: tuple[int, ...], problem: str) -> None:
    """Limits that leave nothing to remember are errors."""
    with pytest.raises(FieldValueError, match=problem):
        Recollection(*arguments)


def test_tokens_are_counted_as_the_user_says() -> None:
    """A tokenizer of the user's own may count."""
    told = Recollection(9, 80, count=len).tell(["a" * 20, "b" * 20, "c" * 5])
    assert len(told) <= 80
    assert told.endswith("- ccccc")


def test_a_number_is_a_memory_of_as_many_things() -> None:
    """What is given as a number remembers that many things, within the usual tokens."""
    assert recollection_of(3) == Recollection(3)
    assert recollection_of(None) is None

"""Tags: what a text becomes as the name of a memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.cognition._memory._values import MOST_TAG, as_tag, numbered


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("alice", "alice"),
        ("character alice", "character_alice"),
        ("  a \t b\n", "a_b"),
        ("a__b", "a__b"),
        ("\x00a\x1bb", "a_b"),
        ("\u00a0x\u2028y", "x_y"),
        ("e\u0301te\u0301", "\u00e9t\u00e9"),
        ("\ud83d\ude00 \ud800", "\U0001f600_\ufffd"),
        ("", ""),
        (" \x00 ", ""),
    ],
)
def test_tags(text: str, tag: str) -> None:
    """Blanks and control characters become underscores, and nothing is left that no file holds."""
    assert as_tag(text) == tag


def test_long_tags() -> None:
    """A long tag is cut, and stays different from another that begins as it does."""
    one, other = as_tag("a" * 10_000), as_tag("a" * 9_999 + "b")
    assert len(one) == len(other) == MOST_TAG
    assert one != other


@given(st.text(st.characters(), max_size=300))
def test_a_tag_is_its_own_tag(text: str) -> None:
    """The tag of a tag is itself, short, and can be written as UTF-8."""
    tag = as_tag(text)
    assert as_tag(tag) == tag
    assert len(tag.encode()) <= 4 * MOST_TAG
    assert len(tag) <= MOST_TAG
    assert not any(letter.isspace() for letter in tag)


@given(st.text(st.characters(), max_size=300), st.integers(2, 10**6))
def test_numbered_tags(text: str, number: int) -> None:
    """A numbered tag is a tag."""
    tag = numbered(as_tag(text), number)
    assert as_tag(tag) == tag
    assert tag.endswith(f"_{number}")

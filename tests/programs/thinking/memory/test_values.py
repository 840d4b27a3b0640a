"""Tags: what a text becomes as the name of a memory."""

from hypothesis import given
from hypothesis import strategies as st

from prism.programs.thinking._memory import MOST_TAG, as_tag


def test_long_tags() -> None:
    """A long tag is cut, and stays different from another that begins as it does."""
    one, other = as_tag("a" * 10_000), as_tag("a" * 9_999 + "b")
    assert len(one) == len(other) == MOST_TAG
    assert one != other
    assert as_tag("a" * MOST_TAG) == "a" * MOST_TAG


@given(st.text(st.characters(), max_size=300))
def test_a_tag_is_its_own_tag(text: str) -> None:
    """The tag of a tag is itself, short, and can be written as UTF-8."""
    tag = as_tag(text)
    assert as_tag(tag) == tag
    assert len(tag.encode()) <= 4 * MOST_TAG
    assert len(tag) <= MOST_TAG
    assert not any(letter.isspace() for letter in tag)

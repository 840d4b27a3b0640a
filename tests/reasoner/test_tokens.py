"""The estimate of tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.programs.thinking import count_tokens
from tests.kit.texts import ANY


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("Read the next post.", 5), ("字" * 4, 3)]
)
def test_four_bytes_are_a_token(text: str, tokens: int) -> None:
    """The estimate is the text's bytes in UTF-8, divided by four."""
    assert count_tokens(text) == tokens


@given(st.text(ANY), st.text(ANY))
def test_a_longer_text_has_no_fewer_tokens(text: str, more: str) -> None:
    """Leaving something out never makes the estimate larger, whatever the text is made of."""
    assert count_tokens(text) <= count_tokens(text + more) <= count_tokens(text) + len(more) + 1

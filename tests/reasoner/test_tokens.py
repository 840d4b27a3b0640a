"""The estimate of tokens."""

import pytest

from prism.programs.thinking import count_tokens


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("Read the next post.", 5), ("字" * 4, 3)]
)
def test_four_bytes_are_a_token(text: str, tokens: int) -> None:
    """The estimate is the text's bytes in UTF-8, divided by four."""
    assert count_tokens(text) == tokens

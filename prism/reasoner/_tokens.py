"""Estimating the number of tokens in a text without a tokenizer."""

from __future__ import annotations

from collections.abc import Callable

TokenCounter = Callable[[str], int]
"""Returns the number of tokens of a text, or more; never fewer if a limit must hold."""

_BYTES_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """Estimate the number of tokens in a text: one for four bytes, as in English.

    Args:
        text: The text, in any language.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)

"""Lists as Python writes them."""

import ast
import tracemalloc
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.agents._loading.oasis import read_list

ITEMS = st.lists(st.integers() | st.text())
PIECES = st.lists(st.sampled_from("[],'\"\\n1-0 xu\n\t"), max_size=12)


def by_python(text: str) -> list[Any] | None:
    """Return what Python's own reader makes of a text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = ast.literal_eval(text)
        except (ValueError, TypeError, SyntaxError):
            return None

    return found if isinstance(found, list) else None


@given(ITEMS)
def test_what_python_writes_is_read(items: list[Any]) -> None:
    """A list of whole numbers and texts is read back from its representation."""
    assert read_list(repr(items)) == items


@given(PIECES)
def test_any_text_is_read_as_python_does(pieces: list[str]) -> None:
    """Whatever a cell says, it means what it means to Python."""
    text = f"[{''.join(pieces)}]"
    assert read_list(text) == by_python(text)


@pytest.mark.slow
@pytest.mark.parametrize("item", ["0", "'ab'", "1, -", "[", "'it\\'s'", "\\'"])
def test_a_long_cell_costs_little_memory(item: str) -> None:
    """A cell of 1.5 million characters, of a list or of anything else, takes less than 50 MB."""
    text = f"[{', '.join([item] * (1_500_000 // (len(item) + 2)))}]"
    tracemalloc.start()
    read_list(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 << 20

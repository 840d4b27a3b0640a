"""Diagrams as plain data."""

from typing import Any

import pytest

from prism.drawing import Arrow, Diagram
from prism.errors import DefinitionError


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"states": ()}, "at least one state"),
        ({"states": ("a", "a")}, "each only once"),
        ({"arrows": (Arrow("x", "a"), Arrow(None, "y"))}, "'x', 'y' not among the states"),
        ({"initial": "x"}, "'x' not among"),
        ({"decision_states": frozenset("x")}, "'x' not among"),
        ({"timeouts": {"x": 1}}, "'x' not among"),
    ],
)
def test_a_diagram_that_cannot_be_drawn_is_refused(parts: dict[str, Any], problem: str) -> None:
    """A diagram without states, or that names unknown states, is refused with their names."""
    with pytest.raises(DefinitionError, match=problem):
        Diagram(**{"states": ("a",), "arrows": (), **parts})

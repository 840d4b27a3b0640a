"""Networks that columns are set up with are those of the object engine."""

from collections.abc import Callable
from typing import Any

import pytest

from prism.columns._networks import ring_twin
from prism.errors import FieldValueError
from prism.worlds._networks import ring_pairs

pytestmark = pytest.mark.slow


def told(
    make: Callable[[int, int], Any], size: int, neighbours: int
) -> list[tuple[int, int]] | str:
    """Return the pairs of a ring, or why there is none."""
    try:
        return [(int(one), int(other)) for one, other in make(size, neighbours)]
    except FieldValueError as error:
        return str(error)


@pytest.mark.parametrize("size", range(2, 9))
def test_a_ring_has_the_same_connections_or_is_refused_alike(size: int) -> None:
    """For every number of neighbours the pairs are the same, or so is what is wrong with it."""
    for neighbours in range(size + 2):
        assert told(ring_twin, size, neighbours) == told(ring_pairs, size, neighbours)

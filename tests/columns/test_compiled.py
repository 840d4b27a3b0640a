"""Machine code does what its text says: the same folders as with objects."""

from pathlib import Path
from typing import Any

import pytest

from prism.examples.rumour import Rumour
from tests.columns.same import require_same
from tests.columns.worlds import (
    Deffuant,
    Epidemic,
    ListedEpidemic,
    MoodyPairs,
    MoodyVoters,
    Together,
    Voters,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "world", [Rumour, Epidemic, ListedEpidemic, Together, Voters, Deffuant, MoodyVoters, MoodyPairs]
)
def test_compiled_worlds_are_the_same(world: Any, tmp_path: Path) -> None:
    """Compiled by numba, each world writes the folder of the object engine."""
    for seed in range(3):
        require_same(world, 400, tmp_path / str(seed), seed=seed)

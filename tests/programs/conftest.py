"""Where programs and their runs are while they are tested."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.files import folder_in_memory


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return a folder in which durable writes wait for no disk."""
    with folder_in_memory() as folder:
        yield folder

"""Fixtures of the agents' tests: files to load."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Return a function that writes a file, bytes as they are and text as UTF-8, and gives its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of population files that the tests bring."""
    return Path(__file__).parents[1] / "data"

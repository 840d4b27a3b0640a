"""Files to read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from prism.errors import InputError


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Return a function that writes bytes, or text as UTF-8, to a file and returns its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of population files that the tests use."""
    return Path(__file__).parents[1] / "data"


def refusal(read: Callable[[Path], object], path: Path) -> InputError:
    """Return the error that reading a file ends in."""
    with pytest.raises(InputError) as caught:
        read(path)
    return caught.value


def place(error: InputError) -> tuple[str | None, int | None, str | None]:
    """Return the file, line and field that an error names."""
    return error.path, error.line, error.field

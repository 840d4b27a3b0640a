"""Files to read, and where to write them without waiting for a disk."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from prism.errors import InputError

_SHARED = Path("/dev/shm")
IN_MEMORY: Path | None = _SHARED if os.access(_SHARED, os.W_OK) else None
"""A folder of a file system in memory, for `tempfile`; None where there is none."""


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """Yield a folder that is kept in memory, where there is such a file system.

    What is made durable there costs nothing. On a busy disk each time takes longer than the rest of
    a test, of which none asks what is left after a loss of power.
    """
    with TemporaryDirectory(dir=IN_MEMORY, prefix="prism-test-") as folder:
        # one further down, as some tests write beside their folder
        inner = Path(folder, "test")
        inner.mkdir()
        yield inner


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


def position_of(error: InputError) -> tuple[str | None, int | None, str | None]:
    """Return the file, line and field that an error names."""
    return error.path, error.line, error.field

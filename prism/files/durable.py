"""Writing files that are complete or absent, even if the machine crashes during a write."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import IO

try:
    import fcntl
except ImportError:  # on Windows, nothing prevents two processes from writing one file
    fcntl = None  # type: ignore[assignment]

_UNFINISHED = ".part"
_MOST_NAME = 60
"""Characters of a file's name in its temporary name, since names have at most 255 bytes."""

_LOOKS = 5
_LOOK_SECONDS = 0.02


def cache_folder() -> Path:
    """Return the folder of what can be made again, which may be deleted at any time.

    Raises:
        OSError: If the user has no home.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "prism"
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, str(error)) from None


def write_durably(path: Path, content: bytes) -> None:
    """Write or replace a file in one step, and return once it is safely on the disk.

    Raises:
        OSError: If it cannot be written. An existing file of that name does not change.
    """
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces the one at a path once it is complete.

    The new file is written beside the old one, gets its permissions and is renamed at the end. If
    anything goes wrong inside the block, the old file stays as it was. A link stays a link: its
    target is replaced. Anything but a regular file, such as a pipe, a terminal or ``/dev/stdout``,
    is written to directly.

    Args:
        path: The file.

    Yields:
        The file, open for bytes.

    Raises:
        OSError: If it cannot be written. The error names the file.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))

    try:
        if is_stream(path):
            # append, since existing data must not be truncated
            with path.open("ab") as stream:
                yield stream
        else:
            with _written_beside(Path(os.path.realpath(path))) as file:
                yield file
    except OSError as error:
        if error.filename is None or Path(os.fsdecode(error.filename)).suffix == _UNFINISHED:
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise


def is_stream(path: Path) -> bool:
    """Return True for a pipe, a device, or a file that is already open, such as /dev/stdout."""
    parts = path.absolute().parts
    # these are files that a process has open, even if they are regular files
    if parts[1:2] in (("dev",), ("proc",)) and parts[1:3] != ("dev", "shm"):
        return path.exists()

    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def _written_beside(path: Path) -> Iterator[IO[bytes]]:
    beside = path.with_name(f".{path.name[:_MOST_NAME]}{_UNFINISHED}")
    try:
        with beside.open("wb") as file:
            _copy_mode(path, file)
            yield file
            file.flush()
            os.fsync(file.fileno())

        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise

    save_folder(path.parent)


def _copy_mode(path: Path, file: IO[bytes]) -> None:
    if path.exists() and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        os.chmod(file.name, stat.S_IMODE(path.stat().st_mode))  # noqa: PTH101


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents, safely on the disk.

    Raises:
        OSError: If it cannot be made, for instance because a file is in the way.
    """
    if path.is_dir():
        return

    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    save_folder(path.parent)


def save_folder(path: Path) -> None:
    """Flush a folder's entries to the disk: the names that were added, replaced or removed.

    Raises:
        OSError: If it cannot be written.
    """
    # Windows cannot open a folder, and saves its entries itself.
    if os.name == "nt":
        return

    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def lock(file: IO[bytes] | int) -> None:
    """Take the lock of a file, which ends with the process, however that ends.

    Whoever looks whether it is held holds it for an instant, so that this tries a few times.

    Raises:
        BlockingIOError: If another process holds it.
        OSError: If the file system has no locks.
    """
    if fcntl is None:
        return

    for _ in range(_LOOKS):
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return

        sleep(_LOOK_SECONDS)

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(file: IO[bytes] | int) -> bool:
    """Return whether a process holds the lock of a file; False where files have no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False

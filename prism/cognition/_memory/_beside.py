"""The files beside a memory: its lock and its backups."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from shutil import copyfileobj

from prism.errors import InputError
from prism.files._durable import lock, replacing

_LOCK = ".lock"
_BACKUP = ".bak"

_MOST_DIGITS = 20


class Lock:
    """Holds the lock of a memory from when it is made until it is released.

    It is a file beside the memory, ``memory.json.lock``, with the number of the process that holds
    it. What counts is the operating system's lock on that file, which ends with the process however
    that ends; a file that is left behind by a killed process locks nothing.

    Args:
        path: The memory.

    Raises:
        InputError: If another process holds it; names the process.
        OSError: If the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}{_LOCK}")
        self._descriptor: int | None = None
        # on Windows, nothing prevents two processes from changing one memory
        if os.name == "posix":
            self._descriptor = self._take(path)

    def release(self) -> None:
        """Let others take the lock."""
        if self._descriptor is None:
            return

        # removed while it is held, so that nobody can have taken it in between
        with suppress(OSError):
            self._path.unlink()
        os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> Lock:
        """Return the lock itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Let others take the lock of what could not be opened."""
        if kind is not None:
            self.release()

    def _take(self, memory: Path) -> int:
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                self._wait(descriptor, memory)
                if self._is_in_place(descriptor):
                    os.truncate(descriptor, 0)
                    os.write(descriptor, f"{os.getpid()}\n".encode())
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise

            # whoever held it has just removed it
            os.close(descriptor)

    def _wait(self, descriptor: int, memory: Path) -> None:
        # who holds it may be about to end, or has not yet written its number
        try:
            lock(descriptor)
            return
        except BlockingIOError:
            pass
        except OSError:  # a file system without locks
            return

        holder = os.pread(descriptor, _MOST_DIGITS, 0).decode("ascii", "replace").strip()
        if holder == str(os.getpid()):
            raise InputError("is already open in this process: close it first", path=memory)

        who = f"process {holder}" if holder.isdecimal() else "another process"
        raise InputError(f"is in use by {who}: wait for it, or stop it", path=memory)

    def _is_in_place(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self._path))  # noqa: PTH116
        except FileNotFoundError:
            return False


class Backups:
    """The last backups of one file: ``memory.json.1.bak`` is the newest.

    Args:
        path: The file.
        most: How many are kept; 0 for none.
    """

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self.most: int = most

    def paths(self) -> list[Path]:
        """Return those that exist, newest first."""
        numbered = re.compile(rf"{re.escape(self._path.name)}\.(\d+){_BACKUP}").fullmatch
        found = ((numbered(path.name), path) for path in self._path.parent.glob(f"*{_BACKUP}"))
        numbers = {path: int(name[1]) for name, path in found if name is not None}

        return sorted(numbers, key=numbers.__getitem__)

    def keep_link(self) -> None:
        """Make the file, as it is, the newest backup, without copying where links are possible.

        It must be replaced next, never written to.
        """
        if self.most == 0 or not self._path.exists():
            return

        link_or_copy(self._path, self._make_room())

    def _make_room(self) -> Path:
        """Count each backup on by one, drop the last, and return the path of the newest."""
        for number in range(self.most - 1, 0, -1):
            with suppress(FileNotFoundError):
                self._numbered(number).replace(self._numbered(number + 1))

        # where only one is kept, it is still there
        self._numbered(1).unlink(missing_ok=True)
        return self._numbered(1)

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}{_BACKUP}")


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where it cannot have one."""
    try:
        os.link(source, target)
    except OSError:  # a file system without links, or a file with too many
        copy_whole(source, target)


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file to a place where there is all of it or none."""
    with source.open("rb") as file, replacing(target) as copy:
        copyfileobj(file, copy)

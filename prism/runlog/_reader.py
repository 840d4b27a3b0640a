"""Reading the bytes of a log, decompressed if necessary, in blocks of whole lines."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from gzip import BadGzipFile, GzipFile
from io import BufferedReader
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from prism.errors import InputError
from prism.telemetry.events import RUN_ENDED, RUN_STARTED

LOG_NAME = "events.jsonl"
"""Name of the log in the folder of a run."""

LOG_NAMES = (LOG_NAME, f"{LOG_NAME}.gz")
"""Names that the log may have, plain or compressed."""

BLOCK_BYTES = 8 << 20
"""Size of a block, and of the longest line that is read; a longer one is reported as a fault."""

CUT_OFF = "is where the compressed data is cut off"
DAMAGED = "contains damaged compressed data; nothing after it can be read"
TOO_LONG = f"is longer than {BLOCK_BYTES:,} bytes and is left out"

GZIP_MAGIC = b"\x1f\x8b"
"""How a file begins that is compressed with gzip."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole lines of a log, or a fault in their place.

    Args:
        data: The lines, each with its line feed; only the last line of a log may lack one.
        first_line: Number of the first line, counted from 1.
        lines: Number of lines.
        fault: The problem, if the bytes could not be read. ``data`` is then empty.
    """

    data: bytes
    first_line: int
    lines: int
    fault: str | None = None


def locate_log(path: PathLike[str] | str) -> Path:
    """Return the path of the log of a run.

    Args:
        path: The log, plain or compressed with gzip, or the folder of the run; ``-`` is standard
            input.

    Raises:
        InputError: If there is no such file, or no log in the folder.
    """
    given = Path("/dev/stdin" if str(path) == "-" else path)
    try:
        if not given.is_dir():
            given.stat()
            return given

        found = log_in(given)
    except OSError as error:
        raise _unreadable(given, error) from None

    if not found.is_file():
        raise InputError(
            f"holds no {LOG_NAME}, plain or .gz: give the folder of a run, or its log",
            path=given,
        )

    return found


def log_in(folder: Path) -> Path:
    """Return the path of a folder's log, whether or not it exists."""
    named = (folder / name for name in LOG_NAMES)
    return next((path for path in named if path.is_file()), folder / LOG_NAME)


def read_blocks(path: Path, size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Yield a log in blocks of whole lines, with few of them in memory.

    A file that starts with the first bytes of gzip is decompressed, whatever its name. A log that
    is still being written is read up to its current end. A pipe is read to its end, once.

    Args:
        path: The log.
        size: Number of bytes to read at once.

    Yields:
        The lines; a block with a fault for a line longer than `size`, and for compressed data that
        is damaged or ends too early.

    Raises:
        InputError: If the file cannot be opened or read.
    """
    try:
        with path.open("rb") as file:
            yield from _cut(_Source(file), size)
    except OSError as error:
        raise _unreadable(path, error) from None


class LastRun(NamedTuple):
    """Where the last run of a file begins.

    Args:
        line: Its first line.
        earlier: The number of runs before it.
    """

    line: int
    earlier: int


def last_run(path: Path) -> LastRun:
    """Find the last of the runs of an application that follow each other in a log.

    A simulation inside such a run belongs to it. A log that begins with that of a simulation has no
    other, and need not be searched.

    Raises:
        InputError: If the log cannot be read.
    """
    # a pipe can be read only once
    if not path.is_file():
        return LastRun(1, 0)
    first = next(_starts_and_ends(path), (0, {"agents": 0}))
    if "agents" in first[1]:
        return LastRun(1, 0)

    begin, runs, is_bare = 1, 0, False
    for number, event in _starts_and_ends(path):
        if event["event"] == RUN_STARTED:
            if not (is_bare and "agents" in event):
                begin, runs = number, runs + 1
            is_bare = "agents" not in event
        else:
            is_bare = False
    return LastRun(begin, runs - 1) if runs > 1 else LastRun(1, 0)


def _starts_and_ends(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the events that begin and end runs, with the numbers of their lines."""
    for block in read_blocks(path):
        data, place = block.data, -1
        # not line by line, which takes many times as long
        while (place := data.find(b'"run.', place + 1)) >= 0:
            first, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
            with suppress(orjson.JSONDecodeError):
                event = orjson.loads(data[first : end if end >= 0 else None])
                if event.get("event") in (RUN_STARTED, RUN_ENDED):
                    yield block.first_line + data.count(b"\n", 0, first), event


class _Source:
    """The bytes of a file, decompressed if necessary.

    Attributes:
        fault: Why there are no more bytes, unless the file has ended normally.
    """

    def __init__(self, file: BufferedReader) -> None:
        self.fault: str | None = None
        self._file: Any = GzipFile(fileobj=file) if file.peek(2)[:2] == GZIP_MAGIC else file

    def readinto(self, buffer: memoryview) -> int:
        """Fill the start of a buffer; return the number of bytes, 0 at the end."""
        if self.fault is not None:
            return 0
        try:
            # one part at a time, since what precedes a fault is read
            data = self._file.read1(len(buffer))
        except EOFError:
            self.fault = CUT_OFF
            return 0
        except (BadGzipFile, zlib.error):
            self.fault = DAMAGED
            return 0
        buffer[: len(data)] = data
        return len(data)


def _cut(source: _Source, size: int) -> Iterator[Block]:
    """Cut bytes into blocks of whole lines."""
    buffer = bytearray(size)
    line = 1
    rest = 0  # number of bytes of an incomplete line at the start of the buffer
    skipping = False  # inside a line that is too long

    while (filled := _fill(source, memoryview(buffer), rest)) > rest:
        start = buffer.find(b"\n", 0, filled) + 1 if skipping else 0
        end = buffer.rfind(b"\n", 0, filled) + 1
        if skipping and start:
            line, skipping = line + 1, False

        if end > start and not skipping:
            data = bytes(memoryview(buffer)[start:end])
            lines = data.count(b"\n")
            yield Block(data, line, lines)
            line += lines

        rest = 0 if skipping else filled - max(start, end)
        buffer[:rest] = buffer[filled - rest : filled]
        if rest == size:
            yield Block(b"", line, 1, TOO_LONG)
            rest, skipping = 0, True

    if rest:
        yield Block(bytes(memoryview(buffer)[:rest]), line, 1)
    if source.fault is not None:
        yield Block(b"", line + bool(rest), 1, source.fault)


def _fill(source: _Source, buffer: memoryview, filled: int) -> int:
    """Read until the buffer is full or the source is exhausted; return the bytes in the buffer."""
    while filled < len(buffer) and (count := source.readinto(buffer[filled:])):
        filled += count

    return filled


def _unreadable(path: Path, error: OSError) -> InputError:
    """Return why a run cannot be read."""
    if isinstance(error, FileNotFoundError):
        return InputError("there is no such file or folder", path=path)
    return InputError(f"cannot be read: {error.strerror}", path=path)

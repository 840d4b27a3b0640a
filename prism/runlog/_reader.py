"""Reading a log's bytes: found, unpacked if it is compressed, and cut into blocks of whole lines."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Protocol

from prism.errors import InputError

LOG_NAME = "events.jsonl"
"""Name of the log in the folder of a run."""

BLOCK_BYTES = 8 << 20
"""How much is read at once. It is also the longest line that is read: a longer one is reported as a fault."""

CUT_OFF = "is where the compressed data is cut off"
DAMAGED = "holds damaged compressed data; nothing after it can be read"
TOO_LONG = f"is longer than {BLOCK_BYTES:,} bytes and is left out"

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
_PACKED_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole lines of a log.

    Args:
        data: The lines, each with its line feed; only the last line of a log may lack one.
        first_line: Number of the first of them, counted from 1.
        lines: How many there are.
        fault: What is wrong with the bytes at this place, if they could not be read; there is no
            data then.
    """

    data: bytes
    first_line: int
    lines: int
    fault: str | None = None


def locate_log(path: PathLike[str] | str) -> Path:
    """Find the log that is meant by a path.

    Args:
        path: A log, plain or compressed with gzip, or the folder of a run that holds one.

    Returns:
        The path of the file.

    Raises:
        InputError: If there is no such file, or no log in the folder.
    """
    given = Path(path)
    try:
        if not given.is_dir():
            given.stat()
            return given

        names = (LOG_NAME, f"{LOG_NAME}.gz")
        found = next((given / name for name in names if (given / name).is_file()), None)
    except OSError as error:
        raise _unreadable(given, error) from None

    if found is None:
        raise InputError(
            f"holds no {' or '.join(names)}: give the folder of a run, or its log", path=given
        )

    return found


def read_blocks(path: Path, size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Read a log from the first line to the last, with no more than a few blocks in memory.

    A file that starts with gzip's two bytes is unpacked, whatever its name. A log that is being
    written is read as far as it goes.

    Args:
        path: The log.
        size: Bytes to read at once.

    Yields:
        Its lines; and, in their place, a block with a fault for a line longer than `size`, and for
        compressed bytes that end too early or are damaged.

    Raises:
        InputError: If the file cannot be opened or read.
    """
    try:
        with path.open("rb", buffering=0) as file:
            packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            file.seek(0)
            yield from _cut(_Unpacked(file) if packed else file, size)
    except OSError as error:
        raise _unreadable(path, error) from None


class _Source(Protocol):
    """What bytes can be read from into a buffer, some at a time."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the beginning of a buffer; give the number of bytes, 0 at the end."""


class _Unpacked:
    """The bytes of a compressed file.

    Attributes:
        fault: Why there are no more of them, if not because they end.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.fault: str | None = None
        self._file = file
        self._packed = b""
        self._unpacker = zlib.decompressobj(_GZIP_WINDOW)

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the beginning of a buffer."""
        data = b""
        while not data and self.fault is None:
            self._packed = self._packed or self._file.read(_PACKED_BYTES)
            is_end = not self._packed
            data = self._unpack(len(buffer))
            if is_end and not data:
                self.fault = self.fault or (None if self._unpacker.eof else CUT_OFF)
                break

        buffer[: len(data)] = data

        return len(data)

    def _unpack(self, most: int) -> bytes:
        # another member follows, as where compressed logs were put together
        if self._unpacker.eof and self._packed:
            self._unpacker = zlib.decompressobj(_GZIP_WINDOW)

        try:
            data = self._unpacker.decompress(self._packed, most)
        except zlib.error:
            self.fault = DAMAGED
            return b""

        self._packed = self._unpacker.unconsumed_tail or self._unpacker.unused_data

        return data


def _cut(source: _Source, size: int) -> Iterator[Block]:
    """Cut bytes into whole lines."""
    buffer = bytearray(size)
    line, held, skipping = 1, 0, False
    while (filled := _fill(source, memoryview(buffer), held)) > held:
        start = buffer.find(b"\n", 0, filled) + 1 if skipping else 0
        end = buffer.rfind(b"\n", 0, filled) + 1
        if skipping and start:
            line, skipping = line + 1, False

        if end > start and not skipping:
            block = _block(buffer, start, end, line)
            yield block
            line += block.lines

        held = 0 if skipping else filled - max(start, end)
        buffer[:held] = buffer[filled - held : filled]
        if held == size:
            yield Block(b"", line, 1, TOO_LONG)
            held, skipping = 0, True

    if held:
        yield Block(bytes(memoryview(buffer)[:held]), line, 1)
    if fault := getattr(source, "fault", None):
        yield Block(b"", line + bool(held), 1, fault)


def _fill(source: _Source, buffer: memoryview, held: int) -> int:
    """Read until a buffer is full or there is no more."""
    while held < len(buffer) and (count := source.readinto(buffer[held:])):
        held += count

    return held


def _block(buffer: bytearray, start: int, end: int, line: int) -> Block:
    data = bytes(memoryview(buffer)[start:end])
    return Block(data, line, data.count(b"\n"))


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be read: {error.strerror}", path=path)

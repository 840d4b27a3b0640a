"""Checkpoints, from which a run is resumed however and whenever it was stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from time import monotonic
from typing import Any
from zlib import crc32

import orjson

from prism.files._durable import make_folder, save_folder, write_durably
from prism.runlog._reader import read_blocks

FOLDER_NAME = "checkpoints"
DEFAULT_SECONDS_BETWEEN = 10.0

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A run at the end of one of its rounds.

    Args:
        round: The round, counted from 1.
        config: The run's configuration, as in ``run.json``.
        snapshot: What the run's `snapshot` returned.
        log_bytes: Length of the log at that time.
        log_checksum: CRC-32 of those bytes.
        prompts: Where the record of prompts continues, if the run keeps one.
    """

    round: int
    config: Mapping[str, Any]
    snapshot: Mapping[str, Any]
    log_bytes: int
    log_checksum: int
    prompts: Mapping[str, Any] | None = None

    def to_bytes(self) -> bytes:
        """Return the contents of its file: a line with the SHA-256 of the next, which is JSON."""
        # names of files may not be UTF-8, which json escapes but orjson does not
        config = json.dumps(self.config)
        more = [] if self.prompts is None else [self.prompts]
        body = orjson.dumps(
            [self.round, config, self.snapshot, self.log_bytes, self.log_checksum, *more]
        )
        return sha256(body).hexdigest().encode() + b"\n" + body

    @classmethod
    def from_bytes(cls, content: bytes) -> Checkpoint | None:
        """Read what `to_bytes` returned; None if it is damaged in any way."""
        digest, _, body = content.partition(b"\n")
        if digest != sha256(body).hexdigest().encode():
            return None

        number, config, *others = orjson.loads(body)
        return cls(number, json.loads(config), *others)


class Checkpoints:
    """The checkpoints of one run. The last two are kept, in case one is damaged.

    Args:
        folder: The run's folder.

    Attributes:
        log: The run's log.
    """

    def __init__(self, folder: Path, log: Path) -> None:
        self._folder = folder / FOLDER_NAME
        self.log: Path = log
        self._newest: Path | None = None
        self._last = monotonic()
        self._log_bytes = self._log_checksum = 0

    def seconds_since_last(self) -> float:
        """Return the seconds since the last checkpoint, or since this began."""
        return monotonic() - self._last

    def write(
        self,
        number: int,
        config: Mapping[str, Any],
        snapshot: Mapping[str, Any],
        log_bytes: int,
        prompts: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a checkpoint durably, keep the one before it, and remove all others.

        Args:
            number: The round that has ended.
            config: The run's configuration.
            snapshot: The current snapshot of the run.
            log_bytes: Length of its log, which must already be on the disk.
            prompts: Where the record of prompts continues, if there is one.

        Raises:
            OSError: If it cannot be written. Earlier checkpoints stay.
        """
        checksum = self._checksum(log_bytes, since=self._log_bytes, so_far=self._log_checksum)
        path = self._folder / f"round_{number:08}"
        make_folder(self._folder)
        made = Checkpoint(number, config, snapshot, log_bytes, checksum, prompts)
        write_durably(path, made.to_bytes())
        for other in self._paths():
            if other not in (path, self._newest):
                other.unlink()

        self._newest, self._last = path, monotonic()
        self._log_bytes, self._log_checksum = log_bytes, checksum

    def newest_sound(self) -> tuple[Checkpoint | None, list[str]]:
        """Return the newest checkpoint that is intact and fits the log.

        Returns:
            The checkpoint, or None if there is none to resume from, and the faults of skipped ones.
        """
        faults: list[str] = []
        for path in reversed(self._paths()):
            found = self._read(path)
            if isinstance(found, Checkpoint):
                self._newest = path
                self._log_bytes, self._log_checksum = found.log_bytes, found.log_checksum
                return found, faults

            faults.append(f"{path}: {found}, so it is ignored")

        return None, faults

    def events_until(self, checkpoint: Checkpoint) -> Iterator[dict[str, Any]]:
        """Read the log until a checkpoint that fits it."""
        for block in read_blocks(self.log, end=checkpoint.log_bytes):
            yield from map(orjson.loads, block.data.splitlines())

    @property
    def tally(self) -> Path:
        """The file with the run's spending, which belongs to the checkpoints."""
        return self._folder / "spent"

    def discard(self) -> None:
        """Remove all checkpoints of a run that is complete."""
        if self._folder.exists():
            with suppress(FileNotFoundError):  # another process may also be removing them
                rmtree(self._folder)

            save_folder(self._folder.parent)

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("round_*"))

    def _read(self, path: Path) -> Checkpoint | str:
        """Return a checkpoint, or what is wrong with it."""
        try:
            checkpoint = Checkpoint.from_bytes(path.read_bytes())
        except OSError as error:
            return f"cannot be read ({error.strerror})"

        if checkpoint is None:
            return "is damaged"
        if not self._fits(checkpoint):
            return f"does not fit {self.log.name}, which is damaged or belongs to another run"

        return checkpoint

    def _fits(self, checkpoint: Checkpoint) -> bool:
        is_there = self.log.stat().st_size >= checkpoint.log_bytes
        return is_there and self._checksum(checkpoint.log_bytes) == checkpoint.log_checksum

    def _checksum(self, until: int, *, since: int = 0, so_far: int = 0) -> int:
        left = until - since
        with self.log.open("rb") as file:
            file.seek(since)
            while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
                so_far = crc32(block, so_far)
                left -= len(block)

        return so_far

"""Writing a run's log: one JSON object a line, through structlog and orjson."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path
from reprlib import repr as brief
from types import TracebackType
from typing import Any, BinaryIO, Self

import orjson
import structlog

from prism.runlog.clock import SimulatedClock

try:
    import fcntl
except ImportError:  # Windows, where nothing keeps two processes from one log
    fcntl = None  # type: ignore[assignment]

_BUFFER_BYTES = 1 << 20


class RunLog:
    """The append-only log of one run.

    Every line begins with ``event``, ``timestamp``, ``round`` and ``tick``, all read from the simulated
    clock, so two runs of the same simulation write the same bytes.

    Args:
        path: File to write; it must not exist yet.
        clock: The run's clock.
        keep: Go on with a log that is there, after so many of its bytes; the rest is cut off.

    Raises:
        FileExistsError: If there is such a file already: a log is never overwritten.
        BlockingIOError: If another process is writing the log that should be gone on with.

    Attributes:
        logger: A structlog logger that writes to this file, whatever else structlog is configured to do.
    """

    def __init__(self, path: Path, clock: SimulatedClock, *, keep: int | None = None) -> None:
        self.path = path
        self._clock = clock
        self._file = path.open("xb" if keep is None else "r+b", buffering=_BUFFER_BYTES)
        try:
            _lock(self._file)
            if keep is not None:
                self._file.truncate(keep)
                self._file.seek(keep)
        except BaseException:
            self._file.close()
            raise
        self.logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            _Sink(self._file.write),
            processors=[self._render],
            wrapper_class=structlog.make_filtering_bound_logger(0),
            context_class=dict,
        ).bind()

    def flush(self) -> None:
        """Hand everything written so far to the operating system, for those who read along."""
        self._file.flush()

    def save(self) -> int:
        """Hand everything written so far to the disk itself, so that it outlives a crash of the machine.

        Returns:
            The length of the log, in bytes.
        """
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        """Write what is left and close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        """Give the log itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the log."""
        self.close()

    def _render(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> bytes:
        if "exc_info" in event:
            event = structlog.processors.format_exc_info(logger, method, event)
        line = {"event": event.pop("event"), **self._clock.moment.stamp, **event}
        try:
            return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError:
            return _dump({key: _writable(value) for key, value in line.items()})


def _dump(line: dict[str, Any]) -> bytes:
    return orjson.dumps(line, default=str, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS)


def _writable(value: Any) -> Any:
    """Give a value, or a description of one that JSON has no room for: too large, nested without end, no UTF-8."""
    try:
        _dump({"": value})
    except TypeError:
        return brief(value).encode("utf-8", "backslashreplace").decode()
    return value


def _lock(file: BinaryIO) -> None:
    """Keep other processes from going on with this log; the lock ends with the process, however it ends."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class _Sink:
    """What structlog hands finished lines to; every level goes to the same file."""

    def __init__(self, write: Any) -> None:
        self.debug = self.info = self.warning = self.error = self.critical = write

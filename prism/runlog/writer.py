"""Writing a run as a log: one line of JSON per event, stamped by the simulated clock."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from os import PathLike
from pathlib import Path
from reprlib import repr as brief
from traceback import format_exception
from typing import Any, BinaryIO, Self

import orjson

from prism.errors import InputError, ReplayError
from prism.files.durable import lock
from prism.runlog.reader import read_line
from prism.telemetry.instruments import Level
from prism.telemetry.loggers import Recorder, warn_standard

DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS_PER_TICK = 60

_CLOCK = ("round", "tick")
_FIRST = frozenset(("event", "timestamp", *_CLOCK))


class Moment:
    """One instant of a simulation.

    Args:
        time: The simulated time, in UTC.
        round: Round, counted from 1; 0 before the first.
        tick: Tick of the round, counted from 1; 0 before the first.

    Attributes:
        seconds: The time in seconds since the epoch.
        stamp: Time, round and tick in the form of a log's lines.
    """

    __slots__ = ("round", "seconds", "stamp", "tick", "time")

    def __init__(self, time: datetime, round: int = 0, tick: int = 0) -> None:  # noqa: A002 - as in a log
        self.time: datetime = time
        self.round: int = round
        self.tick: int = tick
        # the forms in which it is written, once for all uses
        self.seconds: float = time.timestamp()
        text = time.isoformat().replace("+00:00", "Z")
        self.stamp: dict[str, Any] = {"timestamp": text, "round": round, "tick": tick}


class SimulatedClock:
    """A clock that only the simulation advances, by a fixed time per tick, from a fixed start.

    Calling it returns seconds since the epoch, so it can be a chart's ``clock``. Two runs of the
    same simulation get the same times. A `RunLog` with this clock writes its time; other loggers
    get round and tick from structlog's context (``structlog.contextvars``).

    Args:
        start: Time at which the first round begins; in UTC if it has no time zone.
        seconds_per_tick: Seconds from one tick to the next; 60 by default. In a run of the feed,
            the parameter ``ticks_per_hour`` determines it.

    Attributes:
        moment: The current instant.
        seconds_per_tick: Seconds from one tick to the next.
    """

    def __init__(
        self, start: datetime = DEFAULT_START, seconds_per_tick: float = SECONDS_PER_TICK
    ) -> None:
        aware = start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC)
        self.moment: Moment = Moment(aware)
        self.seconds_per_tick: float = float(seconds_per_tick)
        self._is_bound = False

    @property
    def round(self) -> int:
        """Current round, counted from 1; 0 before the first."""
        return self.moment.round

    @property
    def tick(self) -> int:
        """Current tick of the round, counted from 1; 0 before the first."""
        return self.moment.tick

    def begin_round(self, number: int) -> None:
        """Begin a round. The time does not change before its first tick."""
        self.show(Moment(self.moment.time, number))

    def advance(self) -> None:
        """Advance by one tick."""
        now = self.moment
        later = now.time + timedelta(seconds=self.seconds_per_tick)
        self.show(Moment(later, now.round, now.tick + 1))

    @contextmanager
    def at(self, moment: Moment) -> Iterator[None]:
        """Show another instant inside the block, to log events that belong to it."""
        now = self.moment
        self.show(moment)
        try:
            yield
        finally:
            self.show(now)

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Bind round and tick in structlog's context, and restore it afterwards."""
        context = _structlog_context()
        before = {} if context is None else context.get_contextvars()
        self._is_bound = True
        self.show(self.moment)

        try:
            yield
        finally:
            self._is_bound = False
            context = _structlog_context()
            if context is not None:
                context.unbind_contextvars(*_CLOCK)
                context.bind_contextvars(**{key: before[key] for key in _CLOCK if key in before})

    def show(self, moment: Moment) -> None:
        """Go to another instant."""
        self.moment = moment
        context = _structlog_context() if self._is_bound else None
        if context is not None:
            context.bind_contextvars(round=moment.round, tick=moment.tick)

    def __call__(self) -> float:
        """Return the current time in seconds since the epoch."""
        return self.moment.seconds


def simulated(clock: SimulatedClock | None) -> SimulatedClock | None:
    """Return the clock of a run or of a log, if there is one.

    Raises:
        InputError: If it is of another kind, such as a chart's, which only tells the time.
    """
    if clock is not None and not isinstance(clock, SimulatedClock):
        raise InputError(f"must be a SimulatedClock, got {clock!r}", field="clock")
    return clock


def _structlog_context() -> Any:
    """Return ``structlog.contextvars``; None if structlog, which would read it, is not imported.

    Importing it takes as long as a small run.
    """
    return sys.modules.get("structlog.contextvars")


_BUFFER_BYTES = 1 << 16
_AS_LINE = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z


class RunLog:
    """The append-only log of one run.

    Every line begins with ``event``, ``timestamp``, ``round`` and ``tick``. They come from the
    simulated clock, so two runs of the same simulation write the same bytes. Without a simulated
    clock, the time is real, and values bound with ``structlog.contextvars.bind_contextvars``, such
    as round and tick, are also written. Each line is then passed to the operating system at once,
    whole, so that several threads and forked processes may write; the file is opened again if it
    is renamed, as by log rotation. A line that cannot be written, as on a full disk, goes to the
    standard library's logging; with a simulated clock, it ends the run.

    Args:
        path: File to write; it must not exist yet, unless lines are appended.
        clock: The simulated clock; None for real time.
        append: Whether to append to the whole lines of an existing file.
        compared: A log that must have the same lines, as far as it goes. If it is this file, its
            lines are not written again.
        begin: Where in that log the next line is; those before are not written.
        at_once: Whether each line is passed to the operating system at once, as without a clock.

    Raises:
        FileExistsError: If the file exists, since a log is never overwritten.
        BlockingIOError: If another process is writing the log to which lines are to be appended.

    Attributes:
        logger: A logger that writes to this file, however structlog is configured.
    """

    def __init__(
        self,
        path: PathLike[str] | str,
        clock: SimulatedClock | None = None,
        *,
        append: bool = False,
        compared: Path | None = None,
        begin: int = 0,
        at_once: bool = False,
    ) -> None:
        self.path: Path = Path(path)
        self._clock = simulated(clock) or _RealTime()
        if not append:
            self.path.touch(exist_ok=False)
        self._file: Any = open_lines(self.path)
        if compared is not None:
            self._file = _ComparedFile(self._file, compared, self.path, begin)
        self._write = self._write_at_once if at_once else self._file.write
        if clock is None:
            self._write = self._write_in_place
        self.logger: LineLogger = LineLogger(self._write, self._clock, {})

    def flush(self) -> None:
        """Pass everything written so far to the operating system, so that others can read it."""
        self._file.flush()

    def save(self) -> None:
        """Write everything so far to the disk, so that it survives a crash of the machine."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def cut_before(self, event: str) -> None:
        """Cut the log off before the last line of an event; nothing is left if there is none."""
        self._file.flush()
        begin = self.path.read_bytes().rfind(b'{"event":"%b"' % event.encode())
        os.truncate(self.path, max(begin, 0))

    def close(self) -> None:
        """Write the rest, and close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        """Return the log itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the log."""
        self.close()

    def _write_at_once(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()

    def _write_in_place(self, line: bytes) -> None:
        """Write a line to the file of that name, whatever has become of the one that was opened.

        An application goes on if that fails: it may be in the middle of a transition.
        """
        try:
            if not self._is_in_place():
                before, self._file = self._file, open_lines(self.path)
                before.close()
            self._write_at_once(line)
        except OSError as error:
            warn_standard(
                f"{self.path} cannot be written to: {error.strerror}: {line.decode().rstrip()}"
            )

    def _is_in_place(self) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))
        return False


def open_lines(path: Path, mode: int = 0o666) -> BinaryIO:
    """Open a file of lines for appending, without a last line that is cut off.

    Args:
        path: The file; it is created if it is missing.
        mode: The permissions of a new file.

    Raises:
        BlockingIOError: If another process is writing it.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    file: BinaryIO = os.fdopen(os.open(path, flags, mode), "ab", _BUFFER_BYTES)
    try:
        lock(file)
        lines = path.read_bytes()
        end = lines.rfind(b"\n") + 1
        # of a whole line, only the end may be missing
        if read_line(lines[end:]) is None:
            file.truncate(end)
        else:
            os.write(file.fileno(), b"\n")
    except BaseException:
        file.close()
        raise
    return file


class LineLogger(Recorder):
    """Writes each event as a line, whatever structlog is configured to do.

    Args:
        write: Takes the lines.
        clock: The clock of the log.
        bound: Keys of every line.
    """

    def __init__(self, write: Callable[[bytes], Any], clock: Any, bound: Mapping[str, Any]) -> None:
        self._write, self._clock, self._bound = write, clock, bound

    def bind(self, **keys: Any) -> LineLogger:
        """Return a logger whose lines have further keys."""
        return LineLogger(self._write, self._clock, {**self._bound, **keys})

    def record(self, _level: Level, event: str, keys: Mapping[str, Any]) -> None:
        """Write an event; an exception, ``exc_info``, with its traceback."""
        keys = with_traceback(keys) if "exc_info" in keys else keys
        moment = self._clock.moment
        # with the beginning made anew for each line, it took a third longer
        if keys and type(moment) is Moment and not self._bound and _FIRST.isdisjoint(keys):
            self._write(_begin_of(event, moment) + line_of(keys)[1:])
        else:
            self._write(line_of({"event": event, **moment.stamp, **self._bound, **keys}))


@lru_cache(maxsize=64)
def _begin_of(event: str, moment: Moment) -> bytes:
    """Return the beginning that the lines of an event share, if they are of one moment."""
    return line_of({"event": event, **moment.stamp})[:-2] + b","


def with_traceback(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of an event with the traceback of its exception as text."""
    rest = {**keys}
    error = rest.pop("exc_info")
    error = sys.exc_info()[1] if error is True else error[1] if isinstance(error, tuple) else error
    if isinstance(error, BaseException):
        rest["exception"] = "".join(format_exception(error)).removesuffix("\n")
    return rest


def line_of(event: Mapping[str, Any]) -> bytes:
    """Return the line of an event."""
    try:
        return orjson.dumps(event, option=_AS_LINE)
    except TypeError:
        return _dump({_writable(key): _writable(value) for key, value in event.items()})


def _dump(line: dict[str, Any]) -> bytes:
    return orjson.dumps(line, default=str, option=_AS_LINE | orjson.OPT_NON_STR_KEYS)


def _writable(value: Any) -> Any:
    """Return a value, or a description of one that JSON cannot represent, such as a cycle."""
    try:
        _dump({"": value})
    except TypeError:
        return brief(value).encode("utf-8", "backslashreplace").decode()
    return value


class _ComparedFile:
    """A log that is written again, whose lines are compared with those of another.

    Args:
        file: The log.
        other: The other log, which may be the same file.
        path: The path of the log.
        begin: Where in the other log to begin.
    """

    def __init__(self, file: BinaryIO, other: Path, path: Path, begin: int) -> None:
        self._file, self._other = file, other
        self._is_same = other.samefile(path)
        self._lines = other.open("rb", _BUFFER_BYTES)
        self._number = self._lines.read(begin).count(b"\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, line: bytes) -> int:
        """Write a line, unless it is there.

        Raises:
            ReplayError: If the other log has another line; the message names both.
        """
        self._number += 1
        there = b"" if self._lines.closed else self._lines.read(len(line))
        if there == line:
            return len(line) if self._is_same else self._file.write(line)
        if there:
            raise self._difference(there + self._lines.readline(), line)
        self._lines.close()
        return self._file.write(line)

    def close(self) -> None:
        """Close both."""
        self._lines.close()
        self._file.close()

    def _difference(self, there: bytes, came: bytes) -> ReplayError:
        event = orjson.loads(came)
        names = ("round", "tick", "agent_id")
        where = ", ".join(f"{name} {event[name]}" for name in names if name in event)
        was, now = (line.split(b"\n")[0].decode("utf-8", "replace") for line in (there, came))
        # from a little before where they differ
        same = next((n for n, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), 0)
        begin = max(same - _LONGEST // 2, 0)
        was, now = (f"{'...' * (begin > 0)}{text[begin:][:_LONGEST]}" for text in (was, now))
        return ReplayError(
            f"{self._other}: line {self._number} differs ({where}): the run does not do the same "
            f"as before\n  the log has  {was}\n  the run wrote  {now}"
        )


_LONGEST = 400


class _RealTime:
    """Real time instead of a simulated clock; the application may bind round and tick."""

    def __init__(self) -> None:
        # for every line, the statement would take as long as the time itself
        from structlog.contextvars import get_contextvars

        self._bound = get_contextvars

    @property
    def moment(self) -> Self:
        """This instant."""
        return self

    @property
    def stamp(self) -> dict[str, Any]:
        """The first keys of a line, as in `Moment.stamp`."""
        stamp, bound = {"timestamp": datetime.now(UTC)}, self._bound()
        at = {name: bound[name] for name in _CLOCK if name in bound}
        return {**stamp, **at, **bound, **stamp}

"""A log of all events of prism and of an application that runs its own loop."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import warnings
from collections.abc import MutableMapping
from os import PathLike
from pathlib import Path
from typing import Any

import structlog

from prism.errors import InputError
from prism.runlog.reader import read_line
from prism.runlog.writer import RunLog, line_of, with_traceback
from prism.telemetry.events import (
    AGENT_JOINED,
    EVENT_REFUSED,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
)
from prism.telemetry.instruments import join_hooks
from prism.telemetry.loggers import as_record, configuration, describe, is_heard, report

Event = MutableMapping[str, Any]


def configure(path: PathLike[str] | str, *, details: bool = False) -> RunLog:
    """Write every event of prism, and the application's own structlog events, to a file.

    The first event is ``run.started``. The last is ``run.ended``, written when the log is closed or
    the process ends. An agent joins, as ``agent.joined``, when a chart adopts it or it is fired on
    for the first time.
    If structlog is already configured, its configuration still applies and gets every event. If
    not, events also go to the standard library's logging, which by default shows only warnings and
    errors. Several threads may write at once. Whatever structlog's ``capture_logs`` captures
    meanwhile is not in the file.

    Args:
        path: File to write. The events are appended to those of earlier runs; the tables of a log
            are those of its last run, or of all with ``read_log(path, all_runs=True)``.
        details: Whether to write what happens at debug level, too: the events that made no
            transition, each with the guards that refused it.

    Returns:
        The open log; call ``close()``, or use it in a ``with`` statement. Closing it restores the
        configuration of structlog.

    Raises:
        InputError: If the file is something else than a log, another process is writing to it, it
            cannot be created, another such log is open, or structlog is configured to drop events
            before they reach the log. No file is left behind.
    """
    return _ConfiguredLog(Path(path), details=details)


class _ConfiguredLog(RunLog):
    """A run log that is structlog's first processor, before any that drops events."""

    def __init__(self, path: Path, *, details: bool) -> None:
        self._details = details
        self._processors = _processors_to_join(path)
        self._joined: set[tuple[str, str]] = set()
        self._has_begun = False
        self._process = os.getpid()
        self._error: BaseException | None = None
        is_new = not path.exists()
        try:
            if not is_new:
                _require_log(path)
            super().__init__(path, append=not is_new)
        except BlockingIOError:
            raise InputError("is being written by another process", path=path) from None
        except OSError as error:
            raise InputError(f"cannot be written to: {error.strerror}", path=path) from None

        self._configured_here = configuration() is None
        if self._configured_here:
            structlog.configure(processors=self._processors, logger_factory=logging.getLogger)
        self._processors.insert(0, self._copy)
        join_hooks.append(self._join)
        try:
            self._begin()
        except BaseException:
            self._detach()
            super().close()
            if is_new:
                path.unlink()
            raise
        atexit.register(self.close)

    def close(self) -> None:
        """Write ``run.ended`` and restore structlog; a second call does nothing."""
        if self._file.closed:
            return
        atexit.unregister(self.close)
        try:
            if os.getpid() == self._process:  # a forked process does not end the run
                self._end()
        finally:
            self._detach()
            super().close()

    def __exit__(self, *error: object) -> None:
        """Close the log; an exception that ends the block is told by its last event."""
        _, raised, _ = error
        self._error = raised if isinstance(raised, BaseException) else None
        self.close()

    def _begin(self) -> None:
        report(None, "info", RUN_STARTED, {"schema": SCHEMA_VERSION})
        if not self._has_begun:  # structlog dropped the event before it arrived here
            raise InputError(_DROPS.format("transitions", "info", "INFO"), path=self.path)
        if self._details and not is_heard(None, logging.DEBUG):
            raise InputError(_DROPS.format("details", "debug", "DEBUG"), path=self.path)

    def _join(self, chart: str, agent_id: str, state: str) -> None:
        """Log an agent that is met for the first time."""
        if (chart, agent_id) not in self._joined:
            self._joined.add((chart, agent_id))
            about = {"agent_id": agent_id, "chart": chart, "state": state}
            report(None, "info", AGENT_JOINED, about)

    def _end(self) -> None:
        if not (self._is_in_use() and self._copy in self._processors):
            warnings.warn(f"{self.path}: {_DISPLACED}", RuntimeWarning, stacklevel=3)
            return
        # in an interactive session, the last exception is that of some earlier line
        last = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
        error = self._error or last
        about = {} if error is None else {"error": describe(error)}
        report(None, "info", RUN_ENDED, about)

    def _detach(self) -> None:
        join_hooks.remove(self._join)
        if self._copy in self._processors:
            self._processors.remove(self._copy)
        if self._configured_here and self._is_in_use():
            structlog.reset_defaults()

    def _is_in_use(self) -> bool:
        config = structlog.get_config()
        return structlog.is_configured() and config["processors"] is self._processors

    def _copy(self, _logger: Any, _method: str, event: Event) -> Event:
        """Write an event and pass it on unchanged; a closed log only passes it on."""
        is_wanted = self._details or event.get("event") != EVENT_REFUSED
        if is_wanted and not self._file.closed:
            keys = with_traceback(event) if "exc_info" in event else event
            self._write(line_of({"event": None, **self._clock.moment.stamp, **keys}))
            self._has_begun = True
        return event


def _require_log(path: Path) -> None:
    """Refuse a file that is something else than the log of an application.

    Raises:
        InputError: If it is.
    """
    if not path.is_file():  # a device or a pipe may have no end
        raise InputError(_NO_LOG, path=path)
    with path.open("rb") as file:
        first = file.readline()
    event = read_line(first) or {}
    # the start of a simulation names its agents
    if first and ("event" not in event or "agents" in event):
        raise InputError(_NO_LOG, path=path)


_NO_LOG = "is no log of prism.runlog.configure, and nothing is added to it: name another file"
_DROPS = (
    "would lack the {0}, since structlog is configured with a wrapper_class that drops {1} events: "
    "use one that passes them on, such as structlog.make_filtering_bound_logger(logging.{2})"
)
_DISPLACED = (
    "lacks all events since structlog was configured again: "
    "configure structlog before prism.runlog.configure()"
)


def _processors_to_join(path: Path) -> list[Any]:
    """Return structlog's list of processors, changed in place since cached loggers use it."""
    if (config := configuration()) is None:
        return [as_record]
    processors = config["processors"]
    if not isinstance(processors, list):
        problem = "cannot join structlog's processors: configure them as a list, not a"
        raise InputError(f"{problem} {type(processors).__name__}", path=path)
    others = (getattr(processor, "__self__", None) for processor in processors)
    if other := next((each for each in others if isinstance(each, _ConfiguredLog)), None):
        problem = f"a log is already being written to {other.path}: close it first"
        raise InputError(problem, path=path)
    return processors

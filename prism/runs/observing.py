"""What a run reports besides its log, and to whom."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from prism._faults import Location, location_of
from prism.telemetry.loggers import describe

_logger = logging.getLogger("prism.runs")


class Observer:
    """Receives what a run reports.

    This one logs it to ``prism.runs``; subclasses override the methods.
    """

    def note(self, message: str) -> None:
        """Receive a note, such as the round after which a run continues."""
        _logger.info(message)

    def warn(self, message: str) -> None:
        """Receive a problem that was handled, such as a file that has changed."""
        _logger.warning(message)

    def started(self, run: Any) -> None:
        """Receive the run before its first round, or before the first after a resume."""


@contextmanager
def forwarding_warnings(observer: Observer) -> Iterator[None]:
    """Pass warnings that are not in the run's log to its observer."""
    logger, handler = logging.getLogger("prism"), _Forwarder(observer)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Forwarder(logging.Handler):
    def __init__(self, observer: Observer) -> None:
        super().__init__(logging.WARNING)
        self._observer = observer
        self._faults: set[tuple[Location | None, type]] = set()

    def emit(self, record: logging.LogRecord) -> None:
        event: Mapping[str, Any] | None = getattr(record, "prism", None)
        if record.name == _logger.name:  # what an observer logs itself
            return
        if event is None:
            self._observer.warn(record.getMessage())
        elif record.levelno >= logging.ERROR and record.exc_info and record.exc_info[1]:
            # of a run without a folder, whose summary counts everything but faults
            error = record.exc_info[1]
            line, what = location_of(error), describe(error)
            if (line, type(error)) not in self._faults:
                self._faults.add((line, type(error)))
                once = "reported once; the log of a kept run has them all"
                self._observer.warn(f"{line or ''}: {what} ({event['event']}; {once})")

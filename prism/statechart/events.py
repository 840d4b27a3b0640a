"""How the engine speaks: one structlog event for every move, one for every fault.

structlog prints to stdout when nobody configured it, and importing it costs more than the engine itself.
So it is looked up, never imported: an application that has not imported structlog cannot have configured
it, and then moves are not announced. Faults are never swallowed: without structlog they go to the standard
library's logger ``prism.statechart``.
"""

from __future__ import annotations

import logging
from sys import modules
from typing import Any, Literal, Protocol

TRANSITION = "statechart.transition"
GUARD_FAILED = "statechart.guard_failed"
ACTION_FAILED = "statechart.action_failed"
ANSWER_DISCARDED = "statechart.answer_discarded"
DECISION = "reasoner.decision"
CACHE_FAILED = "reasoner.cache_failed"

Level = Literal["info", "warning", "error"]

_standard = logging.getLogger("prism.statechart")


class EventLogger(Protocol):
    """The part of a structlog logger that the engine uses."""

    def info(self, event: str, **keys: Any) -> Any:
        """Record something that happened."""

    def warning(self, event: str, **keys: Any) -> Any:
        """Record something that went wrong and was dealt with."""

    def error(self, event: str, **keys: Any) -> Any:
        """Record a fault in the user's code."""


def structlog_is_configured() -> bool:
    """Tell whether the application has configured structlog, without importing it."""
    return "structlog" in modules and modules["structlog"].is_configured()


def active_logger(given: EventLogger | None) -> EventLogger | None:
    """Give the logger to announce moves to: the given one, else structlog's if it is configured."""
    if given is not None:
        return given
    if structlog_is_configured():
        logger: EventLogger = modules["structlog"].get_logger("prism.statechart")
        return logger
    return None


def report(given: EventLogger | None, level: Level, event: str, /, **keys: Any) -> None:
    """Log an event; without structlog, faults and warnings go to the standard library's logger.

    Args:
        given: The chart's or reasoner's own logger, if it has one.
        level: How serious it is.
        event: One of the event names.
        keys: What happened; an exception as ``exc_info``.
    """
    logger = active_logger(given)
    if logger is not None:
        getattr(logger, level)(event, **keys)
    elif level != "info":
        raised = keys.pop("exc_info", None)  # shown with its traceback, so that ``error`` would only repeat it
        shown = {name: value for name, value in keys.items() if raised is None or name != "error"}
        getattr(_standard, level)("%s %s", event, shown, exc_info=raised)


def report_fault(given: EventLogger | None, event: str, error: BaseException, **keys: Any) -> None:
    """Log an exception from the user's code with its traceback.

    Args:
        given: The chart's own logger, if it has one.
        event: One of this module's event names.
        error: What was raised.
        keys: Where it was raised.
    """
    report(given, "error", event, exc_info=error, error=describe(error), **keys)


def report_warning(given: EventLogger | None, event: str, **keys: Any) -> None:
    """Log something that was dealt with but that a reader of the log should know."""
    report(given, "warning", event, **keys)


def describe(error: BaseException) -> str:
    """Give an exception as ``Type: message`` on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())

"""The loggers that events go to.

Events go to the given logger, or else to structlog once the application has configured it, or else
to the standard library's logger ``prism.statechart``. Transitions have the level info, which the
standard library does not show by default; faults are errors, which it shows.

structlog is looked up in ``sys.modules``, never imported: importing it costs more than the engine
itself, it prints to stdout until it is configured, and an application that has not imported it
cannot have configured it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from inspect import iscoroutinefunction
from sys import modules
from typing import Any, Protocol

from prism.errors import DefinitionError
from prism.telemetry.instruments import Level, listening, observe

LOGGER_NAME = "prism.statechart"
"""Name of prism's logger, in structlog and in the standard library."""


class EventLogger(Protocol):
    """The part of a structlog logger that the engine uses."""

    def info(self, event: str, /, **keys: Any) -> Any:
        """Record something that happened."""

    def warning(self, event: str, /, **keys: Any) -> Any:
        """Record something that went wrong and was dealt with."""

    def error(self, event: str, /, **keys: Any) -> Any:
        """Record a fault in the user's code."""


def as_record(_logger: object, _level: str, event: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the arguments with which a logger of the standard library records an event.

    It may be the last processor of structlog. A record's message is the event with its keys as
    text; its attribute ``prism`` has them as data: ``{"event": ..., **keys}``.
    """
    raised = event.get("exc_info")
    data = {name: value for name, value in event.items() if name != "exc_info"}
    # logging shows the traceback, so ``error`` would only repeat it
    hidden = ("event", "error" if raised else None)
    listed = {name: value for name, value in data.items() if name not in hidden}
    # one attribute for all keys: ``name``, for one, is an attribute of every record already
    return ("%s %s", event["event"], listed), {"exc_info": raised, "extra": {"prism": data}}


class Recorder:
    """A logger of prism's own, to which the keys of an event are handed as they are.

    With a copy of them for each logger on the way, a line of a log took a third longer.
    """

    record: Callable[[Level, str, Mapping[str, Any]], None]
    """Records an event; derived classes have it as a method."""

    def info(self, event: str, /, **keys: Any) -> None:
        """Record something that happened."""
        self.record("info", event, keys)

    def warning(self, event: str, /, **keys: Any) -> None:
        """Record something that went wrong and was dealt with."""
        self.record("warning", event, keys)

    def error(self, event: str, /, **keys: Any) -> None:
        """Record a fault in the user's code."""
        self.record("error", event, keys)


class LateLogger(Recorder):
    """A logger for use before it is known where the events go.

    Attributes:
        opened: Where they go. Until it is set, they go where events without a logger go.
        is_silent: Whether nobody is to hear them, as they were logged before.
    """

    opened: EventLogger | None = None
    is_silent: bool = False

    def record(self, level: Level, event: str, keys: Mapping[str, Any]) -> None:
        """Record an event where they go by now."""
        report(self, level, event, keys)


_standard = logging.getLogger(LOGGER_NAME)


def somebody_listens(level: int = logging.INFO) -> bool:
    """Return whether anybody may listen to charts without their own logger."""
    # every fire asks, and a third call would make it a sixth slower
    if listening or (_is_configured() and configuration() is not None):
        return True
    return _standard.isEnabledFor(level)


def is_heard(logger: EventLogger | None, level: int = logging.INFO) -> bool:
    """Return whether anybody listens to the events of a logger, or to those without one.

    Args:
        logger: The chart's or reasoner's own logger, if it has one.
        level: ``logging.DEBUG`` for details, which instruments are not shown.
    """
    return bool(listening and level > logging.DEBUG) or _logger_for(logger, level) is not None


def _logger_for(logger: Any, level: int) -> Any:
    """Return where events go; None if nobody listens to those of a level."""
    while type(logger) is LateLogger:
        if logger.is_silent:
            return None
        logger = logger.opened
    if logger is None:
        if (config := configuration()) is None:
            return _standard if _standard.isEnabledFor(level) else None
        logger = _configured_logger(config)
    if level > logging.DEBUG:
        return logger
    # those of runs have no details; one of structlog's that filters says for which levels it does
    is_enabled = getattr(logger, "is_enabled_for", None)
    return logger if (is_enabled(level) if is_enabled else hasattr(logger, "debug")) else None


def synchronous(logger: EventLogger | None) -> EventLogger | None:
    """Return a logger, if its methods log at once.

    Raises:
        DefinitionError: If they are coroutines, which nobody would await.
    """
    if iscoroutinefunction(info := getattr(logger, "info", None)):
        raise DefinitionError(
            f"{info.__qualname__} is a coroutine, which nobody would await: give a logger "
            "with synchronous methods, or none, so that events go to the processors of structlog"
        )

    return logger


def report(
    preferred: EventLogger | None, level: Level, event: str, keys: Mapping[str, Any]
) -> None:
    """Log an event. Warnings and errors go to the standard library if they go nowhere else.

    Where structlog raises, as with a full disk, the event is lost, and nothing else.

    Args:
        preferred: The chart's or reasoner's own logger, if it has one.
        level: How serious it is.
        event: One of the event names.
        keys: What happened; an exception as ``exc_info``.

    Raises:
        Exception: What another logger raises, such as that of a run on a full disk.
    """
    is_detail = level == "debug"
    # a logger that relays events is observed when it passes them on, in the order of the log
    if listening and not (is_detail or getattr(preferred, "relays", False)):
        observe("event", event, level, dict(keys))
    logger = _logger_for(preferred, logging.DEBUG if is_detail else logging.INFO)
    if logger is None:
        if level not in ("warning", "error") or getattr(preferred, "is_silent", False):
            return
        if level == "warning" and (kinds := _unheard.get()) is not None:
            _warn_once(kinds, event, keys)
            return
        logger = _standard
    args: tuple[Any, ...] = (event,)
    if logger is _standard:
        args, keys = as_record(logger, level, {"event": event, **keys})
    try:
        if isinstance(logger, Recorder):
            logger.record(level, event, keys)
        else:
            getattr(logger, level)(*args, **keys)
    except Exception as error:
        if not type(logger).__module__.startswith("structlog"):
            raise
        warn_standard(f"structlog lost {event}: {describe(error)}")


_unheard: ContextVar[set[str] | None] = ContextVar("prism_unheard", default=None)
"""The kinds of warnings that no log has heard, while only the first of each is shown."""


@contextmanager
def warning_once() -> Iterator[None]:
    """Of warnings that no log hears, show the first of each kind."""
    token = _unheard.set(set())
    try:
        yield
    finally:
        _unheard.reset(token)


def _warn_once(kinds: set[str], event: str, keys: Mapping[str, Any]) -> None:
    reason = str(keys.get("reason") or "")
    if (kind := f"{event}, {reason.partition(':')[0]}") not in kinds:
        kinds.add(kind)
        warn_standard(f"{event} of {keys.get('agent_id')}: {reason}; others are only counted")


def warn_standard(message: str) -> None:
    """Warn the programmer of a mistake, only by the standard library's logger.

    A warning that is given only once does not belong in the log of a run, where it would be missing
    after a resume.
    """
    _standard.warning(message)


def describe(error: BaseException) -> str:
    """Return an exception as ``Type: message`` on one line."""
    kind, message = type(error).__name__, " ".join(str(error).split())
    return f"{kind}: {message}" if message else kind


def configuration() -> dict[str, Any] | None:
    """Return how the application has configured structlog; None if it has not.

    After ``structlog.testing.capture_logs``, structlog says that it is, and has only its defaults.
    """
    if not _is_configured():
        return None
    config: dict[str, Any] = modules["structlog"].get_config()
    return None if config == _defaults() else config


def _look_for_structlog() -> bool:
    global _is_configured
    # structlog lacks the function while it is being imported
    if ask := getattr(modules.get("structlog"), "is_configured", None):
        _is_configured = ask
    return ask is not None and bool(ask())


_is_configured: Callable[[], bool] = _look_for_structlog
"""structlog's function of that name, once structlog is imported."""


@cache
def _defaults() -> dict[str, Any]:
    """Return the configuration that structlog has by itself, and only shows while it is reset."""
    structlog = modules["structlog"]
    config = structlog.get_config()
    structlog.reset_defaults()
    defaults: dict[str, Any] = structlog.get_config()
    structlog.configure(**config)
    return defaults


def _configured_logger(config: Mapping[str, Any]) -> Any:
    """Return structlog's logger as the application has configured it by now."""
    structlog = modules["structlog"]
    # an asynchronous logger would have to be awaited
    is_asynchronous = iscoroutinefunction(getattr(config["wrapper_class"], "info", None))
    wrapper = structlog.stdlib.BoundLogger if is_asynchronous else None
    processors = config["processors"]
    return structlog.wrap_logger(None, processors, wrapper, logger_factory_args=(LOGGER_NAME,))

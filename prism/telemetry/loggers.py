"""The loggers that events go to.

Events go to the given logger, or else to structlog once the application has configured it, or else
to the standard library's logger ``prism.statechart``. Transitions have the level info, which the
standard library does not show by default; faults are errors, which it shows.

structlog is looked up in `sys.modules`, never imported: importing it costs more than the engine
itself, it prints to stdout until it is configured, and an application that has not imported it
cannot have configured it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from inspect import iscoroutinefunction
from pathlib import Path
from sys import _getframe, modules
from traceback import walk_tb
from typing import Any, Protocol

from prism.errors import DefinitionError
from prism.telemetry.instruments import Level, LogEvent, event_hooks, observe

LOGGER_NAME = "prism.statechart"
"""Name of prism's logger, in structlog and in the standard library."""

_DEBUG, _INFO = logging.DEBUG, logging.INFO
_standard = logging.getLogger(LOGGER_NAME)
_is_configured: Callable[[], bool] | None = None
_configured: tuple[dict[str, Any], EventLogger] | None = None
_defaults: dict[str, Any] | None = None


class EventLogger(Protocol):
    """The part of a structlog logger that the engine uses."""

    def info(self, event: str, **keys: Any) -> Any:
        """Record something that happened."""

    def warning(self, event: str, **keys: Any) -> Any:
        """Record something that went wrong and was dealt with."""

    def error(self, event: str, **keys: Any) -> Any:
        """Record a fault in the user's code."""


class _Leveled:
    """A logger whose methods do the same, each for its own level."""

    __slots__ = ()

    def debug(self, event: str, **keys: Any) -> None:
        """Record a detail."""
        self._record("debug", event, keys)

    def info(self, event: str, **keys: Any) -> None:
        """Record something that happened."""
        self._record("info", event, keys)

    def warning(self, event: str, **keys: Any) -> None:
        """Record something that went wrong and was dealt with."""
        self._record("warning", event, keys)

    def error(self, event: str, **keys: Any) -> None:
        """Record a fault in the user's code."""
        self._record("error", event, keys)

    def critical(self, event: str, **keys: Any) -> None:
        """Record a critical event; prism itself has none."""
        self._record("critical", event, keys)

    def _record(self, level: Any, event: str, keys: dict[str, Any]) -> None:
        raise NotImplementedError


class StandardLogger(_Leveled):
    """Passes events to a logger of the standard library, if it is enabled for them.

    A record's message is the event with its keys as text; its attribute ``prism`` has them as data:
    ``{"event": ..., **keys}``.

    Args:
        name: Name of the logger; the root logger by default.
    """

    __slots__ = ("_logger",)

    def __init__(self, name: str | None = None) -> None:
        self._logger = logging.getLogger(name)

    def _record(self, level: str, event: str, keys: dict[str, Any]) -> None:
        number: int = getattr(logging, level.upper())
        if not self._logger.isEnabledFor(number):
            return

        # logging shows the traceback, so ``error`` would only repeat it
        raised = keys.pop("exc_info", None)
        shown = {name: value for name, value in keys.items() if not raised or name != "error"}
        # one attribute for all keys: ``name``, for one, is an attribute of every record already
        data = {"event": event, **keys}
        self._logger.log(number, "%s %s", event, shown, exc_info=raised, extra={"prism": data})


class LateLogger(_Leveled):
    """A logger for use before it is known where the events go.

    Until it is opened, events go where events without a logger go.

    Attributes:
        followers: Others that are opened with it.
        opened: The logger to which it has been opened, if it has.
    """

    def __init__(self) -> None:
        self.followers: list[LateLogger] = []
        self.opened: EventLogger | None = None

    def open(self, logger: EventLogger) -> None:
        """Send events to another logger from now on."""
        self.opened = logger
        # its own methods stand here, so that no event passes through this class
        for name in ("info", "warning", "error"):
            setattr(self, name, getattr(logger, name))
        for each in self.followers:
            each.open(logger)

    def _record(self, level: Level, event: str, keys: dict[str, Any]) -> None:
        own = _own_logger()
        if own is not None or level != "info":
            getattr(own or _standard_logger, level)(event, **keys)


class _ObservedLogger(_Leveled):
    """A logger that shows each event to the instruments, and then passes it to another logger."""

    __slots__ = ("_logger",)

    def __init__(self, logger: EventLogger) -> None:
        self._logger = logger

    def _record(self, level: Level, event: str, keys: dict[str, Any]) -> None:
        observe("event", LogEvent, event, level, dict(keys))
        getattr(self._logger, level)(event, **keys)


def somebody_listens() -> bool:
    """Return True if anybody listens to the transitions of charts without their own logger."""
    if event_hooks or ("structlog" in modules and structlog_is_configured()):
        return True
    return _standard.isEnabledFor(_INFO)


def somebody_wants_details() -> bool:
    """Return True if anybody may listen to the details of charts without their own logger."""
    return "structlog" in modules or _standard.isEnabledFor(_DEBUG)


def active_logger(given: EventLogger | None) -> EventLogger | None:
    """Return the logger for transitions, or None if nobody listens.

    Args:
        given: The chart's or reasoner's own logger, if it has one.
    """
    logger = given.opened if type(given) is LateLogger else given
    if logger is None:
        logger = _own_logger()

    # a logger that relays events is observed when it passes them on, in the order of the log
    if not event_hooks or getattr(given, "relays", False):
        return logger

    return _ObservedLogger(logger or _standard_logger)


def synchronous(logger: Any) -> Any:
    """Return a logger whose methods log at once: of a coroutine, nobody would await the event.

    Raises:
        DefinitionError: If it has coroutines only.
    """
    kind = type(logger)
    if "structlog" in modules and not hasattr(kind, "info"):
        # structlog makes the logger itself when it is first used
        kind = modules["structlog"].get_config()["wrapper_class"]
    if logger is None or not _is_asynchronous(kind):
        return logger

    try:
        # structlog's asynchronous logger keeps the other one for such uses
        return logger.sync_bl
    except (AttributeError, RuntimeError):
        raise DefinitionError(
            f"{kind.__name__}.info is a coroutine, which nobody would await: give a logger with "
            "synchronous methods, or none, so that events go to the processors of structlog"
        ) from None


def _is_asynchronous(kind: type) -> bool:
    return iscoroutinefunction(getattr(kind, "info", None))


def _own_logger() -> EventLogger | None:
    if structlog_is_configured():
        return _configured_logger()
    return _standard_logger if _standard.isEnabledFor(_INFO) else None


def debug_logger(given: EventLogger | None) -> Any:
    """Return the logger for details, or None if nobody listens to them.

    Args:
        given: The chart's own logger, if it has one.
    """
    logger: Any = given.opened if type(given) is LateLogger else given
    if logger is None:
        if not structlog_is_configured():
            return _standard_logger if _standard.isEnabledFor(_DEBUG) else None
        logger = _configured_logger()

    # those of runs have no details
    if not hasattr(logger, "debug"):
        return None
    # a logger of structlog's that filters says for which levels it does
    is_enabled = getattr(logger, "is_enabled_for", None)
    return None if is_enabled is not None and not is_enabled(_DEBUG) else logger


def report(given: EventLogger | None, level: Level, event: str, /, **keys: Any) -> None:
    """Log an event; a processor of structlog that raises loses it, and nothing else.

    Args:
        given: The chart's or reasoner's own logger, if it has one.
        level: How serious it is.
        event: One of the event names.
        keys: What happened; an exception as ``exc_info``.
    """
    try:
        getattr(active_logger(given) or _standard_logger, level)(event, **keys)
    except Exception as error:
        pass_over(error, event)


def report_fault(given: EventLogger | None, event: str, error: BaseException, **keys: Any) -> None:
    """Log an exception from the user's code with its traceback.

    Args:
        given: The chart's own logger, if it has one.
        event: One of the event names.
        error: What was raised.
        keys: Where it was raised.
    """
    report(given, "error", event, exc_info=error, error=describe(error), **keys)


def pass_over(error: Exception, event: str) -> None:
    """Go on after a processor of structlog that raised: what has happened is not undone by it.

    Each line of such a processor is told once.

    Args:
        error: What was raised.
        event: The name of the event.

    Raises:
        Exception: The same error, if it is none of a processor, such as that of a full disk.
    """
    trail = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    rooms = [name.partition(".")[0] for name in trail]
    if "structlog" not in rooms or rooms[-1] == "prism" or isinstance(error, OSError):
        raise error

    # loaded only for a message
    from prism._faults import place_of

    place = str(place_of(error) or trail[-1])
    if place not in _told_places:
        _told_places.add(place)
        warn_standard(f"a processor of structlog lost {event}: {describe(error)} ({place})")


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


_standard_logger = StandardLogger(LOGGER_NAME)
_told_places: set[str] = set()


def structlog_is_configured() -> bool:
    """Return whether the application has configured structlog.

    After `structlog.testing.capture_logs`, structlog says so, and has nothing but its defaults.
    """
    global _is_configured, _defaults
    if _is_configured is None:
        # structlog lacks the function while it is being imported
        _is_configured = getattr(modules.get("structlog"), "is_configured", None)
        if _is_configured is None:
            return False
    if not _is_configured():
        _defaults = _defaults or _configuration()
        return False
    return _defaults is None or _configuration() != _defaults


def _configuration() -> dict[str, Any]:
    """Return structlog's configuration, with a copy of its processors, which change in place."""
    config: dict[str, Any] = modules["structlog"].get_config()
    return {**config, "processors": [*config["processors"]]}


def _configured_logger() -> EventLogger:
    """Return structlog's logger, made anew when the application has reconfigured structlog."""
    global _configured, _defaults
    structlog = modules["structlog"]
    config, known = _configuration(), _configured
    if known is not None and config == known[0]:
        return known[1]

    testing = modules.get("structlog.testing")
    capture = () if _defaults or testing is None else testing.LogCapture
    if any(isinstance(each, capture) for each in config["processors"]):
        # what `capture_logs` will leave behind, if nothing was configured before it
        own = structlog.get_config()
        structlog.reset_defaults()
        _defaults = _configuration()
        structlog.configure(**own)

    # an asynchronous logger would have to be awaited
    kind = config["wrapper_class"]
    kind = structlog.stdlib.BoundLogger if _is_asynchronous(kind) else None
    adder = structlog.processors.CallsiteParameterAdder
    processors = [
        _CallerAdder(each) if isinstance(each, adder) else each for each in config["processors"]
    ]
    logger: Any = structlog.wrap_logger(
        None,
        processors=None if processors == config["processors"] else processors,
        wrapper_class=kind,
        logger_factory_args=(LOGGER_NAME,),
    )
    # assemble it for good only if the application lets structlog cache its own loggers, or if
    # `prism.runlog.configure` has set structlog up
    if config["cache_logger_on_first_use"] or config["logger_factory"] is StandardLogger:
        logger = logger.bind()

    _configured = known = config, logger

    return known[1]


class _CallerAdder:
    """structlog's `CallsiteParameterAdder`, with the place of whoever called prism.

    Args:
        add: What adds prism's own place.
    """

    def __init__(self, add: Any) -> None:
        self._add = add

    def __call__(self, logger: Any, method: str, event: Any) -> Any:
        """Add the place to an event."""
        before = {*event}
        event = self._add(logger, method, event)
        frame: Any = _getframe()
        while frame.f_back and frame.f_globals.get("__name__", "").startswith(_BETWEEN):
            frame = frame.f_back
        code, module = frame.f_code, frame.f_globals.get("__name__", "?")
        place = {
            "pathname": code.co_filename,
            "filename": Path(code.co_filename).name,
            "module": Path(code.co_filename).stem,
            "func_name": code.co_name,
            "lineno": frame.f_lineno,
            "qual_name": f"{module}.{code.co_qualname}",
            "qual_module": module,
        }
        event.update((key, place[key]) for key in place.keys() & event.keys() - before)
        return event


_BETWEEN = ("prism.", "structlog", "transitions.")
"""The packages between an event and whoever caused it."""

"""What charts and reasoners say during a test, whatever the application does with its log."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, nullcontext
from typing import Any

import structlog

from prism.errors import InputError
from prism.runlog import events as names
from prism.statechart.bookkeeping import agent_name
from prism.statechart.events import LOGGER_NAME

Event = dict[str, Any]
Hear = Callable[[Event], None]

_PROBE = "prism.testing.probe"
_OWN_EVENTS = frozenset(value for name, value in vars(names).items() if name.isupper() and isinstance(value, str))
_LISTENING = logging.INFO - 1
"""A level of the standard logger that nobody else sets, so that a change by the test can be told from ours."""
_DROPS_MOVES = (
    "transition_log would lack the moves, since structlog is configured with a wrapper_class that drops info events: "
    "take one that passes them on, such as structlog.make_filtering_bound_logger(logging.INFO)"
)
_DISPLACED = (
    "transition_log lacks what was said since structlog was configured during the test: configure it before, in a "
    "fixture that the test names first"
)


class TransitionLog:
    """The events of prism in the order in which they were said, as dicts of their keys.

    Attributes:
        events: All of them; the name stands under ``event``.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    def of(self, agent: Any) -> list[Event]:
        """List the events of one agent, given itself or by its id."""
        name = agent if isinstance(agent, str) else agent_name(agent)
        return [event for event in self.events if event.get("agent_id") == name]

    def named(self, name: str) -> list[Event]:
        """List the events of one name, such as ``reasoner.decision`` or ``statechart.guard_failed``."""
        return [event for event in self.events if event["event"] == name]

    def moves(self, agent: Any) -> list[tuple[str, str, str]]:
        """List the moves of one agent as (source, trigger, target)."""
        return [
            (event["from_state"], event["trigger"], event["to_state"])
            for event in self.of(agent)
            if event["event"] == names.TRANSITION
        ]

    def clear(self) -> None:
        """Forget what was said until now."""
        self.events.clear()


@contextmanager
def transition_log() -> Iterator[TransitionLog]:
    """Record what prism says meanwhile; loggers go on getting what they would get anyway.

    Raises:
        InputError: If structlog is configured so that moves never reach its processors.
    """
    log = TransitionLog()
    with _hearing_logging(log.events.append), _hearing_structlog(log.events.append):
        yield log


class _Ear(logging.Filter):
    """Hears every record of prism's standard logger, and lets through what would pass without it."""

    def __init__(self, hear: Hear, logger: logging.Logger) -> None:
        super().__init__()
        self._hear = hear
        self._logger = logger
        self._level = logger.level

    def filter(self, record: logging.LogRecord) -> bool:
        """Hear a record, and decide on it."""
        event = getattr(record, "prism", None)
        if event is not None:
            self._hear({**event, "exc_info": record.exc_info[1]} if record.exc_info else dict(event))
        if self._logger.level != _LISTENING or self._logger.parent is None:
            return True
        return record.levelno >= (self._level or self._logger.parent.getEffectiveLevel())


@contextmanager
def _hearing_logging(hear: Hear) -> Iterator[None]:
    logger = logging.getLogger(LOGGER_NAME)
    ear = _Ear(hear, logger)
    before = logger.level
    logger.addFilter(ear)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(_LISTENING)
    try:
        yield
    finally:
        logger.removeFilter(ear)
        if logger.level == _LISTENING:
            logger.setLevel(before)


@contextmanager
def _hearing_structlog(hear: Hear) -> Iterator[None]:
    tap = _Tap(hear)
    with _joined(tap) if structlog.is_configured() else nullcontext():
        yield
        if structlog.is_configured() and tap not in structlog.get_config()["processors"]:
            warnings.warn(_DISPLACED, RuntimeWarning, stacklevel=2)


@contextmanager
def _joined(tap: _Tap) -> Iterator[None]:
    """Put the tap in front of the processors: in place where that can be, as cached loggers hold the list."""
    before = structlog.get_config()["processors"]
    joined = before if isinstance(before, list) else [*before]
    joined.insert(0, tap)
    if joined is not before:
        structlog.configure(processors=joined)
    try:
        tap.probe()
        yield
    finally:
        if tap in joined:
            joined.remove(tap)
        if joined is not before and structlog.get_config()["processors"] is joined:
            structlog.configure(processors=before)


class _Tap:
    """Stands first among structlog's processors, where nothing is dropped or changed yet."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._works = False

    def __call__(self, _logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Hear an event and pass it on as it is."""
        name = event.get("event")
        if name == _PROBE:
            self._works = True
            raise structlog.DropEvent
        if name in _OWN_EVENTS:
            self._hear(dict(event))
        return event

    def probe(self) -> None:
        """See whether moves come here at all."""
        structlog.get_logger(LOGGER_NAME).info(_PROBE)
        if not self._works:
            raise InputError(_DROPS_MOVES)

"""What a run says of itself in its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prism.errors import FieldValueError
from prism.statechart.names import identify
from prism.telemetry.loggers import EventLogger, active_logger

_RESERVED = ("event", "timestamp", "round", "tick")


class Events:
    """Writes the events of a run; those of setup follow those that begin the run.

    Args:
        logger: Where they go.
    """

    def __init__(self, logger: EventLogger | None) -> None:
        self.logger = logger
        self._buffer: list[tuple[str, dict[str, Any]]] | None = []

    @property
    def are_heard(self) -> bool:
        """Whether anybody listens."""
        return active_logger(self.logger) is not None

    def begin(self) -> None:
        """Write what `World.setup` has logged."""
        buffered, self._buffer = self._buffer or [], None
        for event, keys in buffered:
            self.emit(event, **keys)

    def log(self, event: str, keys: Mapping[str, Any]) -> None:
        """Log one of the world's own events.

        Raises:
            FieldValueError: If a key is one that every line has.
        """
        for name in keys:
            if name in _RESERVED:
                raise FieldValueError(f"world.{event}: every line has {name!r} already: rename it")
        if self._buffer is not None or self.are_heard:
            named = {"agent_id" if name == "agent" else name: each for name, each in keys.items()}
            self.tell(f"world.{event}", **(identify(named) or {}))

    def tell(self, event: str, **keys: Any) -> None:
        """Log an event of the world."""
        if self._buffer is None:
            self.emit(event, **keys)
        else:
            self._buffer.append((event, keys))

    def emit(self, event: str, **keys: Any) -> None:
        """Log an event of the run."""
        logger = active_logger(self.logger)
        if logger is not None:
            logger.info(event, **keys)

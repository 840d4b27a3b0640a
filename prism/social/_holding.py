"""Holding back events that tell of a text which is still to be written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from prism.runlog import SimulatedClock
from prism.runlog._clock import Moment
from prism.telemetry._instrument import Level
from prism.telemetry._loggers import EventLogger, report


class Later:
    """A value of an event that is known only later.

    Attributes:
        is_known: Whether it is.
        value: The value.
        told: Called when it gets known.
    """

    __slots__ = ("is_known", "told", "value")

    def __init__(self) -> None:
        self.is_known: bool = False
        self.value: Any = None
        self.told: Callable[[], object] | None = None

    def know(self, value: Any) -> None:
        """Give the value."""
        self.is_known, self.value = True, value
        if self.told is not None:
            self.told()


class HoldingLogger:
    """Passes events on in their order; one that waits for a value holds back all that follow.

    Args:
        given: Where they go in the end.
        clock: The run's clock.

    Attributes:
        relays: Marks a logger that passes events on to another one.
    """

    relays = True

    def __init__(self, given: EventLogger | None, clock: SimulatedClock) -> None:
        self._given = given
        self._clock = clock
        self._held: deque[tuple[Moment, Level, str, dict[str, Any]]] = deque()

    def info(self, event: str, **keys: Any) -> None:
        """Record something that happened."""
        self._say("info", event, keys)

    def warning(self, event: str, **keys: Any) -> None:
        """Record something that went wrong and was dealt with."""
        self._say("warning", event, keys)

    def error(self, event: str, **keys: Any) -> None:
        """Record a fault in the user's code."""
        self._say("error", event, keys)

    def _say(self, level: Level, event: str, keys: dict[str, Any]) -> None:
        if not self._held and not _waits_for(keys):
            report(self._given, level, event, **_known(keys))
            return

        for later in _waits_for(keys):
            later.told = self._go_on
        self._held.append((self._clock.moment, level, event, keys))

    def _go_on(self) -> None:
        while self._held and not _waits_for(self._held[0][-1]):
            moment, level, event, keys = self._held.popleft()
            with self._clock.at(moment):
                report(self._given, level, event, **_known(keys))


def _waits_for(keys: dict[str, Any]) -> list[Later]:
    return [each for each in keys.values() if isinstance(each, Later) and not each.is_known]


def _known(keys: dict[str, Any]) -> dict[str, Any]:
    return {name: each.value if isinstance(each, Later) else each for name, each in keys.items()}

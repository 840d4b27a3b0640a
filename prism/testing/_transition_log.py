"""The events of charts and reasoners during a test, whatever the application logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prism.statechart._identity import id_text
from prism.telemetry import Instrument, LogEvent, instrumented
from prism.telemetry.events import TRANSITION

Event = dict[str, Any]


class TransitionLog(Instrument):
    """The events of prism in the order of the log, as dicts of their keys.

    Attributes:
        events: All of them, with their name under ``event``.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    def event(self, details: LogEvent, /) -> None:
        """Keep an event."""
        self.events.append({"event": details.name, **details.keys})

    def of(self, agent: Any) -> list[Event]:
        """Return the events of one agent, given itself or by its id, a text or a number."""
        name = id_text(agent)
        return [event for event in self.events if event.get("agent_id") == name]

    def named(self, name: str) -> list[Event]:
        """Return the events of one name, such as ``statechart.guard_failed``."""
        return [event for event in self.events if event["event"] == name]

    def transitions(self, agent: Any) -> list[tuple[str, str, str]]:
        """Return the transitions of one agent as (source, trigger, target)."""
        return [
            (event["from_state"], event["trigger"], event["to_state"])
            for event in self.of(agent)
            if event["event"] == TRANSITION
        ]

    def clear(self) -> None:
        """Forget the events so far."""
        self.events.clear()


@contextmanager
def transition_log() -> Iterator[TransitionLog]:
    """Record the events of prism meanwhile; loggers get what they would get anyway."""
    log = TransitionLog()
    with instrumented(log):
        yield log

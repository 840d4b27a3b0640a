"""What charts and reasoners say during a test, whatever the application does with its log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prism.statechart._identity import agent_name
from prism.telemetry._listening import listening
from prism.telemetry.events import TRANSITION

Event = dict[str, Any]


class TransitionLog:
    """The events of prism in the order in which they were said, as dicts of their keys.

    Attributes:
        events: All of them; the name stands under ``event``.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    def of(self, agent: Any) -> list[Event]:
        """List the events of one agent, given itself or by its id, a text or a number."""
        name = id_text(agent)
        return [event for event in self.events if event.get("agent_id") == name]

    def named(self, name: str) -> list[Event]:
        """List the events of one name, such as ``reasoner.decision`` or ``statechart.guard_failed``."""
        return [event for event in self.events if event["event"] == name]

    def moves(self, agent: Any) -> list[tuple[str, str, str]]:
        """List the moves of one agent as (source, trigger, target)."""
        return [
            (event["from_state"], event["trigger"], event["to_state"])
            for event in self.of(agent)
            if event["event"] == TRANSITION
        ]

    def clear(self) -> None:
        """Forget what was said until now."""
        self.events.clear()


def id_text(agent: Any) -> str:
    """Return the id of an agent as logs have it, given the agent itself, which has a ``state``, or its id."""
    return agent_name(agent) if hasattr(agent, "state") else str(agent)


@contextmanager
def transition_log() -> Iterator[TransitionLog]:
    """Record what prism says meanwhile; loggers go on getting what they would get anyway."""
    log = TransitionLog()
    with listening(lambda event, keys: log.events.append({"event": event, **keys})):
        yield log

"""What a run says in its log, and which of its events are logged when."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from prism.errors import FieldValueError
from prism.runlog import SimulatedClock
from prism.runlog.writer import Moment
from prism.statechart.names import identify
from prism.statechart.states import state_text
from prism.telemetry import events
from prism.telemetry.instruments import Level
from prism.telemetry.loggers import EventLogger, Recorder, is_heard, report

_RESERVED = ("event", "timestamp", "round", "tick")

_OF_AN_AGENT = {
    events.AGENT_JOINED,
    events.AGENT_LEFT,
    events.TRANSITION,
    events.DECISION,
    events.ANSWER_DISCARDED,
    events.TEXT_WRITTEN,
    events.MESSAGE_SENT,
    events.POST_WEIGHED,
}
"""Events that are logged only for the agents that the log covers."""


@dataclass(slots=True)
class Turn:
    """A turn that is under way, and the events that it has logged.

    Args:
        agent: The agent.
        tick: The tick, counted from the beginning of the run.
        moment: Its time.
        lines: Level, name and keys of each event.
    """

    agent: Any
    tick: int
    moment: Moment
    lines: list[tuple[Level, str, Mapping[str, Any]]] = field(default_factory=list)


UNDER_WAY: ContextVar[Turn | None] = ContextVar("prism_turn", default=None)
"""The turn whose task is running, if agents are ahead of each other."""


class Events(Recorder):
    """Writes the events of a run; those of setup follow those that begin the run.

    It is also the logger of the run's charts and reasoners if the log covers some agents alone, or
    if agents are ahead of each other, whose events are written when all earlier turns are over.

    Args:
        logger: Where they go.
        clock: The run's clock.
        relays: Whether all events pass through here.

    Attributes:
        relays: As given.
        logger: The logger of the run's charts and reasoners.
        covered: Ids of the agents that the log covers; None for all.
    """

    def __init__(self, logger: EventLogger | None, clock: SimulatedClock, *, relays: bool) -> None:
        self.relays: bool = relays
        self.logger: Any = self if relays else logger
        self.covered: frozenset[str] | None = None
        self._logger, self._clock = logger, clock
        self._buffer: list[tuple[str, dict[str, Any]]] | None = []

    @property
    def are_heard(self) -> bool:
        """Whether anybody listens."""
        return is_heard(self.logger)

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

    def joined(self, agent: Any, parent: Any = None) -> None:
        """Log that an agent has joined, and who bore it."""
        keys = {
            "agent_id": agent.agent_id,
            "chart": agent._kind.chart.name,
            "display_name": agent.name,
            "state": state_text(agent.state),
            **agent.described(),
            **({} if parent is None else {"parent": parent.agent_id}),
        }
        report(self.logger, "info", events.AGENT_JOINED, keys)

    def left(self, agent: Any, ticks: int) -> None:
        """Log that an agent has left, after some ticks in its state."""
        chart = agent._kind.chart.name
        about = {"chart": chart, "state": state_text(agent.state), "ticks_in_state": ticks}
        self.emit(events.AGENT_LEFT, agent_id=agent.agent_id, **about)

    def picture(self, keys: Mapping[str, Any]) -> None:
        """Log a picture of the agents, unless it is empty."""
        if keys:
            self.emit(events.AGENTS_PICTURED, **keys)

    def emit(self, event: str, **keys: Any) -> None:
        """Log an event of the run."""
        report(self.logger, "info", event, keys)

    # As a logger

    def write(self, turn: Turn) -> None:
        """Write the events of a turn."""
        with self._clock.at(turn.moment):
            for level, event, keys in turn.lines:
                report(self._logger, level, event, keys)

    def record(self, level: Level, event: str, keys: Mapping[str, Any]) -> None:
        """Write an event that the log covers, or keep it if a turn is under way."""
        covered, turn = self.covered, UNDER_WAY.get()
        if covered is not None and event in _OF_AN_AGENT and keys["agent_id"] not in covered:
            return
        if turn is None:
            report(self._logger, level, event, keys)
        else:
            turn.lines.append((level, event, keys))

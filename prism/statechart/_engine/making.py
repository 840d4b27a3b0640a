"""How a transition is made: its actions, its commit, and what waits for its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import get_ident
from types import CoroutineType
from typing import Any

from prism.errors import RunawayError
from prism.statechart._definition import Definition
from prism.statechart._engine import writing
from prism.statechart._engine.checks import Checks
from prism.statechart._engine.machine import refuse_coroutine
from prism.statechart.names import agent_name
from prism.statechart.reporting import Reporter
from prism.statechart.transitions import Edge, StateT
from prism.telemetry.events import ACTION_FAILED
from prism.telemetry.loggers import somebody_listens

MOST_QUEUED_FIRES = 1000
"""Fires, or steps without an event, that may follow one fire before the engine stops them."""


@dataclass(slots=True)
class Run:
    """A transition that is under way, and the fires that wait for its end.

    Args:
        thread: The thread that makes it.
        queue: The fires that wait, each with its trigger.
        is_between: Whether one of the fires that waited is next, so that it need not wait.
    """

    thread: int
    queue: deque[tuple[object, Callable[[], object]]] = field(default_factory=deque)
    is_between: bool = False


class Faults(list[Exception]):
    """Errors in a strict chart that keep nothing else from being made."""

    def keep(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function; if it raises, keep the error and return None."""
        try:
            return make(*arguments)
        except Exception as error:
            self.append(error)
            return None

    def raise_first(self) -> None:
        """Raise the first error, if there is one."""
        if self:
            raise self[0]


class Making(Checks[StateT]):
    """Makes the transitions of one definition; everything that changes lives in the agents.

    Args:
        definition: What to run.
        reporter: Where to report.
        clock: Returns the current time in seconds since the epoch.
    """

    def __init__(
        self, definition: Definition[StateT], reporter: Reporter, clock: Callable[[], float]
    ) -> None:
        super().__init__(definition)
        self._reporter = reporter
        self._has_logger = reporter.logger is not None
        self._clock = clock
        # transitions that are under way, by the address of the agent
        self._firing: dict[int, Run] = {}
        self._edges: dict[tuple[Any, Any, str], Edge] = {}
        self._writers: dict[type, writing.Writer] = {}
        self._quiet_writers: dict[type, writing.Writer] = {}

    # One after the other

    def _is_queued(self, agent: Any, trigger: Any, fire: Callable[[], object]) -> bool:
        """Let a fire wait, if a transition of its agent is under way."""
        run = self._firing.get(id(agent))
        if run is None or run.is_between:
            return False
        self._require_one_thread(agent, run.thread)
        # a mistaken event is reported where it is fired, not where its turn comes
        self._require_trigger(trigger)
        run.queue.append((trigger, fire))
        return True

    def _complete(self, agent: Any, make: Callable[[], Any]) -> Any:
        """Make a transition and everything that its actions queue, until the agent is at rest."""
        key, own = id(agent), Run(get_ident())
        run = self._firing.setdefault(key, own)
        if run is not own:
            self._require_one_thread(agent, run.thread)
            run.is_between = False
            return make()

        try:
            made = make()
            if own.queue:
                self._drain(agent, own)
            return made
        finally:
            del self._firing[key]

    def _drain(self, agent: Any, run: Run) -> None:
        """Run the fires that wait, and those that they add."""
        fired = 0
        while run.queue:
            trigger, fire = run.queue.popleft()
            fired += 1
            if fired > MOST_QUEUED_FIRES:
                raise RunawayError(
                    f"chart {self.name!r}: the actions of agent {agent_name(agent)!r} fired "
                    f"{MOST_QUEUED_FIRES} more events without coming to rest; the last was "
                    f"{trigger!r}: make one of the actions stop firing"
                )
            run.is_between = True
            fire()

    # Actions, and the commit

    def _run_action(self, action: Any, agent: Any, edge: Edge, context: Any) -> None:
        """Run an action, and report one that fails."""
        try:
            result = action(agent, context)
            if result.__class__ is CoroutineType:
                refuse_coroutine(result, f"the action of {edge.trigger!r}")
        except Exception as error:
            self._reporter.failed(ACTION_FAILED, error, agent, edge)

    def _commit(self, agent: Any, edge: Edge, write: writing.Writer, context: Any) -> None:
        """Write what a transition leaves behind; it starts from where actions put the agent."""
        state = agent.state
        if state != edge.from_state:
            edge = self._edge(self._member(state), edge.to_state, edge.trigger)
        self._write(agent, edge, write, context)

    def _write(self, agent: Any, edge: Edge, write: writing.Writer, context: Any) -> None:
        """Write a transition and report it; a self-transition restarts the state's time."""
        if edge.leaves is None:
            writing.restart_time(agent)
            return
        dwell = write(agent, edge, self._clock(), context)
        if self._has_logger or somebody_listens():
            self._reporter.moved(agent, edge, dwell, context)

    def _edge(self, source: Any, target: Any, trigger: str) -> Edge:
        """Return the part that all records of a transition share."""
        key = source, target, trigger
        edge = self._edges.get(key)
        if edge is None:
            edge = self._edges[key] = Edge(source, target, trigger)
        return edge

    def _writer_of(self, agent: Any) -> writing.Writer:
        cls = type(agent)
        if cls not in self._writers:
            writer = self._writers[cls] = writing.writer_of(agent)
            if writing.writes_quietly(cls, writer):
                self._quiet_writers[cls] = writer
        return self._writers[cls]

"""How a transition is made: who it is made for, its actions, its commit, and what waits for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from threading import get_ident
from types import CoroutineType
from typing import Any, Generic

from prism.errors import AgentError, RunawayError, UnknownStateError, UnknownTriggerError
from prism.statechart._definition import Definition
from prism.statechart._engine import writing
from prism.statechart._engine.machine import refuse_coroutine
from prism.statechart.names import agent_name, unknown_trigger_problem
from prism.statechart.reporting import Reporter
from prism.statechart.states import SEPARATOR, state_text
from prism.statechart.transitions import Edge, StateT
from prism.telemetry.events import ACTION_FAILED
from prism.telemetry.loggers import somebody_listens, warn_standard

MOST_QUEUED_FIRES = 1000
"""Fires, or steps without an event, that may follow one fire before the engine stops them."""

_MOST_WARNED = 100
"""Unknown triggers of which a chart warns; where events are data there is no end of them."""


@dataclass(slots=True)
class Run:
    """A transition that is under way, and the fires that wait for its end.

    Args:
        thread: The thread that makes it.
        queue: The fires that wait, each with its trigger.
        is_between: Whether one of the fires that waited is next, so that it need not wait.
        errors: Those of a strict chart that keep nothing else from being made; None while an error
            is raised at once.
    """

    thread: int
    queue: deque[tuple[object, Callable[[], object]]] = field(default_factory=deque)
    is_between: bool = False
    errors: list[Exception] | None = None


class Making(Generic[StateT]):
    """Makes the transitions of one definition; everything that changes lives in the agents.

    Args:
        definition: What to run.
        reporter: Where to report.
        clock: Returns the current time in seconds since the epoch.
    """

    # what runs a flat chart, and what runs one with composites; None for the other kind
    _machine: Any = None
    _steps: Any = None
    # by state; its keys are the states of agents
    _rows: Any
    # where agents have their state
    _attribute = "state"

    def __init__(
        self, definition: Definition[StateT], reporter: Reporter, clock: Callable[[], float]
    ) -> None:
        self._definition = definition
        self._warned_of: set[str] = set()
        self._reporter = reporter
        self._has_logger = reporter.logger is not None
        self._clock = clock
        # transitions that are under way, by the address of the agent
        self._firing: dict[int, Run] = {}
        self._edges: dict[tuple[Any, Any, str], Edge] = {}
        self._writers: dict[type, writing.Writer] = {}
        # None for a class of which writing runs code of the application's
        self._quiet_writers: dict[type, writing.Writer | None] = {}

    # What it is made for

    @property
    def definition(self) -> Definition[StateT]:
        """The definition of the chart."""
        return self._definition

    @property
    def name(self) -> str:
        """Name in logs and messages."""
        return self._definition.name

    @property
    def _triggers(self) -> Collection[str]:
        """The events that the chart knows, in definition order."""
        machine = self._machine
        return self._definition.hierarchy.triggers if machine is None else machine.events

    def _require_trigger(self, trigger: Any) -> None:
        """Refuse a trigger that no transition has, or warn of it, once."""
        if isinstance(trigger, str) and (
            trigger in self._triggers or self._definition.hierarchy.reacts_to(trigger)
        ):
            return
        problem = f"chart {self.name!r}: {unknown_trigger_problem(trigger, self._triggers)}"
        if self._definition.strict:
            raise UnknownTriggerError(problem)
        if problem not in self._warned_of and len(self._warned_of) < _MOST_WARNED:
            self._warned_of.add(problem)
            warn_standard(problem)

    def _value(self, agent: Any) -> Any:
        """Return an agent's state, as the agent has it."""
        return getattr(agent, self._attribute)

    def can_be_in(self, state: object) -> bool:
        """Return whether an agent of this chart can be in a state, which may be a text."""
        return state in self._rows

    def _require_known_state(self, agent: Any) -> Any:
        try:
            state = self._value(agent)
        except AttributeError as error:
            # a property of that name may lack something else
            if error.obj is not agent or error.name != self._attribute:
                raise
            raise AgentError(
                f"chart {self.name!r}: {type(agent).__name__} has no 'state': give the class one, "
                "which may be a property, or call  chart.adopt(agent)  first"
            ) from error
        # a member of another enum is found, too, if it has the text of a state
        kind = self._definition.state_type
        is_foreign = type(state) is not kind and isinstance(state, Enum)
        if not is_foreign and self.can_be_in(state):
            return state

        subject = f"agent {agent_name(agent)!r} is in state {state!r}, which"
        if is_foreign:
            subject += (
                f" is no member of {kind.__module__}.{kind.__qualname__} (set  state_type = "
                "chart.state_type  in the agent's class), and"
            )
        raise self._unknown_state(subject)

    def _unknown_state(self, subject: str) -> UnknownStateError:
        listing = ", ".join(map(state_text, self._definition.states))
        if self._definition.hierarchy.has_regions:
            listing += f", or a configuration with one leaf per region, joined by {SEPARATOR!r}"
        return UnknownStateError(f"{subject} is not in chart {self.name!r}: use one of {listing}")

    def _require_one_thread(self, agent: Any, thread: int) -> None:
        if thread != get_ident():
            raise AgentError(
                f"chart {self.name!r}: another thread is making a transition of agent "
                f"{agent_name(agent)!r}: an agent belongs to one thread at a time, so fire from "
                "that thread, or use a lock"
            )

    # Where agents are

    def state_of(self, text: str) -> StateT:
        """Return the state of an agent that a text stands for: a member, or a `Configuration`.

        Args:
            text: The text of a leaf, or of several that are active together, ``"feed+tired"``.

        Raises:
            UnknownStateError: If no agent of this chart can be in it.
        """
        if not self.can_be_in(text):
            raise self._unknown_state(f"state {text!r}")
        state: StateT = self._member(text)
        return state

    def _member(self, state: Any) -> Any:
        """Return a state as the chart has it, for which an agent may have its text."""
        if type(state) is not str or not self.can_be_in(state):
            return state
        if self._steps is not None:
            return self._steps.rows.place(state).state
        return self._machine.values[state].value

    def is_in(self, agent: Any, state: StateT) -> bool:
        """Return whether a state is active: the agent's own, or one around it."""
        active = self.active(self._require_known_state(agent))
        return state_text(state) in map(state_text, active)

    def active(self, state: Any) -> tuple[StateT, ...]:
        """Return an agent's state with all states around it, outermost first."""
        member = self.state_of(state)
        if self._steps is None:
            return (member,)
        nodes = self._steps.rows.tree.nodes
        return tuple(nodes[number].state for number in sorted(self._rows.place(member).active))

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
        key, new_run = id(agent), Run(get_ident())
        run = self._firing.setdefault(key, new_run)
        if run is not new_run:
            self._require_one_thread(agent, run.thread)
            run.is_between = False
            return make()

        try:
            made = make()
            if new_run.queue:
                self._drain(agent, new_run)
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
            self._fail(ACTION_FAILED, error, agent, edge)

    def _fail(self, event: str, error: Exception, agent: Any, edge: Edge) -> None:
        """Report a guard or an action that raised; a strict chart raises it, now or in the end."""
        run = self._firing.get(id(agent))
        if run is None or run.errors is None or not self._definition.strict:
            self._reporter.failed(event, error, agent, edge)
        else:
            run.errors.append(error)

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
            self._quiet_writers[cls] = writing.quiet_writer(cls, writer)
        return self._writers[cls]

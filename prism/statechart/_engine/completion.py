"""One event after the other: what a chart knows of an agent, and how it runs to completion.

A fire inside an action waits until the transition is made that the action belongs to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from threading import get_ident
from types import CoroutineType
from typing import Any, Generic

from prism import errors
from prism.statechart._definition import Definition
from prism.statechart._engine import writing
from prism.statechart._engine.machine import refuse_coroutine
from prism.statechart.names import agent_name, unknown_trigger_problem
from prism.statechart.reporting import Reporter
from prism.statechart.states import SEPARATOR, is_text, state_text
from prism.statechart.transitions import Edge, StateT, shared_edge
from prism.telemetry.events import ACTION_FAILED
from prism.telemetry.loggers import EventLogger, somebody_listens, warn_standard

MOST_STEPS = 1000
"""Fires, and steps without an event, that may follow one fire before the engine stops them."""

_MOST_WARNED = 100
"""Unknown triggers of which a chart warns; where events are data there is no end of them."""


@dataclass(slots=True)
class Run:
    """A transition that is under way, and the fires that wait for its end.

    Args:
        thread: The thread that makes it.
        queue: The fires that wait, each with its trigger.
        is_between: Whether one of the fires that waited is next, so that it need not wait.
        steps: How many fires and steps have followed.
        errors: Those of a strict chart that keep nothing else from being made; None while an error
            is raised at once.
    """

    thread: int
    queue: deque[tuple[object, Callable[[], object]]] = field(default_factory=deque)
    is_between: bool = False
    steps: int = 0
    errors: list[Exception] | None = None


class RunToCompletion(Generic[StateT]):
    """Lets each agent make one transition after the other.

    Args:
        definition: The chart.
        logger: Where to report; None for structlog's own, once it is configured.
        clock: Returns the current time in seconds since the epoch.

    Attributes:
        name: Name in logs and messages.
    """

    # what runs a flat chart; None for one with composites
    _machine: Any = None
    # the states of agents, by what agents have as their state
    _rows: Any
    state_attribute: str = "state"
    """The attribute in which agents have their state."""

    def __init__(
        self, definition: Definition[StateT], logger: EventLogger | None, clock: Callable[[], Any]
    ) -> None:
        self._definition = definition
        self.name: str = definition.name
        self._reporter, self._has_logger = Reporter(self.name, logger), logger is not None
        self._clock = clock
        self._warned_of: set[str] = set()
        # transitions that are under way, by the address of the agent
        self._firing: dict[int, Run] = {}
        self._writers: dict[type, tuple[writing.Writer, bool]] = {}

    # Its events

    @property
    def _triggers(self) -> Collection[str]:
        """The events that the chart knows, in definition order."""
        machine = self._machine
        return self._definition.hierarchy.triggers if machine is None else machine.events

    def _has_trigger(self, trigger: Any) -> bool:
        """Return whether any transition has a trigger; refuse one that none has, or warn once.

        A trigger that the Machine has lost is no mistake: no state reacts to it.
        """
        is_written = self._definition.hierarchy.reacts_to
        if isinstance(trigger, str) and (is_written(trigger) or trigger in self._triggers):
            return True
        problem = f"chart {self.name!r}: {unknown_trigger_problem(trigger, self._triggers)}"
        if self._definition.strict:
            raise errors.UnknownTriggerError(problem)
        if problem not in self._warned_of and len(self._warned_of) < _MOST_WARNED:
            self._warned_of.add(problem)
            warn_standard(problem)
        return False

    def _value(self, agent: Any) -> Any:
        """Return an agent's state, as the agent has it."""
        return getattr(agent, self.state_attribute)

    def can_be_in(self, state: object) -> bool:
        """Return whether an agent of this chart can be in a state, which may be a text."""
        return state in self._rows

    def _require_state(self, agent: Any) -> Any:
        state = self._value(agent)
        # a member of another enum is found, too, if it has the text of a state
        is_foreign = isinstance(state, Enum) and type(state) is not self._definition.state_type
        if is_foreign or not self.can_be_in(state):
            raise self._unknown_state(f"agent {agent_name(agent)!r} is in state {state!r}, which")
        return state

    def _unknown_state(self, subject: str) -> errors.UnknownStateError:
        listing = ", ".join(map(state_text, self._definition.states))
        if self._definition.hierarchy.has_regions:
            listing += f", or a configuration with one leaf per region, joined by {SEPARATOR!r}"
        return errors.UnknownStateError(
            f"{subject} is not in chart {self.name!r}: use a member of chart.state_type ({listing})"
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
        return self._member(text)

    def _member(self, state: Any) -> StateT:
        """Return a state as the chart has it, for which an agent may have its text."""
        is_known = is_text(state) and self.can_be_in(state)
        member: StateT = self._rows[state].value if is_known else state
        return member

    def is_in(self, agent: Any, state: StateT) -> bool:
        """Return whether a state is active: the agent's own, or one around it."""
        return state_text(state) in map(state_text, self.active(self._require_state(agent)))

    def active(self, state: Any) -> tuple[StateT, ...]:
        """Return an agent's state with all states around it, outermost first."""
        row = self._rows[self.state_of(state)]
        # a state of a Machine has none around it
        return getattr(row, "around", (row.value,))

    # One after the other

    def _is_queued(self, fire: Callable[..., Any], agent: Any, trigger: Any, *more: Any) -> bool:
        """Let a fire with these arguments wait, if a transition of its agent is under way."""
        if (run := self._firing.get(id(agent))) is None or run.is_between:
            return False
        if run.thread != get_ident():
            problem = "is in a transition of another thread: fire from that thread, or use a lock"
            raise errors.AgentError(f"chart {self.name!r}: agent {agent_name(agent)!r} {problem}")
        # a mistaken event is reported where it is fired, not where its turn comes
        self._has_trigger(trigger)
        run.queue.append((trigger, partial(fire, agent, trigger, *more)))
        return True

    def _complete(self, agent: Any, make: Callable[[], Any]) -> Any:
        """Make a transition and everything that its actions queue, until the agent is at rest."""
        key = id(agent)
        if (run := self._firing.get(key)) is not None:
            run.is_between = False
            return make()

        run = self._firing[key] = Run(get_ident())
        try:
            made = make()
            while run.queue:
                trigger, fire = run.queue.popleft()
                self._count_step(agent, run, trigger)
                run.is_between, run.errors = True, None
                fire()
            return made
        finally:
            del self._firing[key]

    def _count_step(self, agent: Any, run: Run, trigger: object) -> None:
        run.steps += 1
        if run.steps > MOST_STEPS:
            name = f"chart {self.name!r}: agent {agent_name(agent)!r}"
            problem = f"does not rest in {MOST_STEPS} steps, the last of which was {trigger!r}"
            cure = "make an action stop firing, or guard the eventless transitions"
            raise errors.RunawayError(f"{name} {problem}: {cure}")

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
        if not self._definition.strict:
            self._reporter.failed(event, error, agent, edge)
        elif run is None or run.errors is None:
            raise error
        else:
            run.errors.append(error)

    def _commit(self, agent: Any, edge: Edge, context: Any) -> None:
        """Write what a transition leaves behind; it starts from where actions put the agent."""
        state = agent.state
        if state != edge.from_state:
            edge = shared_edge(self._member(state), edge.to_state, edge.trigger)
        self._write(agent, edge, self._writers[type(agent)][0], context)

    def _write(self, agent: Any, edge: Edge, write: writing.Writer, context: Any) -> None:
        """Write a transition and report it; a self-transition restarts the state's time."""
        if edge.leaves is None:
            writing.restart_time(agent)
            return
        dwell = write(agent, edge, self._clock(), context)
        if self._has_logger or somebody_listens():
            self._reporter.moved(agent, edge, dwell, context)

    def _require_writer(self, agent: Any) -> None:
        """Refuse an agent that the chart cannot drive, before any action runs."""
        if type(agent) not in self._writers:
            self._writers[type(agent)] = writing.writer_of(agent)

"""Checks of an agent and its event before a transition is chosen."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from threading import get_ident
from typing import Any, Generic

from prism.errors import AgentError, UnknownStateError, UnknownTriggerError
from prism.statechart._definition import Definition
from prism.statechart.names import agent_name, unknown_trigger_problem
from prism.statechart.states import SEPARATOR, state_text
from prism.statechart.transitions import StateT
from prism.telemetry.loggers import warn_standard

_MOST_WARNED = 100
"""Unknown triggers of which a chart warns; where events are data there is no end of them."""


class Checks(Generic[StateT]):
    """Refuses agents, states and triggers that do not belong to a definition.

    Args:
        definition: The chart's definition.
    """

    # what runs a flat chart, and what runs one with composites; None for the other kind
    _machine: Any = None
    _steps: Any = None
    # by state; its keys are the states of agents
    _rows: Any
    # where agents have their state
    _attribute = "state"

    def __init__(self, definition: Definition[StateT]) -> None:
        self._definition = definition
        self._warned_of: set[str] = set()

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
            raise self._no_state(agent) from error
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

    def _require_no_other_state(self, agent: Any) -> None:
        """Refuse to give a state to an object that has one under another name."""
        if not hasattr(agent, self._attribute) and self._other_name(agent):
            raise self._no_state(agent)

    def _other_name(self, agent: Any) -> str | None:
        """Return the name of an object's field that holds one of the chart's states."""
        texts = {*map(state_text, self._definition.states)}
        fields = getattr(agent, "__dict__", {}).items()
        for name, value in fields:
            if isinstance(value, (str, Enum)) and state_text(value) in texts:
                return str(name)
        return None

    def _no_state(self, agent: Any) -> AgentError:
        kind, other = type(agent).__name__, self._other_name(agent)
        cure = "give the class one, or call  chart.adopt(agent)  first"
        if other is not None:
            cure = (
                f"its {other!r} is {getattr(agent, other)!r}, so make  {kind}.state  a property "
                f"that reads and sets {other!r}"
            )
        return AgentError(f"chart {self.name!r}: {kind} has no 'state': {cure}")

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
        if not self.can_be_in(state):
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

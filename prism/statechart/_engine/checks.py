"""Checks of an agent and its event before a transition is chosen."""

from __future__ import annotations

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

    # by state; its keys are the states of agents
    _rows: Any
    # where agents have their state
    _attribute = "state"

    def __init__(self, definition: Definition[StateT]) -> None:
        self._definition = definition
        # a dict serves as a set that keeps the order of the definition
        self._triggers: dict[str, None] = definition.hierarchy.triggers
        self._warned_of: set[str] = set()

    @property
    def definition(self) -> Definition[StateT]:
        """The definition of the chart."""
        return self._definition

    @property
    def name(self) -> str:
        """Name in logs and messages."""
        return self._definition.name

    def _require_trigger(self, trigger: Any) -> None:
        """Refuse a trigger that no transition has, or warn of it, once."""
        is_trigger = isinstance(trigger, str) and (
            trigger in self._triggers or self._definition.hierarchy.reacts_to(trigger)
        )
        if is_trigger:
            return
        problem = unknown_trigger_problem(trigger, self._triggers)
        if self._definition.strict:
            raise UnknownTriggerError(f"chart {self.name!r}: {problem}")
        self._warn_once(repr(trigger), problem)

    def _warn_once(self, about: str, problem: str) -> None:
        if about in self._warned_of or len(self._warned_of) >= _MOST_WARNED:
            return
        self._warned_of.add(about)

        # loaded only for a message
        from prism._faults import calling_place

        place = calling_place()
        where = "" if place is None else f" ({place})"
        warn_standard(f"chart {self.name!r}: {problem}{where}")

    def _value(self, agent: Any) -> Any:
        """Return an agent's state, as the agent has it."""
        try:
            return getattr(agent, self._attribute)
        except AttributeError as error:
            raise AgentError(
                f"chart {self.name!r} cannot drive {type(agent).__name__!r}: it has no "
                f"{self._attribute!r} ({error}): give it one, or call chart.adopt(obj)"
            ) from None

    def can_be_in(self, state: object) -> bool:
        """Return whether an agent of this chart can be in a state, which may be a text."""
        try:
            return state in self._rows
        except TypeError:
            # no state is unhashable
            return False

    def _require_state(self, state: Any) -> None:
        if not self.can_be_in(state):
            raise self._unknown_state(f"state {state!r}")

    def _require_known_state(self, agent: Any) -> Any:
        state = self._value(agent)
        # a member of another enum is found, too, if it has the text of a state
        kind = self._definition.state_type
        is_foreign = type(state) is not kind and isinstance(state, Enum)
        if not is_foreign and self.can_be_in(state):
            return state

        subject = f"agent {agent_name(agent)!r} is in state {state!r}, which"
        if is_foreign:
            # two enums of one name are told apart by their modules
            other, own = (f"{e.__module__}.{e.__qualname__}" for e in (type(state), kind))
            subject += (
                f" is a member of {other}, not of {own} (set  state_type = chart.state_type  in "
                "the agent's class), and"
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

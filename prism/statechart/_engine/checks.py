"""What must hold of an agent and an event before anything is chosen."""

from __future__ import annotations

from enum import Enum
from threading import get_ident
from typing import Any, Generic

from prism.errors import UnknownStateError, UnknownTriggerError
from prism.statechart._definition import Definition
from prism.statechart._engine.arguments import (
    cannot_drive,
    foreign_problem,
    require_trigger,
    two_threads,
    unknown_trigger_problem,
)
from prism.statechart._engine.candidates import Candidate, Rows
from prism.statechart._identity import agent_name
from prism.statechart.states import state_text
from prism.statechart.transitions import StateT
from prism.telemetry._loggers import warn_standard

MOST_UNKNOWN_TRIGGERS = 100
"""Unknown triggers of which a chart warns; where events are data there is no end of them."""


class Checks(Generic[StateT]):
    """Refuses agents, states and triggers that do not belong to a definition.

    Args:
        definition: What the chart is.
        rows: Its transitions as candidates.
    """

    def __init__(self, definition: Definition[StateT], rows: Rows[StateT]) -> None:
        self._definition = definition
        self._rows = rows
        # a dict serves as a set that keeps the order of the definition
        self._triggers = dict.fromkeys(item.trigger for item in definition.transitions)
        self._unknown_triggers: set[str] = set()
        self._state_type = definition.state_type

    @property
    def definition(self) -> Definition[StateT]:
        """What the chart is."""
        return self._definition

    # Triggers

    def _require_trigger(self, trigger: Any, context: Any) -> None:
        """Refuse what stands in the wrong place, and say if no transition has the trigger."""
        if type(trigger) is str and trigger in self._triggers:
            return

        require_trigger(trigger, context, self._triggers, self._definition.initial)

        try:
            is_known = trigger in self._triggers
        except TypeError:
            # no trigger is unhashable
            is_known = False

        if is_known:
            return

        problem = (
            f"chart {self._definition.name!r}: {unknown_trigger_problem(trigger, self._triggers)}"
        )
        if self._definition.strict:
            raise UnknownTriggerError(problem)

        self._warn_once(repr(trigger), problem)

    def _warn_once(self, trigger: str, problem: str) -> None:
        found = self._unknown_triggers
        if trigger in found or len(found) >= MOST_UNKNOWN_TRIGGERS:
            return

        found.add(trigger)
        is_last = len(found) == MOST_UNKNOWN_TRIGGERS
        warn_standard(problem + (" (further ones are not reported)" if is_last else ""))

    # States

    def _state_of(self, agent: Any) -> Any:
        try:
            return agent.state
        except AttributeError as error:
            raise cannot_drive(self._definition.name, agent, error) from None

    def _require_known_state(self, agent: Any) -> Any:
        state = self._state_of(agent)
        try:
            is_known = state in self._rows
        except TypeError:
            # no state is unhashable
            is_known = False

        # a member of another enum is found, too, if it has the text of a state
        is_own = type(state) is self._state_type or not isinstance(state, Enum)
        if is_known and is_own:
            return state

        subject = f"agent {agent_name(agent)!r} is in state {state!r}, which"
        if is_known:
            raise UnknownStateError(f"{subject} is {foreign_problem(state, self._definition)}")
        raise self._unknown_state(subject)

    def _row(self, state: Any) -> dict[str, tuple[Candidate[StateT], ...]]:
        try:
            return self._rows[state]
        except (KeyError, TypeError):
            raise self._unknown_state(f"state {state!r}") from None

    def _unknown_state(self, subject: str) -> UnknownStateError:
        listing = ", ".join(map(state_text, self._definition.states))
        return UnknownStateError(
            f"{subject} is not in chart {self._definition.name!r}: use one of {listing}"
        )

    # Threads

    def _require_one_thread(self, agent: Any, thread: int) -> None:
        if thread != get_ident():
            raise two_threads(self._definition.name, agent, thread)

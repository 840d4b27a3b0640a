"""Checks of an agent and its event before a transition is chosen."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from enum import Enum
from threading import get_ident
from typing import Any, Generic

from prism.errors import AgentError, UnknownStateError, UnknownTriggerError
from prism.statechart._definition import Definition
from prism.statechart._engine.writing import IF_FROZEN, is_pydantic
from prism.statechart._identity import agent_name
from prism.statechart._nesting import SEPARATOR
from prism.statechart.states import state_text
from prism.statechart.transitions import StateT
from prism.telemetry.loggers import warn_standard

_MOST_LISTED = 20


def cannot_drive(chart: str, agent: object, error: AttributeError) -> AgentError:
    """Return the error for an object without a state.

    Args:
        chart: Name of the chart.
        agent: What was given as the agent.
        error: What reading its state raised.
    """
    kind = type(agent)
    ways = (
        "declare one as a field of the model"
        if is_pydantic(kind)
        else "give it one, call chart.adopt(obj), or derive its class from "
        "prism.agents.StatechartMixin"
    )
    return AgentError(
        f"chart {chart!r} cannot drive {kind.__name__!r}: it has no 'state' ({error}); {ways}; "
        f"{IF_FROZEN}"
    )


def is_foreign(state: object, chart: Definition[Any]) -> bool:
    """Return True for a member of another enum than the chart's, whatever its text."""
    return isinstance(state, Enum) and type(state) is not chart.state_type


def foreign_problem(state: Enum, chart: Definition[Any]) -> str:
    """Return what is wrong with a state of another enum, and what to do."""
    return (
        f"a member of {_full_name(type(state))}, but the states of chart {chart.name!r} are "
        f"members of {_full_name(chart.state_type)}; {_ONE_ENUM}; an agent has one state, so a "
        "second chart needs an agent of its own"
    )


def two_threads(chart: str, agent: object, other: int) -> AgentError:
    """Return the error for a fire while another thread makes a transition of the same agent.

    Args:
        chart: Name of the chart.
        agent: The agent.
        other: Identifier of the other thread.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return AgentError(
        f"chart {chart!r}: thread {threading.current_thread().name!r} fired on agent "
        f"{agent_name(agent)!r} while thread {names.get(other, str(other))!r} was making one of "
        "its transitions: an agent belongs to one thread at a time, so fire from that thread, or "
        "use a lock"
    )


_ONE_ENUM = (
    "use one enum for both: set  state_type = chart.state_type  in the agent's class, or make the "
    "chart over the agent's enum (Statechart.from_dict takes it as states=)"
)


def _full_name(enum: type[Enum]) -> str:
    # two enums of one name are told apart by their modules
    return f"{enum.__module__}.{enum.__qualname__}"


def unknown_trigger_problem(trigger: object, triggers: Iterable[str]) -> str:
    """Return what is wrong with a trigger that a chart does not have, and what may be meant."""
    return f"no transition has the trigger {trigger!r}{did_you_mean(trigger, list(triggers))}"


def did_you_mean(text: object, known: Sequence[str]) -> str:
    """Return the end of a message: the most similar of the known texts, or all that there are."""
    # loaded only for a message: it costs more than the engine's own modules
    from difflib import get_close_matches

    close = get_close_matches(text, known, n=1) if isinstance(text, str) else []
    if close:
        return f"; did you mean {close[0]!r}?"

    more = len(known) - _MOST_LISTED
    listing = ", ".join(known[:_MOST_LISTED]) or "none"

    return f": known are {listing}" + (f" and {more} more" if more > 0 else "")


MOST_UNKNOWN_TRIGGERS = 100
"""Unknown triggers of which a chart warns; where events are data there is no end of them."""


class Checks(Generic[StateT]):
    """Refuses agents, states and triggers that do not belong to a definition.

    Args:
        definition: The chart's definition.
    """

    _unknown_triggers: set[str]
    # by state, and then by trigger; its keys are the states of agents
    _rows: Any

    def __init__(self, definition: Definition[StateT]) -> None:
        self._definition = definition
        # a dict serves as a set that keeps the order of the definition
        self._triggers: dict[str, None] = definition.hierarchy.triggers
        self._state_type = definition.state_type

    @property
    def definition(self) -> Definition[StateT]:
        """The definition of the chart."""
        return self._definition

    # Triggers

    def _require_trigger(self, trigger: Any) -> None:
        """Say if no transition has the trigger."""
        if type(trigger) is str and trigger in self._triggers:
            return

        try:
            is_known = trigger in self._triggers
        except TypeError:
            # no trigger is unhashable
            is_known = False

        tree = self._definition.tree
        if is_known or (tree is not None and tree.reacts_to(trigger)):
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

        # loaded only for a message
        from prism._faults import calling_place

        found.add(trigger)
        if (place := calling_place()) is not None:
            problem += f" ({place})"
        is_last = len(found) == MOST_UNKNOWN_TRIGGERS
        warn_standard(problem + (" (no more unknown triggers will be reported)" if is_last else ""))

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

        if isinstance(agent, type):
            raise UnknownStateError(
                f"{agent.__name__} is a class: pass an agent, {agent.__name__}()"
            )

        subject = f"agent {agent_name(agent)!r} is in state {state!r}, which"
        if is_known or is_foreign(state, self._definition):
            raise UnknownStateError(f"{subject} is {foreign_problem(state, self._definition)}")
        raise self._composite(state, subject) or self._unknown_state(subject)

    def _composite(self, state: Any, subject: str) -> UnknownStateError | None:
        """Return the error for a composite as an agent's state; None for any other state."""
        tree = self._definition.tree
        if tree is None or not isinstance(state, str) or state_text(state) not in tree.tree.numbers:
            return None

        inside = ", ".join(map(state_text, tree.members_inside(state)))
        return UnknownStateError(
            f"{subject} is not a whole configuration of chart {self._definition.name!r}: an "
            f"agent is in one leaf of each region (here {inside}); chart.begin(agent) enters the "
            "initial state"
        )

    def _row(self, state: Any) -> Any:
        try:
            return self._rows[state]
        except (KeyError, TypeError):
            raise self._unknown_state(f"state {state!r}") from None

    def _unknown_state(self, subject: str) -> UnknownStateError:
        listing = ", ".join(map(state_text, self._definition.states))
        if self._definition.hierarchy.tree.has_regions:
            listing += f", or a configuration with one leaf per region, joined by {SEPARATOR!r}"
        return UnknownStateError(
            f"{subject} is not in chart {self._definition.name!r}: use one of {listing}"
        )

    def _require_own_state_type(self, agent: object) -> None:
        """Refuse an agent whose class declares the states of another chart."""
        kind, chart = type(agent), self._definition
        declared = getattr(kind, "state_type", None)
        if not isinstance(declared, type) or not issubclass(declared, Enum):
            return
        if declared is not chart.state_type:
            raise AgentError(
                f"chart {chart.name!r} cannot drive {kind.__name__!r}: its state_type is "
                f"{_full_name(declared)}, but the chart's states are members of "
                f"{_full_name(chart.state_type)}; {_ONE_ENUM}"
            )

    # Threads

    def _require_one_thread(self, agent: Any, thread: int) -> None:
        if thread != get_ident():
            raise two_threads(self._definition.name, agent, thread)

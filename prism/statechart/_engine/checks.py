"""Checks of an agent and its event before a transition is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from threading import get_ident
from typing import Any, Generic

from prism.errors import AgentError, UnknownStateError, UnknownTriggerError
from prism.statechart._definition import Definition
from prism.statechart._identity import agent_name
from prism.statechart._nesting import SEPARATOR
from prism.statechart.states import state_text
from prism.statechart.transitions import StateT
from prism.telemetry.loggers import warn_standard

_MOST_LISTED = 20
_MOST_WARNED = 100
"""Unknown triggers of which a chart warns; where events are data there is no end of them."""


def cannot_drive(chart: str, agent: object, error: AttributeError) -> AgentError:
    """Return the error for an object without a state.

    Args:
        chart: Name of the chart.
        agent: What was given as the agent.
        error: What reading its state raised.
    """
    return AgentError(
        f"chart {chart!r} cannot drive {type(agent).__name__!r}: it has no 'state' ({error}): give "
        "it one, or call chart.adopt(obj)"
    )


def is_foreign(state: object, chart: Definition[Any]) -> bool:
    """Return True for a member of another enum than the chart's, whatever its text."""
    return isinstance(state, Enum) and type(state) is not chart.state_type


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


class Checks(Generic[StateT]):
    """Refuses agents, states and triggers that do not belong to a definition.

    Args:
        definition: The chart's definition.
    """

    # by state, and then by trigger; its keys are the states of agents
    _rows: Any

    def __init__(self, definition: Definition[StateT]) -> None:
        self._definition = definition
        # a dict serves as a set that keeps the order of the definition
        self._triggers: dict[str, None] = definition.hierarchy.triggers
        self._warned_of: set[str] = set()

    @property
    def definition(self) -> Definition[StateT]:
        """The definition of the chart."""
        return self._definition

    def _require_trigger(self, trigger: Any) -> None:
        """Say if no transition has the trigger."""
        tree = self._definition.tree
        if isinstance(trigger, str) and (
            trigger in self._triggers or (tree is not None and tree.reacts_to(trigger))
        ):
            return

        problem = unknown_trigger_problem(trigger, self._triggers)
        if self._definition.strict:
            raise UnknownTriggerError(f"chart {self._definition.name!r}: {problem}")
        self._warn_once(repr(trigger), problem)

    def _warn_once(self, about: str, problem: str) -> None:
        if about in self._warned_of or len(self._warned_of) >= _MOST_WARNED:
            return
        self._warned_of.add(about)

        # loaded only for a message
        from prism._faults import calling_place

        place = calling_place()
        where = "" if place is None else f" ({place})"
        warn_standard(f"chart {self._definition.name!r}: {problem}{where}")

    def _state_of(self, agent: Any) -> Any:
        try:
            return agent.state
        except AttributeError as error:
            raise cannot_drive(self._definition.name, agent, error) from None

    def _require_known_state(self, agent: Any) -> Any:
        state = self._state_of(agent)
        try:
            # a member of another enum is found, too, if it has the text of a state
            if state in self._rows and not is_foreign(state, self._definition):
                return state
        except TypeError:
            # no state is unhashable
            pass

        if isinstance(agent, type):
            raise UnknownStateError(
                f"{agent.__name__} is a class: pass an agent, {agent.__name__}()"
            )
        subject = f"agent {agent_name(agent)!r} is in state {state!r}, which"
        if not is_foreign(state, self._definition):
            raise self._unknown_state(subject)
        # two enums of one name are told apart by their modules
        other, own = (
            f"{enum.__module__}.{enum.__qualname__}"
            for enum in (type(state), self._definition.state_type)
        )
        raise UnknownStateError(
            f"{subject} is a member of {other}, but the states of chart "
            f"{self._definition.name!r} are members of {own}: set  state_type = chart.state_type  "
            "in the agent's class, or make the chart over the agent's enum"
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

    def _require_one_thread(self, agent: Any, thread: int) -> None:
        if thread != get_ident():
            raise AgentError(
                f"chart {self._definition.name!r}: another thread is making a transition of agent "
                f"{agent_name(agent)!r}: an agent belongs to one thread at a time, so fire from "
                "that thread, or use a lock"
            )

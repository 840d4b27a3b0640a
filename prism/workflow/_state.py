"""An agent's state as plain data, as a host keeps it from one process to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from prism.errors import InputError
from prism.statechart import StateTransition
from prism.workflow._actions import ActionResult

STATE_KEY = "_state_machine"
"""Name in the context under which the state is kept."""


@dataclass(frozen=True, slots=True)
class MachineState:
    """Where an agent is, and how it got there.

    Args:
        current: Its state; None if it is not declared, or not said.
        undeclared: The state that was said and is not declared.
        history: The transitions between declared states, oldest first.
    """

    current: StrEnum | None
    undeclared: str | None = None
    history: tuple[StateTransition, ...] = ()

    @classmethod
    def read(cls, data: Any, states: type[StrEnum]) -> MachineState:
        """Read what stands under ``_state_machine``.

        A transition of a state that is no longer declared is left out of the history.

        Args:
            data: ``{"current_state", "history", "states"}``, of which only the first is needed.
            states: The states that the workflow declares now.

        Raises:
            InputError: If it is something else.
        """
        current = _get(data, "current_state", str, STATE_KEY)
        listed = _get(data, "history", list, STATE_KEY, [])
        declared = frozenset(state.value for state in states)
        history = tuple(
            transition
            for item in listed
            if (transition := _transition(item, states, declared)) is not None
        )
        if current not in declared:
            return cls(None, current, history)

        return cls(states(current), None, history)


@dataclass(frozen=True, slots=True)
class SavedAgent:
    """What `WorkflowAgent.to_dict` returned, checked.

    Args:
        agent_id: Its name.
        context: Its variables, and its state among them.
        turn_number: Turns so far.
        ticks_in_state: Turns since it came to its state.
        failure: Why the workflow stopped, if it did.
        actions: Actions so far.
        successes: Those that did not fail.
        action_history: The last of them.
    """

    agent_id: str
    context: dict[str, Any]
    turn_number: int = 0
    ticks_in_state: int = 0
    failure: str | None = None
    actions: int = 0
    successes: int = 0
    action_history: tuple[ActionResult, ...] = field(default=())

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> SavedAgent:
        """Read an agent's plain data.

        Raises:
            InputError: If it is something else; the message names the key.
        """
        history = _get(data, "action_history", list, "agent", [])

        return cls(
            agent_id=_get(data, "agent_id", str, "agent"),
            context=dict(_get(data, "context", dict, "agent", {})),
            turn_number=_count(data, "turn_number"),
            ticks_in_state=_count(data, "ticks_in_state"),
            failure=_get(data, "failure", str | None, "agent", None),
            actions=_count(data, "actions"),
            successes=_count(data, "successes"),
            action_history=tuple(map(_action_result, history)),
        )


def machine_data(
    state: StrEnum, history: list[StateTransition], states: type[StrEnum]
) -> dict[str, Any]:
    """Return what stands under ``_state_machine``."""
    return {
        "current_state": state.value,
        "history": [transition.to_dict() for transition in history],
        "states": [each.value for each in states],
    }


_NEEDED = object()


def _get(data: Any, name: str, kind: Any, owner: str, default: Any = _NEEDED) -> Any:
    if not isinstance(data, Mapping):
        raise InputError(f"must be a mapping, got {type(data).__name__}", field=owner)

    found = data.get(name, default)
    if found is _NEEDED:
        raise InputError("is missing", field=f"{owner}.{name}")
    if not isinstance(found, kind) or isinstance(found, bool):
        raise InputError(f"cannot be {str(found)[:60]!r}", field=f"{owner}.{name}")

    return found


def _count(data: Any, name: str) -> int:
    found = _get(data, name, int, "agent", 0)
    if found < 0:
        raise InputError(f"must be 0 or more, got {found}", field=f"agent.{name}")

    return int(found)


def _action_result(data: Any) -> ActionResult:
    owner = "agent.action_history"
    if not isinstance(data, Mapping) or not isinstance(data.get("succeeded"), bool):
        raise InputError("must be a list of actions and what came of them", field=owner)

    return ActionResult(
        dict(_get(data, "action", dict, owner)), data.get("result"), data["succeeded"]
    )


def _transition(data: Any, states: type[StrEnum], declared: frozenset[str]) -> Any:
    """Return a transition of the history; None if one of its states is not declared."""
    owner = f"{STATE_KEY}.history"
    ends = [_get(data, name, str, owner) for name in ("from_state", "to_state")]
    trigger = _get(data, "trigger", str, owner)
    try:
        when = datetime.fromisoformat(_get(data, "timestamp", str, owner))
    except ValueError:
        problem = f"cannot be {data['timestamp']!r}, which is no time"
        raise InputError(problem, field=f"{owner}.timestamp") from None

    if not declared.issuperset(ends):
        return None

    source, target = map(states, ends)
    context = _get(data, "context", dict | None, owner, None)

    return StateTransition(source, target, trigger, when, context)

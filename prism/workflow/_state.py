"""An agent's state as plain data, which a host keeps between two processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import ConfigDict, Field

from prism.files._source import Problems, Source
from prism.files.declarations import Declaration, shaped
from prism.statechart import StateTransition
from prism.workflow._actions import ActionResult

STATE_KEY = "_state_machine"
"""Name in the context under which the state is kept."""

_SavedT = TypeVar("_SavedT")


class _Saved(Declaration):
    """Data that another release may have written: unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore")


class _SavedTransition(_Saved):
    """A transition of the history."""

    from_state: str
    to_state: str
    trigger: str
    timestamp: datetime = Field(strict=False)
    context: dict[Any, Any] | None = None


class SavedMachine(_Saved):
    """The part that is saved under ``_state_machine``; its declared states are for people."""

    current_state: str
    history: list[_SavedTransition | str] = Field([])
    asked_last: str | None = None

    def transitions(self, states: type[StrEnum]) -> Iterator[StateTransition]:
        """Yield the transitions of the history whose states are declared.

        Entries that are only names have neither times nor events, and are left out, too.
        """
        declared = {state.value for state in states}
        for each in self.history:
            if isinstance(each, str) or not declared.issuperset((each.from_state, each.to_state)):
                continue
            source, target = states(each.from_state), states(each.to_state)
            yield StateTransition(source, target, each.trigger, each.timestamp, each.context)


class _SavedAction(_Saved):
    """An action and its result."""

    action: dict[Any, Any]
    result: Any = None
    succeeded: bool

    def to_result(self) -> ActionResult:
        """Return the result as agents have it."""
        return ActionResult(self.action, self.result, self.succeeded)


class SavedAgent(_Saved):
    """The result of `WorkflowAgent.to_dict`: its variables, with its state among them."""

    agent_id: str
    context: dict[Any, Any] = Field({})
    turn_number: int = Field(0, ge=0)
    ticks_in_state: int = Field(0, ge=0)
    failure: str | None = None
    actions: int = Field(0, ge=0)
    successes: int = Field(0, ge=0)
    action_history: list[_SavedAction] = Field([])


def read_saved(kind: type[_SavedT], data: Any, name: str) -> _SavedT:
    """Read saved data.

    Args:
        kind: What it is to be.
        data: The data.
        name: What it is called in messages.

    Raises:
        InputError: If it is something else; the message names every key that is wrong.
    """
    problems = Problems(Source.of(data))
    value = dict(data) if isinstance(data, Mapping) else data
    found = shaped(kind, value, problems, (name,))
    problems.raise_if_any()
    assert found is not None

    return found

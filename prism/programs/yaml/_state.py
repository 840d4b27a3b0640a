"""An agent's state as plain data, which a host keeps between two processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import ConfigDict, Field

from prism.files._source import Source
from prism.files.declarations import Declaration, read_document
from prism.programs.yaml._actions import ActionResult
from prism.statechart import StateTransition

STATE_KEY = "_state_machine"
"""Name in the context under which the state is kept."""

_SavedT = TypeVar("_SavedT")


class _Saved(Declaration):
    model_config = ConfigDict(extra="ignore")


class _SavedTransition(_Saved):
    from_state: str
    to_state: str
    trigger: str
    timestamp: datetime = Field(strict=False)
    context: dict[Any, Any] | None = None


class SavedMachine(_Saved):
    """What is kept under ``_state_machine``."""

    current_state: str
    history: list[_SavedTransition | str] = Field([])
    last_asked: str | None = None

    def transitions(self, states: type[StrEnum]) -> Iterator[StateTransition]:
        """Yield the transitions of the history whose states are declared."""
        declared = {state.value for state in states}
        for each in self.history:
            if isinstance(each, str) or not declared.issuperset((each.from_state, each.to_state)):
                continue
            source, target = states(each.from_state), states(each.to_state)
            yield StateTransition(source, target, each.trigger, each.timestamp, each.context)


class _SavedAction(_Saved):
    action: dict[Any, Any]
    result: Any = None
    succeeded: bool

    def to_result(self) -> ActionResult:
        """Return the result as agents have it."""
        return ActionResult(self.action, self.result, self.succeeded)


class SavedAgent(_Saved):
    """What `WorkflowAgent.to_dict` returns: its variables, with its state among them."""

    agent_id: str
    context: dict[Any, Any] = Field({})
    turn_number: int = Field(0, ge=0)
    ticks_in_state: int = Field(0, ge=0)
    failure: str | None = None
    actions: int = Field(0, ge=0)
    successes: int = Field(0, ge=0)
    action_history: list[_SavedAction] = Field([])


def read_saved(kind: type[_SavedT], data: Any) -> _SavedT:
    """Read saved data.

    Raises:
        InputError: If it is something else; the message names every key that is wrong.
    """
    return read_document(kind, Source.of(dict(data) if isinstance(data, Mapping) else data))

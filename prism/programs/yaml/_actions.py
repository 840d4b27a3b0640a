"""Actions that an llm step asks for, carried out by the host application."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from typing import Any

from prism.errors import FieldTypeError
from prism.programs.yaml._variables import as_data
from prism.telemetry.loggers import describe

MOST_SECONDS = 30.0
"""How long an action may take; a plain function cannot be interrupted."""

MOST_ACTIONS = 20
"""Entries of ``action_history``."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action that an agent wants to have carried out.

    Args:
        agent_id: The agent that wants it.
        key: Identifies it in the run.
        turn: Number of the turn, from 1.
        step: Name of the step that asked for it.
        action: The action as the model wrote it, plain data.
    """

    agent_id: str
    key: str
    turn: int
    step: str
    action: Mapping[str, Any]


OnAction = Callable[[Action], Any | Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action.

    Args:
        action: The action as the model wrote it.
        result: What the host returned, or why it failed.
        succeeded: Whether it succeeded.
    """

    action: Mapping[str, Any]
    result: Any
    succeeded: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, an entry of ``action_history``."""
        return asdict(self)


class Actions:
    """The actions of one agent, and their results.

    Args:
        on_action: The host's callback, plain or async; None if nobody carries out actions.

    Attributes:
        on_action: The host's callback.
        history: The last results, oldest first.
        number: How many actions there were.
        successes: How many of them succeeded.
    """

    def __init__(self, on_action: OnAction | None) -> None:
        self.on_action: OnAction | None = on_action
        self.history: deque[ActionResult] = deque(maxlen=MOST_ACTIONS)
        self.number: int = 0
        self.successes: int = 0

    @property
    def success_rate(self) -> float:
        """The share of actions that succeeded; 0 before the first."""
        return self.successes / self.number if self.number else 0.0

    def add(self, result: ActionResult) -> None:
        """Add the result of an action."""
        self.number += 1
        self.successes += result.succeeded
        self.history.append(result)

    async def carry_out(self, action: Action) -> dict[str, Any]:
        """Have the host carry out an action; return its result or failure as plain data."""
        # the host may change its copy: the log and the context have what the model wrote
        copy = replace(action, action=deepcopy(action.action))
        try:
            async with asyncio.timeout(MOST_SECONDS) as limit:
                returned = None if self.on_action is None else self.on_action(copy)
                result = await returned if inspect.isawaitable(returned) else returned
            return {"result": as_data(result, "result"), "succeeded": True}
        except FieldTypeError as error:
            reason = str(error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            reason = "cancelled itself"
        except Exception as error:  # of the host's code: the workflow goes on, and the log says so
            reason = f"took over {MOST_SECONDS:g} s" if limit.expired() else describe(error)
        return {"result": f"failed: {reason}", "succeeded": False}

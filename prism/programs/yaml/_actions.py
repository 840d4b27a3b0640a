"""Actions that an llm step asks for, carried out by the host application or by a command."""

from __future__ import annotations

import asyncio
import inspect
import os
import shlex
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import partial
from shutil import which
from typing import Any

import orjson

from prism.errors import FieldTypeError, FieldValueError, InputError, PrismError
from prism.files import parse_json
from prism.programs.yaml._variables import as_data
from prism.telemetry.loggers import describe

DEFAULT_ACTION_SECONDS = 30.0
MOST_ACTIONS = 20
"""Entries of ``action_history``."""

_FAILED = "failed: "
_MOST_BYTES = 1_000_000
_MOST_SHOWN = 200


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
        seconds: How long one action may take; a plain function cannot be interrupted.

    Attributes:
        history: The last results, oldest first.
        number: How many actions there were.
        successes: How many of them succeeded.
    """

    def __init__(self, on_action: OnAction | None, seconds: float) -> None:
        if not seconds > 0:
            raise FieldValueError(f"action_seconds must be above 0, got {seconds!r}")

        self.history: deque[ActionResult] = deque(maxlen=MOST_ACTIONS)
        self.number: int = 0
        self.successes: int = 0
        self.on_action: OnAction | None = on_action
        self._seconds = seconds

    @property
    def success_rate(self) -> float:
        """The share of actions that succeeded; 0 before the first."""
        return self.successes / self.number if self.number else 0.0

    @property
    def counts(self) -> dict[str, int]:
        """How many were ``done`` and how many ``failed``, without zeros."""
        counts = {"done": self.successes, "failed": self.number - self.successes}
        return {name: number for name, number in counts.items() if number}

    @property
    def last_failure(self) -> str | None:
        """Why the latest failed action of the history failed."""
        failed = (each.result for each in reversed(self.history) if not each.succeeded)
        return next((str(result).removeprefix(_FAILED) for result in failed), None)

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
            async with asyncio.timeout(self._seconds) as limit:
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
            reason = describe(error)
            if limit.expired():
                reason = f"took over {self._seconds:g} s"
        return {"result": _FAILED + reason, "succeeded": False}


class ActionError(PrismError, RuntimeError):
    """A command failed to carry out an action."""


async def echo(action: Action) -> Any:
    """Return an action as its own result."""
    return action.action


def by_command(command: str) -> Callable[[Action], Awaitable[Any]]:
    """Return a callback that has a command carry out each action.

    The command is started once for each action, without a shell. It reads the action as one line of
    JSON, ``{"agent_id", "key", "turn", "step", "action"}``, and writes its result as JSON; without
    output, the result is null. An exit status other than 0 is a failure.

    Args:
        command: The command and its arguments, quoted as for a shell.

    Raises:
        InputError: If there is no such command.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"{command!r} is not a command: {error}", field="action") from None
    if not words or which(words[0]) is None:
        raise InputError(f"there is no command {command!r}", field="action")

    return partial(_carried_out_by, words)


async def _carried_out_by(words: list[str], action: Action) -> Any:
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = await process.communicate(orjson.dumps(asdict(action)) + b"\n")
    finally:
        with suppress(ProcessLookupError, PermissionError):  # also what it has left running
            os.killpg(process.pid, signal.SIGKILL)

    if process.returncode:
        lines = err.decode(errors="replace").strip().splitlines()
        message = f": {lines[-1][:_MOST_SHOWN]}" if lines else ""
        raise ActionError(f"{words[0]} ended with status {process.returncode}{message}")
    if len(out) > _MOST_BYTES:
        raise ActionError(f"{words[0]} wrote more than {_MOST_BYTES:,} bytes")

    text = out.decode(errors="replace").strip()
    try:
        return parse_json(text) if text else None
    except InputError as error:
        raise ActionError(f"{words[0]} wrote a result that {error.problem}") from None

"""Actions that an llm step asks for, carried out by the host application or by a command."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import shlex
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import partial
from shutil import which
from threading import Thread
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from prism.errors import FieldTypeError, FieldValueError, InputError, PrismError
from prism.files import parse_json
from prism.telemetry.loggers import describe
from prism.workflow._threads import outcome_of, settle
from prism.workflow._variables import as_data

DEFAULT_ACTION_SECONDS = 30.0
MOST_ACTIONS = 20
"""Entries of ``action_history``."""

_FAILED = "failed: "


@dataclass(frozen=True, slots=True)
class Action:
    """An action that an agent wants to have carried out.

    Args:
        agent_id: The agent that wants it.
        key: Identifies it. The key stays the same if a turn is repeated after a run was killed, so
            that a host can tell that it has already carried out the action.
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
        on_action: The host's callback; None if nobody carries out actions. A plain function runs
            in a thread of its own, so that one that hangs blocks neither the event loop nor the
            end of the process.
        seconds: How long one action may take.

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
        self._on_action = on_action
        self._seconds = seconds

    @property
    def success_rate(self) -> float:
        """The share of actions that succeeded; 0 before the first."""
        return self.successes / self.number if self.number else 0.0

    @property
    def counts(self) -> dict[str, int]:
        """How many were ``done`` and how many ``failed``, without zeros."""
        found = {"done": self.successes, "failed": self.number - self.successes}
        return {name: number for name, number in found.items() if number}

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

    async def carry_out(self, action: Action) -> ActionResult | None:
        """Have the host carry out an action; return its result or failure; None without a host."""
        if self._on_action is None:
            return None
        # plain ones of one event loop run one after another, as they would without prism; the time
        # that one has begins when it is its turn
        own = _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with nullcontext() if _is_async(self._on_action) else own:
            return await self._timed(self._on_action, action)

    async def _timed(self, on_action: OnAction, action: Action) -> ActionResult:
        calling = asyncio.ensure_future(_called(on_action, action))
        try:
            # not asyncio.timeout, which waits for a callback that does not let itself be cancelled
            await asyncio.wait({calling}, timeout=self._seconds)
            if not calling.done():
                return _failed(action, f"took over {self._seconds:g} s")
        finally:
            calling.cancel()

        try:
            return ActionResult(action.action, as_data(calling.result(), "result"), succeeded=True)
        except asyncio.CancelledError:
            return _failed(action, "cancelled itself")
        except FieldTypeError as error:
            return _failed(action, str(error))
        except Exception as error:  # of the host's code: the workflow goes on, and the log says so
            return _failed(action, describe(error))


def _failed(action: Action, reason: str) -> ActionResult:
    return ActionResult(action.action, _FAILED + reason, succeeded=False)


async def _called(on_action: OnAction, action: Action) -> Any:
    # the host's own, as it may change it: the log and the context have what the model wrote
    action = replace(action, action=deepcopy(action.action))
    is_async = _is_async(on_action)
    returned = on_action(action) if is_async else await _in_thread(on_action, action)

    return await returned if inspect.isawaitable(returned) else returned


def _is_async(function: Any) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - to see whether it is async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


async def _in_thread(on_action: OnAction, action: Action) -> Any:
    outcome: Future[Any] = Future()
    # one a call, and a daemon: a callback that hangs is left behind
    called = partial(contextvars.copy_context().run, on_action, action)
    Thread(target=settle, args=(outcome, called), name="prism-action", daemon=True).start()

    return await outcome_of(outcome)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class ActionError(PrismError, RuntimeError):
    """A command failed to carry out an action."""


_MOST_BYTES = 1_000_000
_MOST_TOLD = 200


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
        _end(process)

    if process.returncode:
        lines = err.decode(errors="replace").strip().splitlines()
        said = f": {lines[-1][:_MOST_TOLD]}" if lines else ""
        raise ActionError(f"{words[0]} ended with status {process.returncode}{said}")
    if len(out) > _MOST_BYTES:
        raise ActionError(f"{words[0]} wrote more than {_MOST_BYTES:,} bytes")

    text = out.decode(errors="replace").strip()
    try:
        return parse_json(text) if text else None
    except InputError as error:
        raise ActionError(f"{words[0]} wrote a result that {error.problem}") from None


def _end(process: asyncio.subprocess.Process) -> None:
    """End what a command has left running, and the command itself if it took too long."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()

"""Actions that an llm step asks for, carried out by the host application."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from prism.errors import FieldTypeError
from prism.telemetry._loggers import describe
from prism.workflow._variables import as_data


@dataclass(frozen=True, slots=True)
class Action:
    """What an agent wants done.

    Args:
        agent_id: Who wants it.
        key: Its name, the same when a turn is repeated after a run was killed: a host that has
            carried it out already can tell.
        turn: The turn, counted from 1.
        step: Name of the step that asked for it.
        action: What the model wrote, plain data.
    """

    agent_id: str
    key: str
    turn: int
    step: str
    action: Mapping[str, Any]


OnAction = Callable[[Action], Any | Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What came of an action.

    Args:
        action: What the model wrote.
        result: What the host returned, or why it failed.
        succeeded: Whether it did not fail.
    """

    action: Mapping[str, Any]
    result: Any
    succeeded: bool

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, as an entry of ``action_history``."""
        return {
            "action": dict(self.action),
            "result": self.result,
            "succeeded": self.succeeded,
        }


async def carry_out(on_action: OnAction, action: Action, seconds: float) -> ActionResult:
    """Have the host carry out an action; its failure is a result.

    Args:
        on_action: The host's callback. A plain one runs in a thread of its own, so that one that
            hangs does not stop the event loop.
        action: What to do.
        seconds: How long it may take.
    """
    try:
        async with asyncio.timeout(seconds):
            returned = await _called(on_action, action)
        return ActionResult(action.action, as_data(returned, "result"), succeeded=True)
    except TimeoutError:
        return ActionResult(action.action, f"failed: took over {seconds:g} s", succeeded=False)
    except FieldTypeError as error:
        return ActionResult(action.action, f"failed: {error}", succeeded=False)
    except Exception as error:  # of the host's code: the workflow goes on, and the log says so
        return ActionResult(action.action, f"failed: {describe(error)}", succeeded=False)


async def _called(on_action: OnAction, action: Action) -> Any:
    if _is_async(on_action):
        return await on_action(action)

    loop = asyncio.get_running_loop()
    returned = await loop.run_in_executor(_threads(), on_action, action)

    return await returned if inspect.isawaitable(returned) else returned


def _is_async(function: Any) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - to see whether it is async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    # one: a host's plain callbacks run one after another, as they would without prism
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="prism-action")

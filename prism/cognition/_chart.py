"""The chart of the agent: three states, six triggers, and every action as a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from time import time
from typing import Any

from prism.cognition._settings import MEMORY_ACTIONS
from prism.statechart import Statechart, Transition
from prism.telemetry.loggers import EventLogger

CHART_NAME = "cognition"

THINK = "think"
EXECUTE = "execute"
ACTED = "acted"
OVERFLOW = "overflow"
PAGED = "paged"
FAULT = "fault"


class CognitiveState(StrEnum):
    """The states of a thinking agent."""

    THINKING = "thinking"
    EXECUTING = "executing"
    PAGING = "paging"


def cognitive_chart(
    actions: Iterable[str] = (),
    *,
    logger: EventLogger | None = None,
    clock: Callable[[], float] = time,
) -> Statechart[CognitiveState]:
    """Return the chart that drives a `CognitiveAgent`.

    The action of a transition does to the memory what the reply asks for. The chart is strict:
    exceptions in actions are bugs, and are raised.

    Args:
        actions: Names of the agent's actions besides those of the memory.
        logger: A structlog logger for transitions. None means structlog's own, once it is
            configured.
        clock: Returns the current time in seconds since the epoch.
    """
    thinking, executing, paging = CognitiveState
    notes = _does("note_thought")
    rows = [
        Transition(THINK, thinking, thinking, action=notes),
        Transition(EXECUTE, thinking, executing, action=notes),
        Transition(OVERFLOW, thinking, paging, action=notes),
        Transition(FAULT, thinking, thinking),
        *(
            Transition(ACTED, executing, thinking, _asks_for(name), _does(name, "act"))
            for name in (*MEMORY_ACTIONS, *actions)
        ),
        Transition(FAULT, executing, thinking),
        Transition(PAGED, paging, thinking, action=_does("page")),
    ]

    return Statechart(
        CognitiveState,
        rows,
        thinking,
        name=CHART_NAME,
        strict=True,
        needs=("pending", "memory"),
        logger=logger,
        clock=clock,
    )


def _asks_for(name: str) -> Callable[[Any, Any], bool]:
    def asks(agent: Any, _context: Any) -> bool:
        action = agent.pending.action
        return action is not None and action.type == name

    asks.__name__ = asks.__qualname__ = f"asks_for_{name}"
    return asks


def _does(name: str, method: str = "") -> Callable[[Any, Any], None]:
    """Return an action of the chart, which the cycle under way carries out."""

    def does(agent: Any, _context: Any) -> None:
        getattr(agent.pending, method or name)()

    does.__name__ = does.__qualname__ = name
    return does

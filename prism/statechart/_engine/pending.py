"""A transition that is under way, the fires that wait for its end, and faults that stop nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from prism.errors import RunawayError
from prism.statechart.names import agent_name

MOST_QUEUED_FIRES = 1000
"""Fires, or steps without an event, that may follow one fire before the engine stops them."""


@dataclass(slots=True)
class Run:
    """A transition that is under way, and the fires that wait for its end.

    Args:
        thread: The thread that makes it.
        queue: The fires that wait, each with its name for messages.
        is_between: Whether one of the fires that waited is next, so that it need not wait.
    """

    thread: int
    queue: deque[tuple[str, Callable[[], object]]] = field(default_factory=deque)
    is_between: bool = False


def drain(chart: str, agent: Any, run: Run) -> None:
    """Run the fires that wait, and those that they add.

    Raises:
        RunawayError: If they go on adding others without end.
    """
    fired = 0
    while run.queue:
        name, fire = run.queue.popleft()
        fired += 1
        if fired > MOST_QUEUED_FIRES:
            raise RunawayError(
                f"chart {chart!r}: the actions of agent {agent_name(agent)!r} "
                f"fired {MOST_QUEUED_FIRES} more events without coming to rest; the last was "
                f"{name}: make one of the actions stop firing"
            )
        run.is_between = True
        fire()


class Faults(list[Exception]):
    """Errors in a strict chart that keep nothing else from being made."""

    def keep(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function; if it raises, keep the error and return None."""
        try:
            return make(*arguments)
        except Exception as error:
            self.append(error)
            return None

    def raise_first(self) -> None:
        """Raise the first error, if there is one."""
        if self:
            raise self[0]

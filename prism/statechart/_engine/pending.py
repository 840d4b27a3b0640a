"""Fires that wait for a transition to end, and what a reasoner is asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from prism.errors import RunawayError
from prism.statechart.names import agent_name
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge


class Choice(NamedTuple):
    """A transition that an event enables.

    Args:
        target: The state it leads to.
        made_by: The Machine's transition; in a chart with composites, the candidate.
        edge: Its ends and trigger.
    """

    target: Any
    made_by: Any
    edge: Edge


# Fires behind a transition that is under way

MOST_QUEUED_FIRES = 1000
"""Fires that an agent's own actions may queue behind one fire before the engine stops them."""


class Run:
    """A transition that is under way, and the fires that wait for its end.

    Attributes:
        thread: The thread that makes it.
        queue: The fires that wait, each with its name for messages.
        active: Numbers of the states that are active while an action of a composite runs.
        is_between: Whether one of the fires that waited is next, so that it need not wait.
        raised: What the steps of a chart with composites have raised and not answered yet.
        answered: How many of the raised the step at hand answers.
    """

    # in the class, since most runs differ in nothing but their thread
    queue: deque[tuple[str, Callable[[], object]]] | tuple[()] = ()
    active: frozenset[int] | None = None
    is_between: bool = False
    raised: Sequence[str] = ()
    answered: int = 0

    thread: int = 0

    def add(self, name: str, fire: Callable[[], object]) -> None:
        """Let a fire wait."""
        # made late, since few actions queue anything
        if not isinstance(self.queue, deque):
            self.queue = deque()
        self.queue.append((name, fire))


def drain(chart: str, agent: Any, run: Run) -> None:
    """Run the fires that wait, and those that they add.

    Raises:
        RunawayError: If they go on adding others without end.
    """
    fired = 0
    while isinstance(run.queue, deque) and run.queue:
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
    run.is_between = False


def restless(chart: str, agent: Any) -> RunawayError:
    """Return the error for eventless transitions, or raised events, that go on without end."""
    return RunawayError(
        f"chart {chart!r}: agent {agent_name(agent)!r} did not settle within "
        f"{MOST_QUEUED_FIRES} steps; it is now in {state_text(agent.state)!r}: give the "
        "eventless transitions there a guard that ends them"
    )

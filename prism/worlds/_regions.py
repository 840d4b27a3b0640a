"""Agents of charts with regions: which states they are in, and what they do there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prism.worlds._agent_set import leaves_in
from prism.worlds._guest import act

if TYPE_CHECKING:
    from prism.statechart._hierarchy import Hierarchy

MOST_TURNS = 20_000
"""Number of configurations whose turns a run keeps."""

_Step = Callable[..., Any]


class Listing(list[Any]):
    """The agents in one state of a chart with regions, where each agent is in several states."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[int, int] = {}

    def append(self, agent: Any) -> None:
        """Add an agent."""
        self._places[agent._place] = len(self)
        super().append(agent)

    def remove(self, agent: Any) -> None:
        """Remove an agent, and put the last one in its place."""
        place, last = self._places.pop(agent._place), self.pop()
        if last is not agent:
            self[place] = last
            self._places[last._place] = place


class Turn:
    """An agent's turn in a chart with regions: the step of each region.

    A region has one step, that of the innermost state around its leaf, in the order of the chart. A
    region that has already moved in this tick has none.

    Args:
        steps: The steps, each with the leaves that it belongs to.
    """

    __slots__ = ("_steps",)

    def __init__(self, steps: Sequence[tuple[frozenset[Any], _Step]]) -> None:
        self._steps = steps

    def __call__(self, world: Any, agent: Any, *others: Any) -> Any:
        """Take one step after the other, and return what to await, if one waits."""
        for number, (leaves, step) in enumerate(self._steps, 1):
            if leaves.isdisjoint(leaves_in(agent._state)):
                continue

            running = step(world, agent, *others)
            if hasattr(running, "send") and number < len(self._steps):
                return self._wait(running, Turn(self._steps[number:]), world, agent, *others)
            if running is not None or agent._host.unawaited is not None:
                # the caller awaits it, or reports what is wrong with it
                return running

        return None

    async def _wait(self, running: Any, rest: Turn, *arguments: Any) -> None:
        await running
        following = rest(*arguments)
        if following is not None:
            await following


class Turns(dict[Any, Any]):
    """The turns of a chart with timers or regions, by state, made on demand.

    Args:
        tree: The chart's states.
        steps: The steps by state, either a leaf or one that contains it.
    """

    def __init__(self, tree: Hierarchy, steps: Mapping[Any, _Step]) -> None:
        super().__init__()
        self._tree = tree
        self._steps = steps

    def get(self, state: Any, default: Any = None) -> Any:
        """Return an agent's turn in a state, or the default if it has no step there."""
        if state not in self:
            if len(self) >= MOST_TURNS:
                self.clear()
            self[state] = self._put_together(state)

        return self[state] or default

    def _put_together(self, state: Any) -> Turn | None:
        taken: dict[Any, set[Any]] = {}
        for leaf in sorted(leaves_in(state), key=self._tree.leaves.index):
            owner = next((each for each in self._tree.around(leaf) if each in self._steps), None)
            if owner is not None:
                taken.setdefault(owner, set()).add(leaf)

        steps = [(frozenset(leaves), self._steps[owner]) for owner, leaves in taken.items()]
        return Turn(steps) if steps else None


class EveryState(dict[Any, _Step]):
    """The same step in every state, for objects whose chart has regions."""

    def get(self, state: Any, default: Any = None) -> Any:  # noqa: ARG002
        """Return the step."""
        return act

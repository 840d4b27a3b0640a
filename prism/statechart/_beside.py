"""What is kept beside an agent that has no room for it, or uses the name for something else."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any
from weakref import ref


@dataclass(slots=True)
class Beside:
    """What is kept beside one agent."""

    memory: dict[str, Any] = field(default_factory=dict)
    # None unless the agent's own history is something else
    records: deque[Any] | None = None
    # made for an agent without an id
    name: str | None = None
    # ends the entry with the agent
    life: object = None


_beside: dict[int, Beside] = {}
_held: dict[int, object] = {}
"""Agents to which there are no weak references, so that their addresses stay theirs."""

_MOST_HELD = 10_000


def kept_beside(agent: Any) -> Beside:
    """Return what is kept beside an agent, for as long as it lives."""
    key = id(agent)
    if key not in _beside:
        entry = _beside[key] = Beside()
        try:
            entry.life = ref(agent, lambda _: _beside.pop(key, None))
        except TypeError:
            _held[key] = agent
            if len(_held) > _MOST_HELD:
                oldest = next(iter(_held))
                del _held[oldest], _beside[oldest]
    return _beside[key]


def memory_beside(agent: Any) -> dict[str, Any]:
    """Return the memory that is kept beside an agent; an empty one if it is not kept there."""
    return _beside[id(agent)].memory if id(agent) in _beside else {}


def records_beside(agent: Any) -> deque[Any] | None:
    """Return the records that are kept beside an agent; None if they are not kept there."""
    return _beside[id(agent)].records if id(agent) in _beside else None

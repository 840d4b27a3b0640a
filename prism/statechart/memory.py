"""The memory that a chart keeps of an agent besides its state, and the ticks that pass in it.

The memory, ``state_memory``, is a dict of JSON values that only charts with histories or timers
use, and None until then::

    {"history": {"engaging": ["replying"]}, "ticks": {"engaging": 5}, "after": {"engaging": {...}}}

``ticks`` has how long active states have been so. ``after`` has the ticks that functions said for
time-outs, by state, and 0 for time-outs that came while their guards refused.
"""

from __future__ import annotations

import copyreg
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

from prism._numbers import plain_number
from prism.errors import AgentError


def field_of(agent: Any, name: str) -> Any:
    """Return a field; None if the object has none, or cannot be asked for what it lacks."""
    try:
        return getattr(agent, name, None)
    except Exception:
        return None


def count_of(agent: Any, name: str) -> int | None:
    """Return a field that holds a whole number; a mock's, or anything else, is none."""
    value = plain_number(field_of(agent, name))
    return value if type(value) is int else None


def in_row(agent: Any, name: str) -> bool:
    """Return whether a field is a column of a database row, which notices only what is assigned.

    Properties and slots, whose types are Python's own, are none.
    """
    column = getattr(type(agent), name, None)
    return hasattr(column, "__set__") and type(column).__module__ != "builtins"


def memory_of(agent: Any) -> dict[str, Any]:
    """Return what charts remember about an agent, as a dict that can be changed.

    It is kept beside an agent that has no room for it, or something else under that name.
    """
    if (memory := getattr(agent, "state_memory", None)) is None:
        # models refuse what they do not declare by errors of their own
        with suppress(Exception):
            agent.state_memory = memory = {}
            memory = agent.state_memory
    elif isinstance(memory, dict) and in_row(agent, "state_memory"):
        agent.state_memory = memory = deepcopy(memory)
    return memory if isinstance(memory, dict) else kept_beside(agent).memory


def remembered(agent: Any) -> dict[str, Any]:
    """Return what charts remember about an agent, which may be nothing, and change nothing."""
    memory = getattr(agent, "state_memory", None)
    return memory if isinstance(memory, dict) else beside_of(agent).memory


def random_of(agent: Any) -> Any:
    """Return the random numbers that a chart draws from.

    Raises:
        AgentError: If the agent has none.
    """
    numbers = getattr(agent, "chart_random", None) or getattr(agent, "random", None)
    if not hasattr(numbers, "random"):
        raise AgentError(f"{type(agent).__name__} needs agent.random, such as random.Random(seed)")
    return numbers


def remember(memory: dict[str, Any], plan: Any) -> None:
    """Remember what a step leaves and enters."""
    if plan.left:
        left = {text: [*leaves] for text, leaves in plan.left.items()}
        memory.setdefault("history", {}).update(left)
    if plan.stopped or plan.started:
        restart_times(memory, plan.stopped)
        memory.setdefault("ticks", {}).update(dict.fromkeys(plan.started, 0))


def restart_times(memory: dict[str, Any], states: Iterable[str] | None = None) -> None:
    """End the times of some states, by default of all, as of those that an application assigns."""
    for key in ("ticks", "after"):
        kept = memory.get(key, {})
        for state in [*kept] if states is None else states:
            kept.pop(state, None)


def forget(memory: dict[str, Any]) -> None:
    """Forget what charts remember about an agent; what an application keeps there stays."""
    for key in ("history", "ticks", "after"):
        memory.pop(key, None)


def count(memory: dict[str, Any], timed: Iterable[str]) -> None:
    """Let one tick pass in the active states whose time is kept; forget the time of all others.

    A state of whose entry nothing is known was assigned: its time begins with this tick.
    """
    ticks = memory.get("ticks", {})
    memory["ticks"] = {state: ticks.get(state, 0) + 1 for state in timed}
    if after := memory.get("after"):
        memory["after"] = {state: after[state] for state in memory["ticks"] if after.get(state)}


# Copies of an agent that was adopted


def copy_apart(cls: type) -> None:
    """Let copies of a class's objects have records and a memory of their own."""
    copyreg.dispatch_table.setdefault(cls, _taken_apart)


def _taken_apart(agent: Any) -> Any:
    reduced = agent.__reduce_ex__(4)
    fields = reduced[2] if len(reduced) > 2 else None
    if not isinstance(fields, dict):
        return reduced
    copiers = {"state_history": copy, "state_memory": deepcopy}
    copied = {name: copiers[name](value) for name, value in fields.items() if name in copiers}
    return *reduced[:2], {**fields, **copied}, *reduced[3:]


# What is kept beside an agent that has no room for it, or uses the name for something else


@dataclass(slots=True)
class Beside:
    """What is kept beside one agent."""

    memory: dict[str, Any] = field(default_factory=dict)
    # None unless the agent's own history is something else
    records: deque[Any] | None = None
    # made for an agent without an id
    name: str | None = None
    # ends the entry with the agent; or the agent, whose address stays its own, if nothing can
    life: object = None


_beside: dict[int, Beside] = {}


def kept_beside(agent: Any) -> Beside:
    """Return what is kept beside an agent, for as long as it lives."""
    key = id(agent)
    if key not in _beside:
        entry = _beside[key] = Beside()
        try:
            entry.life = ref(agent, lambda _: _beside.pop(key, None))
        except TypeError:
            entry.life = agent
    return _beside[key]


_NOTHING = Beside()


def beside_of(agent: Any) -> Beside:
    """Return what is kept beside an agent already, not to be changed."""
    return _beside.get(id(agent), _NOTHING)

"""The memory that a chart keeps of an agent besides its state: ``state_memory``.

It is a dict of JSON values that only charts with histories or timers use, and None until then::

    {"history": {"engaging": ["replying"]}, "ticks": 17, "entered": {"engaging": 12}}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from prism.errors import AgentError
from prism.statechart._engine.writing import IF_FROZEN, memory_beside
from prism.statechart._identity import name_or_number

if TYPE_CHECKING:
    from prism.statechart._tree.numbers import Notes, Tree

FIELD = "state_memory"


def memory_of(chart: str, agent: Any) -> dict[str, Any]:
    """Return what a chart remembers about an agent, as a dict that can be changed.

    Raises:
        AgentError: If the agent has no room for it.
    """
    try:
        memory = getattr(agent, FIELD)
        if memory is None:
            memory = {}
            setattr(agent, FIELD, memory)
    except AttributeError as error:
        raise AgentError(
            f"chart {chart!r} remembers histories or times of agent {name_or_number(agent)!r}, "
            f"which has no room for them ({error}): give its class a field  {FIELD} = None , call "
            f"chart.adopt(obj), or derive it from prism.agents.StatechartMixin; {IF_FROZEN}"
        ) from None

    # what a mock, or the application, has there is none of prism's
    return memory if isinstance(memory, dict) else memory_beside(agent)


def random_of(chart: str, agent: Any) -> Any:
    """Return the random numbers that a chart draws from: an agent's ``chart_random`` or ``random``.

    Raises:
        AgentError: If it has neither.
    """
    for name in ("chart_random", "random"):
        found = getattr(agent, name, None)
        if found is not None:
            return found

    raise AgentError(
        f"chart {chart!r} has rates or probabilities, but agent {name_or_number(agent)!r} has no "
        "random numbers: set  agent.random = random.Random(seed) , or any object with random()"
    )


def histories(memory: Mapping[str, Any], tree: Tree) -> dict[int, tuple[int, ...]]:
    """Return the leaves that histories stand for, as numbers; unknown states are left out."""
    numbers = tree.numbers
    return {
        numbers[text]: tuple(numbers[leaf] for leaf in leaves)
        for text, leaves in memory.get("history", {}).items()
        if text in numbers and all(leaf in numbers for leaf in leaves)
    }


def remember(memory: dict[str, Any], notes: Notes) -> None:
    """Remember what a step leaves and enters."""
    if notes.left:
        memory.setdefault("history", {}).update(
            (text, list(leaves)) for text, leaves in notes.left.items()
        )
    if notes.stopped or notes.started:
        entered, now = memory.setdefault("entered", {}), memory.setdefault("ticks", 0)
        for text in notes.stopped:
            entered.pop(text, None)
        entered.update(dict.fromkeys(notes.started, now))


def forget(memory: dict[str, Any]) -> None:
    """Forget everything that a chart remembers; what somebody else keeps there stays."""
    for key in ("history", "ticks", "entered"):
        memory.pop(key, None)


def count(memory: dict[str, Any], timed: Iterable[str]) -> None:
    """Let one tick pass in the active states whose time is kept.

    A state without a note of its entry was set, not entered: its time begins with this tick.
    """
    now = memory["ticks"] = memory.get("ticks", 0) + 1
    entered = memory.setdefault("entered", {})
    for text in timed:
        entered.setdefault(text, now - 1)

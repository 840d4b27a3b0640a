"""The memory that a chart keeps of an agent besides its state: ``state_memory``.

It is a dict of JSON values that only charts with histories or timers use, and None until then::

    {"history": {"engaging": ["replying"]}, "ticks": 17, "entered": {"engaging": 12}}

Two more keys are rare. ``after`` has the ticks that functions said for time-outs, by state, and
below 0 the time-outs that came while their guards refused. ``raised`` has what a strict chart has
not answered yet, since an action raised an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from prism.errors import AgentError
from prism.statechart._engine.writing import IF_FROZEN, memory_beside
from prism.statechart._identity import agent_name
from prism.statechart._nesting import leaf_texts
from prism.statechart._tree.numbers import CHART

if TYPE_CHECKING:
    from prism.statechart._definition import Definition
    from prism.statechart._tree.numbers import Notes, Tree

FIELD = "state_memory"


def memory_of(chart: Definition[Any], agent: Any) -> dict[str, Any]:
    """Return what a chart remembers about an agent, as a dict that can be changed.

    If the chart has no composites, it is kept beside an agent that has no room for it.

    Raises:
        AgentError: If the agent has no room for it.
    """
    try:
        memory = getattr(agent, FIELD)
        if memory is None:
            memory = {}
            setattr(agent, FIELD, memory)
    except AttributeError as error:
        problem = (
            f"which has no room for them ({error}): give its class a field  {FIELD} = None , call "
            f"chart.adopt(obj), or derive it from prism.agents.StatechartMixin; {IF_FROZEN}"
        )
    else:
        # what a mock, or the application, has there is none of prism's
        return memory if isinstance(memory, dict) else memory_beside(agent)

    if not chart.hierarchy.needs_memory:
        return memory_beside(agent)
    raise AgentError(
        f"chart {chart.name!r} remembers histories or times of agent {agent_name(agent)!r}, "
        f"{problem}"
    )


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
        f"chart {chart!r} has rates or probabilities, but agent {agent_name(agent)!r} has no "
        "random numbers: set  agent.random = random.Random(seed) , or any object with random()"
    )


def histories(memory: Mapping[str, Any], tree: Tree) -> dict[int, tuple[int, ...]]:
    """Return the leaves that histories stand for, as numbers, without what the chart rules out."""
    numbers = tree.numbers
    found = {
        numbers.get(text, CHART): tuple(sorted(numbers.get(leaf, CHART) for leaf in leaves))
        for text, leaves in memory.get("history", {}).items()
    }
    return {at: leaves for at, leaves in found.items() if at and tree.is_configuration(leaves, at)}


def remember(memory: dict[str, Any], notes: Notes) -> None:
    """Remember what a step leaves and enters."""
    if notes.left:
        memory.setdefault("history", {}).update(
            (text, list(leaves)) for text, leaves in notes.left.items()
        )
    if notes.stopped or notes.started:
        now = memory.setdefault("ticks", 0)
        _begin_anew(memory, (*notes.stopped, *notes.started))
        memory.setdefault("entered", {}).update(dict.fromkeys(notes.started, now))


def _begin_anew(memory: dict[str, Any], texts: Iterable[str]) -> None:
    for text in texts:
        for key in ("entered", "after"):
            memory.get(key, {}).pop(text, None)


def assigned(memory: dict[str, Any], before: Any, state: Any) -> None:
    """Begin the time of a leaf anew that an application assigns, in regions only of new leaves."""
    leaves = {*leaf_texts(state)}
    _begin_anew(memory, leaves - {*leaf_texts(before)} or leaves)


def forget(memory: dict[str, Any]) -> None:
    """Forget everything that a chart remembers; what somebody else keeps there stays."""
    for key in ("history", "ticks", "entered", "after", "raised"):
        memory.pop(key, None)


def count(memory: dict[str, Any], timed: Iterable[str]) -> None:
    """Let one tick pass in the active states whose time is kept.

    A state without a note of its entry was set, not entered: its time begins with this tick. The
    notes of states that are no longer active are dropped.
    """
    now = memory["ticks"] = memory.get("ticks", 0) + 1
    entered, after = memory.get("entered", {}), memory.get("after", {})
    memory["entered"] = {text: entered.get(text, now - 1) for text in timed}
    if after:
        memory["after"] = {text: after[text] for text in memory["entered"] if after.get(text)}

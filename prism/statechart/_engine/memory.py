"""The memory that a chart keeps of an agent besides its state: ``state_memory``.

It is a dict of JSON values that only charts with histories or timers use, and None until then::

    {"history": {"engaging": ["replying"]}, "ticks": 17, "entered": {"engaging": 12}}

Three more keys are rare. ``after`` has the ticks that functions said for time-outs, by state, and
below 0 the time-outs that came while their guards refused. ``assigned`` has the states that an
application has assigned since the last tick. ``raised`` has what a strict chart has not answered
yet, since an action raised an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from prism.errors import AgentError
from prism.statechart._engine.writing import IF_FROZEN, memory_beside
from prism.statechart._identity import agent_name
from prism.statechart._nesting import leaf_texts
from prism.statechart._tree.numbers import CHART
from prism.statechart.states import state_text

if TYPE_CHECKING:
    from prism.statechart._definition import Definition
    from prism.statechart._engine.rows import Plan
    from prism.statechart._tree.numbers import Tree

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
        if chart.hierarchy.needs_memory:
            raise AgentError(
                f"chart {chart.name!r} remembers histories or times of agent "
                f"{agent_name(agent)!r}, which has no room for them ({error}): give its class "
                f"a field  {FIELD} = None , call chart.adopt(obj), or derive it from "
                f"prism.agents.StatechartMixin; {IF_FROZEN}"
            ) from None
        memory = None
    # what a mock, or the application, has there is none of prism's
    return memory if isinstance(memory, dict) else memory_beside(agent)


def random_of(chart: str, agent: Any) -> Any:
    """Return the random numbers that a chart draws from: an agent's ``chart_random`` or ``random``.

    Raises:
        AgentError: If it has neither.
    """
    for name in ("chart_random", "random"):
        numbers = getattr(agent, name, None)
        if numbers is not None:
            return numbers

    raise AgentError(
        f"chart {chart!r} has rates or probabilities, but agent {agent_name(agent)!r} has no "
        "random numbers: set  agent.random = random.Random(seed) , or any object with random()"
    )


def histories(memory: Mapping[str, Any], tree: Tree) -> dict[int, tuple[int, ...]]:
    """Return the leaves that histories stand for, as numbers, without what the chart rules out."""
    numbers = tree.numbers
    left = {
        numbers.get(text, CHART): tuple(sorted(numbers.get(leaf, CHART) for leaf in leaves))
        for text, leaves in memory.get("history", {}).items()
    }
    return {at: leaves for at, leaves in left.items() if at and tree.is_configuration(leaves, at)}


def remember(memory: dict[str, Any], plan: Plan) -> None:
    """Remember what a step leaves and enters."""
    if plan.left:
        memory.setdefault("history", {}).update(plan.left)
    if plan.stopped or plan.started:
        now = memory.setdefault("ticks", 0)
        _begin_anew(memory, (*plan.stopped, *plan.started))
        memory.setdefault("entered", {}).update(dict.fromkeys(plan.started, now))


def _begin_anew(memory: dict[str, Any], texts: Iterable[str]) -> None:
    for text in texts:
        for key in ("entered", "after"):
            memory.get(key, {}).pop(text, None)


def assigned(memory: dict[str, Any], before: Any, state: Any) -> None:
    """Begin the time of a leaf anew that an application assigns, in regions only of new leaves.

    The time of what is around it ends in the next tick, where the states of the chart are known.
    """
    leaves = {*leaf_texts(state)}
    _begin_anew(memory, leaves - {*leaf_texts(before)} or leaves)
    if "entered" in memory:
        passed = memory.setdefault("assigned", [])
        passed += [text] if (text := state_text(state)) not in passed else []


def forget(memory: dict[str, Any]) -> None:
    """Forget everything that a chart remembers; what somebody else keeps there stays."""
    for key in ("history", "ticks", "entered", "after", "assigned", "raised"):
        memory.pop(key, None)


def count(
    memory: dict[str, Any], timed: Iterable[str], around: Callable[[str], Iterable[str]]
) -> None:
    """Let one tick pass in the active states whose time is kept.

    A state without a note of its entry was set, not entered: its time begins with this tick. The
    notes of states that are no longer active are dropped.

    Args:
        memory: What is remembered of the agent.
        timed: The texts of the states.
        around: Returns the texts of the states that are active in one that was assigned.
    """
    now = memory["ticks"] = memory.get("ticks", 0) + 1
    entered, after = memory.get("entered", {}), memory.get("after", {})
    for state in memory.pop("assigned", ()):
        former = {text for text, since in entered.items() if since < now - 1}
        _begin_anew(memory, former.difference(around(state)))
    memory["entered"] = {text: entered.get(text, now - 1) for text in timed}
    if after:
        memory["after"] = {text: after[text] for text in memory["entered"] if after.get(text)}

"""The memory that a chart keeps of an agent besides its state, and the ticks that pass in it.

The memory, ``state_memory``, is a dict of JSON values that only charts with histories or timers
use, and None until then::

    {"history": {"engaging": ["replying"]}, "ticks": {"engaging": 5}}

``ticks`` has how long active states have been so. Three more keys are rare. ``after`` has the ticks
that functions said for time-outs, by state, and below 0 the time-outs that came while their guards
refused. ``assigned`` has the states that an application has assigned since the last tick.
``raised`` has what a strict chart has not answered yet, since an action raised an error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

from prism.errors import AgentError
from prism.statechart._definition import Definition
from prism.statechart._numbers import CHART, Tree
from prism.statechart.names import agent_name
from prism.statechart.states import leaf_texts, state_text
from prism.statechart.transitions import DEFAULT_MAX_HISTORY_DEPTH, StateTransition

IF_FROZEN = "if it is frozen, keep it in a field of an agent with StatechartMixin"
"""Advice for an object in which nothing can be written."""

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
    return memory if isinstance(memory, dict) else kept_beside(agent).memory


def random_of(agent: Any) -> Any:
    """Return the random numbers that a chart draws from."""
    numbers = getattr(agent, "chart_random", None)
    return agent.random if numbers is None else numbers


def histories(memory: Mapping[str, Any], tree: Tree) -> dict[int, tuple[int, ...]]:
    """Return the leaves that histories stand for, as numbers, without what the chart rules out."""
    numbers = tree.numbers
    left = {
        numbers.get(text, CHART): tuple(sorted(numbers.get(leaf, CHART) for leaf in leaves))
        for text, leaves in memory.get("history", {}).items()
    }
    return {at: leaves for at, leaves in left.items() if at and tree.is_configuration(leaves, at)}


def remember(memory: dict[str, Any], plan: Any) -> None:
    """Remember what a step leaves and enters."""
    if plan.left:
        left = {text: [*leaves] for text, leaves in plan.left.items()}
        memory.setdefault("history", {}).update(left)
    if plan.stopped or plan.started:
        _end(memory, plan.stopped)
        memory.setdefault("ticks", {}).update(dict.fromkeys(plan.started, 0))


def _end(memory: dict[str, Any], states: Iterable[str]) -> None:
    for state in states:
        for key in ("ticks", "after"):
            memory.get(key, {}).pop(state, None)


def assigned(memory: dict[str, Any], before: Any, state: Any) -> None:
    """End the time of a leaf that an application assigns, in regions only of new leaves.

    The time of what is around it ends in the next tick, where the chart is known.
    """
    leaves = {*leaf_texts(state)}
    _end(memory, leaves - {*leaf_texts(before)} or leaves)
    if "ticks" in memory and state_text(state) not in memory.setdefault("assigned", []):
        memory["assigned"].append(state_text(state))


def forget(memory: dict[str, Any]) -> None:
    """Forget everything that a chart remembers; what somebody else keeps there stays."""
    for key in ("history", "ticks", "after", "assigned", "raised"):
        memory.pop(key, None)


def count(
    memory: dict[str, Any], timed: Iterable[str], active_in: Callable[[str], Collection[str]]
) -> None:
    """Let one tick pass in the active states whose time is kept; forget the time of all others.

    A state of whose entry nothing is known was assigned: its time begins with this tick.

    Args:
        memory: What is remembered of the agent.
        timed: The texts of the states.
        active_in: Returns the texts of the states that are active in one that was assigned.
    """
    ticks = memory.get("ticks", {})
    for state in memory.pop("assigned", ()):
        active = active_in(state)
        _end(memory, [each for each in ticks if ticks[each] and each not in active])
    memory["ticks"] = {state: ticks.get(state, 0) + 1 for state in timed}
    if after := memory.get("after"):
        memory["after"] = {state: after[state] for state in memory["ticks"] if after.get(state)}


# Beside an agent


@dataclass(slots=True)
class _Beside:
    """What is kept beside an agent whose own fields are something else."""

    # what keeps the entry alive: a weak reference that ends it with the agent, or the agent itself
    life: object
    memory: dict[str, Any] = field(default_factory=dict)
    # None unless the agent's own history is something else
    records: deque[StateTransition] | None = None


_beside: dict[int, _Beside] = {}
_MOST_BESIDE = 10_000


def kept_beside(agent: Any) -> _Beside:
    """Return what is kept beside an agent, for as long as it lives."""
    key = id(agent)
    if key not in _beside:
        try:
            life: object = ref(agent, lambda _: _beside.pop(key, None))
        except TypeError:
            life = agent
            while len(_beside) >= _MOST_BESIDE:
                del _beside[next(iter(_beside))]
        _beside[key] = _Beside(life)
    return _beside[key]


def records_beside(agent: Any) -> deque[StateTransition] | None:
    """Return the records that are kept beside an agent; None if they are not kept there."""
    return _beside[id(agent)].records if id(agent) in _beside else None


def keep_records_beside(agent: Any) -> deque[StateTransition]:
    """Return the records that are kept beside an agent, from now on, whatever it has itself."""
    entry = kept_beside(agent)
    if entry.records is None:
        entry.records = deque(maxlen=DEFAULT_MAX_HISTORY_DEPTH)
    return entry.records

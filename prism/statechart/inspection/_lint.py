"""Probable mistakes in a chart that is well defined, and in its agents.

A chart is looked at as it was written, since a transition to a history is several of leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from inspect import isclass
from typing import Any, Literal

from prism.errors import AgentError
from prism.statechart._definition import TIMEOUT, Definition
from prism.statechart._engine.memory import FIELD
from prism.statechart._identity import agent_name
from prism.statechart._tree.hierarchy import Hierarchy
from prism.statechart._tree.numbers import Arc
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMING, Transition

FindingKind = Literal["unreachable", "no_way_out", "shadowed", "no_timeout"]

_MESSAGES: dict[FindingKind, str] = {
    "unreachable": "state {state!r} cannot be reached from {initial!r}: add a transition that "
    "leads to it, or remove it",
    "no_way_out": "state {state!r} has no way out: add a transition that leaves it, or make it a "
    "final state",
    "no_timeout": "active state {state!r} has no 'timeout' transition, so an agent can get stuck "
    "in it: add one to the state in which it recovers",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A probable mistake in a chart.

    Args:
        kind: ``unreachable``, ``no_way_out``, ``shadowed`` or ``no_timeout``.
        state: The state it concerns.
        message: The mistake, and how to correct it.
        transition: The transition it concerns, for ``shadowed``.
    """

    kind: FindingKind
    state: Any
    message: str
    transition: Transition[Any] | None = None

    def __str__(self) -> str:
        """Return the message."""
        return self.message


def find_flaws(chart: Definition[Any]) -> list[Finding]:
    """Return everything that is probably wrong with a chart: see `Statechart.check`."""
    tree = chart.hierarchy
    begins = {tree.tree.nodes[number].state for number in tree.begins_in}
    left = _left(tree, tree.arcs)
    timed = _left(tree, filter(_is_timed, tree.arcs))
    if TIMEOUT not in tree.triggers and not tree.timeouts:
        # a chart without any has none on purpose
        timed = {*chart.states}
    limited = {leaf for state in tree.timeouts for leaf in tree.members_inside(state)}
    lacking: dict[FindingKind, set[Any]] = {
        "unreachable": _reached(chart, begins),
        "no_way_out": left.union(tree.final_states),
        "no_timeout": timed.union(tree.final_states, begins - limited),
    }
    initial = state_text(chart.initial)
    flaws = [
        Finding(kind, state, _MESSAGES[kind].format(state=state_text(state), initial=initial))
        for kind, sound in lacking.items()
        for state in chart.states
        if state not in sound
    ]
    return [*flaws, *_shadowed(tree)]


def _reached(chart: Definition[Any], begins: Iterable[Any]) -> set[Any]:
    leading: dict[Any, set[Any]] = {}
    for item in chart.transitions:
        leading.setdefault(item.source, set()).add(item.target)
    reached, frontier = {*begins}, [*begins]
    while frontier:
        beyond = leading.get(frontier.pop(), set()) - reached
        reached |= beyond
        frontier += beyond
    return reached


def _is_timed(arc: Arc) -> bool:
    """Return whether a transition needs no event from outside."""
    item = arc.written
    return item.trigger in (TIMEOUT, None) or item.after is not None or item.rate is not None


def _left(tree: Hierarchy, arcs: Iterable[Arc]) -> set[Any]:
    """Return the leaves that some transition leaves, those of other regions included."""
    return {
        tree.tree.nodes[leaf].state
        for arc in arcs
        for leaf in _active_with(tree, arc)
        if any(end != leaf for end in tree.ends_of(arc, leaf))
    }


def _active_with(tree: Hierarchy, arc: Arc) -> set[int]:
    """Return the leaves inside the domain of a transition that are active beside its source."""
    domain, inner = tree.tree.domain(arc, {}), arc.source
    if domain is None:
        return set()
    leaves = {*tree.leaves_at(inner)}
    for around in tree.tree.ancestors(inner, domain) if domain != inner else ():
        if tree.tree.nodes[around].kind == "parallel":
            leaves |= {*tree.leaves_at(around)} - {*tree.leaves_at(inner)}
        inner = around
    return leaves


def _shadowed(tree: Hierarchy) -> Iterator[Finding]:
    unguarded: dict[tuple[int, str | None], Transition[Any]] = {}
    behind: dict[int, tuple[Arc, Transition[Any]]] = {}
    sound: set[int] = set()
    for arc in tree.arcs:
        item, key = arc.written, (arc.source, arc.written.trigger)
        if key not in unguarded or _is_chosen(arc, tree):
            # a wildcard is of use as long as it is the first for one of the states
            sound.add(arc.place)
        else:
            behind.setdefault(arc.place, (arc, unguarded[key]))
        if item.guard is None and item.probability is None:
            unguarded.setdefault(key, item)

    for place, (arc, earlier) in behind.items():
        if place not in sound:
            message = (
                f"transition {arc.written} can never fire: {earlier} comes earlier and has no "
                "guard; remove it, put it first, or give the earlier one a guard"
            )
            yield Finding("shadowed", tree.tree.nodes[arc.source].state, message, arc.written)


def _is_chosen(arc: Arc, tree: Hierarchy) -> bool:
    """Return whether a reasoner, a time or a chance may choose a transition, whatever its place."""
    decides = not tree.decides.isdisjoint(tree.leaves_at(arc.source))
    return decides or any(getattr(arc.written, name) is not None for name in TIMING)


# Agents


def missing(agent: object, chart: Definition[Any], more: Iterable[str] = ()) -> list[str]:
    """Return the names that an agent lacks: those that a chart needs, and more.

    Raises:
        AgentError: If it is a class.
    """
    if isclass(agent):
        raise AgentError(
            f"{agent.__name__} is a class, of which only agents have all attributes: pass an agent"
        )
    memory = [FIELD] if chart.hierarchy.needs_memory else []
    return [name for name in ("state", *memory, *chart.needs, *more) if not _has(agent, name)]


def require_fit(agents: Iterable[object], chart: Definition[Any], more: Iterable[str] = ()) -> None:
    """Refuse agents that lack something, before anything is done with them.

    Raises:
        AgentError: If one does; names everything that it lacks.
    """
    more = tuple(more)
    for agent in agents:
        if lacks := missing(agent, chart, more):
            raise AgentError(
                f"agent {agent_name(agent)!r} does not fit chart {chart.name!r}: "
                f"{type(agent).__name__} lacks {', '.join(lacks)}"
            )


def _has(agent: object, name: str) -> bool:
    try:
        return hasattr(agent, name)
    except Exception:
        # a property that fails now is there all the same
        return True

"""Probable mistakes in a chart that is well defined, and in its agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from inspect import isclass
from typing import TYPE_CHECKING, Any, Literal

from prism.errors import AgentError
from prism.statechart._definition import TIMEOUT, Definition
from prism.statechart._engine.memory import FIELD
from prism.statechart._identity import agent_name
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMING, Transition

if TYPE_CHECKING:
    from prism.statechart._tree.hierarchy import Hierarchy
    from prism.statechart._tree.numbers import Arc

FindingKind = Literal["unreachable", "no_way_out", "shadowed", "no_timeout"]

_IF_UNGUARDED = "remove it, or give the earlier one a guard"


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
    return [
        *_unreachable(chart, begins),
        *_without_way_out(chart, tree),
        *_shadowed(tree),
        *_without_timeout(chart, tree, begins),
    ]


def _unreachable(chart: Definition[Any], begins: Set[Any]) -> Iterator[Finding]:
    leading: dict[Any, set[Any]] = {}
    for item in chart.transitions:
        leading.setdefault(item.source, set()).add(item.target)
    reached, frontier = {*begins}, [*begins]
    while frontier:
        found = leading.get(frontier.pop(), set()) - reached
        reached |= found
        frontier += found

    for state in chart.states:
        if state not in reached:
            told = (
                f"state {state_text(state)!r} cannot be reached from {state_text(chart.initial)!r}"
                ": add a transition that leads to it, or remove it"
            )
            yield Finding("unreachable", state, told)


def _without_way_out(chart: Definition[Any], tree: Hierarchy) -> Iterator[Finding]:
    left = _left_by_any(tree.arcs, tree).union(tree.final_states)
    for state in chart.states:
        if state not in left:
            told = (
                f"state {state_text(state)!r} has no way out: add a transition that leaves it, or "
                "make it a final state"
            )
            yield Finding("no_way_out", state, told)


def _without_timeout(
    chart: Definition[Any], tree: Hierarchy, begins: Set[Any]
) -> Iterator[Finding]:
    # a chart without any has none on purpose
    if TIMEOUT not in tree.triggers and not tree.timeouts:
        return
    timed = _left_by_any(filter(_is_timed, tree.arcs), tree).union(tree.final_states)
    limited = {leaf for state in tree.timeouts for leaf in tree.members_inside(state)}
    for state in chart.states:
        if state not in timed and (state not in begins or state in limited):
            told = (
                f"active state {state_text(state)!r} has no {TIMEOUT!r} transition, so an agent "
                "can get stuck in it: add one to the state in which it recovers"
            )
            yield Finding("no_timeout", state, told)


# Transitions as written, since one to a history is several of leaves


def _is_timed(arc: Arc) -> bool:
    """Return whether a transition needs no event from outside."""
    item = arc.written
    return item.trigger in (TIMEOUT, None) or item.after is not None or item.rate is not None


def _left_by_any(arcs: Iterable[Arc], tree: Hierarchy) -> set[Any]:
    return {leaf for arc in arcs for leaf in _left_by(arc, tree)}


def _left_by(arc: Arc, tree: Hierarchy) -> Iterator[Any]:
    """Yield the leaves that a transition leaves, those of other regions included."""
    domain = tree.tree.domain(arc, {})
    if domain is None:
        return

    # of the states around, only a parallel one has leaves that are active beside the source
    leaves = {*tree.leaves_at(arc.source)}
    if domain != arc.source:
        inner = arc.source
        for around in tree.tree.ancestors(arc.source, domain):
            if tree.tree.nodes[around].kind == "parallel":
                leaves |= {*tree.leaves_at(around)} - {*tree.leaves_at(inner)}
            inner = around

    for leaf in leaves:
        if any(end != leaf for end in tree.ends_of(arc, leaf)):
            yield tree.tree.nodes[leaf].state


def _shadowed(tree: Hierarchy) -> Iterator[Finding]:
    unguarded: dict[tuple[int, str | None], Transition[Any]] = {}
    rivals: dict[int, list[tuple[Arc, Transition[Any] | None]]] = {}
    for arc in tree.arcs:
        item, key = arc.written, (arc.source, arc.written.trigger)
        rival = None if _is_chosen(arc, tree) else unguarded.get(key)
        rivals.setdefault(arc.place, []).append((arc, rival))
        if item.guard is None and item.probability is None:
            unguarded.setdefault(key, item)

    for found in rivals.values():
        # a wildcard is of use as long as it is the first for one of the states
        if all(rival is not None for _, rival in found):
            arc, item = found[-1][0], found[-1][0].written
            mend = _IF_UNGUARDED if item.guard is None else "put this one first"
            told = (
                f"transition {item} can never fire: {found[0][1]} comes earlier and has no guard; "
                f"{mend}"
            )
            yield Finding("shadowed", tree.tree.nodes[arc.source].state, told, item)


def _is_chosen(arc: Arc, tree: Hierarchy) -> bool:
    """Return whether a reasoner, a time or a chance may choose a transition, whatever its place."""
    decides = not tree.decides.isdisjoint(tree.leaves_at(arc.source))
    return decides or any(getattr(arc.written, name) is not None for name in TIMING)


# Agents


def needed(chart: Definition[Any]) -> tuple[str, ...]:
    """Return the names of what a chart needs of an agent: what is declared, and its own fields."""
    return ("state", *([FIELD] if chart.hierarchy.needs_memory else []), *chart.needs)


def missing(agent: object, needs: Iterable[str]) -> list[str]:
    """Return the names that an agent lacks.

    Args:
        agent: An agent; its properties are read.
        needs: Names of attributes and methods.

    Raises:
        AgentError: If it is a class.
    """
    if isclass(agent):
        raise AgentError(
            f"{agent.__name__} is a class, of which only agents have all attributes: pass an agent"
        )
    return [name for name in needs if not _has(agent, name)]


def require_fit(agents: Iterable[object], chart: Definition[Any], more: Iterable[str] = ()) -> None:
    """Refuse agents that lack something, before anything is done with them.

    Args:
        agents: The agents.
        chart: The chart that will drive them.
        more: What else is needed of an agent.

    Raises:
        AgentError: If one does; names the first of each class, and everything that it lacks.
    """
    needs = (*needed(chart), *more)
    found: dict[tuple[type, tuple[str, ...]], list[object]] = {}
    for agent in agents:
        lacks = tuple(missing(agent, needs))
        if lacks:
            found.setdefault((type(agent), lacks), []).append(agent)

    if not found:
        return

    problems = [
        f"{cls.__name__} ({_named(those)}) lacks {', '.join(lacks)}"
        for (cls, lacks), those in found.items()
    ]
    raise AgentError(
        f"agents do not fit chart {chart.name!r}: {'; '.join(problems)}: give the class what is "
        "missing; chart.fits(agent) lists what the chart itself needs"
    )


def _named(agents: list[object]) -> str:
    more = len(agents) - 1
    return f"agent {agent_name(agents[0])!r}" + (f" and {more} more" if more else "")


def _has(agent: object, name: str) -> bool:
    try:
        getattr(agent, name)
    except AttributeError:
        return False
    except Exception:
        # a property that fails now is there all the same
        return True

    return True

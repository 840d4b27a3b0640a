"""The outline of a chart with composites, for its lint: its transitions as written.

From leaf to leaf, one that leads to a history would be several, of which the first would hide the
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from prism.statechart._definition import TIMEOUT
from prism.statechart._tree.hierarchy import Hierarchy
from prism.statechart._tree.numbers import Arc
from prism.statechart.inspection._outline import Outline
from prism.statechart.transitions import TIMING, Transition


def nested_outline(tree: Hierarchy) -> Outline:
    """Return what a lint looks at in a chart with composites."""
    left = _left_by_any(tree.arcs, tree)
    timed = _left_by_any(filter(_is_timed, tree.arcs), tree)
    if TIMEOUT not in tree.triggers and not tree.timeouts:
        # a chart may have no time-outs on purpose
        timed = {*tree.leaves}

    return Outline(
        {tree.tree.nodes[number].state for number in tree.begins_in},
        left,
        timed,
        {leaf for state in tree.timeouts for leaf in tree.members_inside(state)},
        {*tree.final_states},
        [*_shadowed(tree)],
    )


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


def _shadowed(tree: Hierarchy) -> Iterator[tuple[Any, Transition[Any], Transition[Any]]]:
    unguarded: dict[tuple[int, str | None], Transition[Any]] = {}
    rivals: dict[int, list[Transition[Any] | None]] = {}
    for arc in tree.arcs:
        item, key = arc.written, (arc.source, arc.written.trigger)
        rival = None if _is_chosen(arc, tree) else unguarded.get(key)
        rivals.setdefault(arc.place, []).append(rival)
        if item.guard is None and item.probability is None:
            unguarded.setdefault(key, item)

    source_of = {arc.place: tree.tree.nodes[arc.source].state for arc in tree.arcs}
    for place, found in rivals.items():
        earlier = [each for each in found if each is not None]
        # a wildcard is of use as long as it is the first for one of the states
        if earlier and len(earlier) == len(found):
            yield source_of[place], tree.transitions[place], earlier[0]


def _is_chosen(arc: Arc, tree: Hierarchy) -> bool:
    """Return whether a reasoner, a time or a chance may choose a transition, whatever its place."""
    decides = not tree.decides.isdisjoint(tree.leaves_at(arc.source))
    return decides or any(getattr(arc.written, name) is not None for name in TIMING)

"""What transitions leave and enter: appendix D of the SCXML recommendation, in numbers of the tree.

https://www.w3.org/TR/scxml/#AlgorithmforSCXMLInterpretation; each function names its own there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from prism.statechart._hierarchy import CHART, Arc, Hierarchy, HistoryAt, Target
from prism.statechart.transitions import ANY_STATE, Transition

Memory = Mapping[int, tuple[int, ...]]
"""The leaves that were active when a composite was left last, by the composite's number."""

BEGIN: Transition[Any] = Transition("begin", ANY_STATE, None, internal=True)
"""The event that enters the first state when an agent begins; no chart defines it."""

# What a transition leaves


def effective(tree: Hierarchy, targets: Iterable[Target], memory: Memory) -> list[int]:
    """Return the states that targets stand for now (``getEffectiveTargetStates``)."""
    states: list[int] = []
    for target in targets:
        if not isinstance(target, HistoryAt):
            states.append(target)
        elif target.composite not in memory:
            states += target.default
        elif target.deep:
            states += memory[target.composite]
        else:
            leaves = memory[target.composite]
            children = tree.nodes[target.composite].children
            states += [child for child in children if tree.inside(leaves, child)]
    return states


def domain(tree: Hierarchy, arc: Arc, memory: Memory) -> int | None:
    """Return the state inside which everything is left (``getTransitionDomain``)."""
    targets = effective(tree, arc.targets, memory)
    if not targets:
        return None
    source: tuple[int, ...] = (arc.source,) if arc.written.internal else ()
    return next(
        number
        for number in (*source, *tree.ancestors(arc.source))
        if tree.nodes[number].kind == "composite"
        and all(tree.is_inside(target, number) for target in targets)
    )


def compatible(
    tree: Hierarchy, arcs: Iterable[Arc], active: Collection[int], memory: Memory
) -> dict[Arc, frozenset[int]]:
    """Return transitions of several regions and what each leaves, those in conflict left out.

    That is ``removeConflictingTransitions`` (the inner source wins, else the earlier region) and
    ``computeExitSet``.
    """
    kept: dict[Arc, frozenset[int]] = {}
    for arc in arcs:
        within = domain(tree, arc, memory)
        exits = active if within is not None else ()
        left = frozenset(each for each in exits if tree.is_inside(each, within or CHART))
        rivals = [other for other, its in kept.items() if left & its]
        if all(tree.is_inside(arc.source, other.source) for other in rivals):
            for other in rivals:
                del kept[other]
            kept[arc] = left
    return kept


# What it enters


def entered(tree: Hierarchy, arcs: Iterable[Arc], memory: Memory) -> set[int]:
    """Return the states that are entered (``computeEntrySet``)."""
    come: set[int] = set()
    for arc in arcs:
        _enter(tree, come, arc.targets, domain(tree, arc, memory), memory)
    return come


def _enter(
    tree: Hierarchy, come: set[int], targets: Sequence[Target], until: int | None, memory: Memory
) -> None:
    """Enter targets, what is inside, and what is around them up to a state left out."""
    for target in targets:
        if isinstance(target, HistoryAt):
            _enter(tree, come, effective(tree, (target,), memory), target.composite, memory)
            continue
        come.add(target)
        if tree.nodes[target].kind == "composite":
            _enter(tree, come, tree.nodes[target].initial, target, memory)
        _enter_regions(tree, come, target, memory)

    # only then, since the regions around one may hold another; each once, as many have the same
    around = (tree.ancestors(number, until) for number in effective(tree, targets, memory))
    for ancestor in dict.fromkeys(chain.from_iterable(around)):
        come.add(ancestor)
        _enter_regions(tree, come, ancestor, memory)


def _enter_regions(tree: Hierarchy, come: set[int], number: int, memory: Memory) -> None:
    if tree.nodes[number].kind == "parallel":
        for child in tree.nodes[number].children:
            if come.isdisjoint(range(child + 1, tree.nodes[child].last + 1)):
                _enter(tree, come, (child,), number, memory)


def is_done(tree: Hierarchy, number: int, active: Collection[int]) -> bool:
    """Return whether a composite has come to its end (``isInFinalState``)."""
    node = tree.nodes[number]
    if node.kind == "parallel":
        return all(is_done(tree, child, active) for child in node.children)
    return any(tree.nodes[child].kind == "final" and child in active for child in node.children)


# Of the chart as a whole


def beginning(tree: Hierarchy, leaves: tuple[int, ...] = ()) -> Arc:
    """Return what enters the initial state, or some leaves."""
    return Arc(CHART, CHART, leaves or tree.nodes[CHART].initial, BEGIN)


def first_leaves(tree: Hierarchy) -> tuple[int, ...]:
    """Return where an agent begins."""
    return tree.leaves_among(entered(tree, [beginning(tree)], {}))


def ends_of(tree: Hierarchy, arc: Arc) -> list[int]:
    """Return the leaves to which a transition may lead; none if it leaves nothing."""
    composites = [each.composite for each in arc.targets if isinstance(each, HistoryAt)]
    # what histories may stand for, one at a time
    memories = [{each: (at,)} for each in composites for at in tree.leaves_at(each)]
    ends = (tree.leaves_among(entered(tree, [arc], each)) for each in ({}, *memories))
    return [*dict.fromkeys(chain.from_iterable(ends))] if arc.targets else []

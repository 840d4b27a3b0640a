"""The tree of a chart's states in numbers, and what a step leaves and enters.

This is appendix D of the SCXML recommendation (https://www.w3.org/TR/scxml/#AlgorithmforSCXMLInterpretation)
as pure functions of numbers. States are numbered in document order. 0 is the chart itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from prism.statechart.states import state_text
from prism.statechart.transitions import Action, Guard, Transition

Kind = Literal["leaf", "final", "composite", "parallel"]

Memory = Mapping[int, tuple[int, ...]]
"""The leaves that were active when a composite was left last, by the composite's number."""

CHART = 0
_NOTHING: Memory = {}


@dataclass(slots=True)
class Node:
    """One state in the tree.

    Args:
        state: The member of the enum; None for the chart.
        number: Its place in document order.
        parent: Number of the state that it lies in.
        kind: What lies inside: ``leaf``, ``final`` (nothing, ever), ``composite`` (one of its
            children is active) or ``parallel`` (all of them are).
        entry: What is called when it is entered.
        exit: What is called when it is left.
        children: Numbers of the states directly inside.
        initial: Where entering it leads, for a composite.
        start: What is called then.
        last: Number of the last state inside.
    """

    state: Any
    number: int
    parent: int
    kind: Kind
    entry: tuple[Action, ...] = ()
    exit: tuple[Action, ...] = ()
    children: list[int] = field(default_factory=list)
    initial: tuple[int | HistoryAt, ...] = ()
    start: tuple[Action, ...] = ()
    last: int = 0


class HistoryAt(NamedTuple):
    """A history as a target: the composite's number, and where it leads without a memory."""

    composite: int
    deep: bool
    default: tuple[int, ...]
    content: Action | None = None


class Entering(set[int]):
    """States that are entered, and what is called where one is entered for want of another.

    That is the content of ``<initial>`` and of a history's default transition, by the composite.
    """

    def __init__(self) -> None:
        super().__init__()
        self.content: dict[int, list[Action]] = {}

    def call(self, number: int, *actions: Action) -> None:
        """Note what is called once a composite has been entered."""
        known = self.content.get(number, [])
        new = [action for action in actions if action not in known]
        if new:
            self.content[number] = known + new


@dataclass(frozen=True, slots=True, eq=False)
class Arc:
    """A written transition in numbers.

    Args:
        number: Its place among the arcs.
        place: Its place among the written transitions; a wildcard's arcs have one place.
        source: The state it belongs to.
        targets: Where it leads; none if it leaves nothing.
        written: The transition.
        guard: Its guard, bound to the chart and told what it asks for.
        action: Its action, told what it asks for.
    """

    number: int
    place: int
    source: int
    targets: tuple[int | HistoryAt, ...]
    written: Transition[Any]
    guard: Guard | None
    action: Action | None


class Tree:
    """The states of a chart by number.

    Args:
        nodes: The chart itself and all states, in document order.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.numbers = {state_text(node.state): node.number for node in nodes[1:]}
        self.has_regions = any(node.kind == "parallel" for node in nodes)

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """The states without states inside, in document order."""
        return tuple(node.number for node in self.nodes[1:] if not node.children)

    @cached_property
    def initial_histories(self) -> tuple[int, ...]:
        """The composites whose history is where some state begins."""
        found = (each for node in self.nodes for each in node.initial)
        return tuple({each.composite: None for each in found if isinstance(each, HistoryAt)})

    # Where states lie

    def is_inside(self, number: int, other: int) -> bool:
        """Return whether a state lies inside another one, at any depth."""
        return other < number <= self.nodes[other].last

    def ancestors(self, number: int, until: int | None = None) -> Iterator[int]:
        """Yield the states around a state, innermost first, up to one that is left out."""
        while number != CHART:
            number = self.nodes[number].parent
            if number == until:
                return
            yield number

    def active(self, leaves: Iterable[int]) -> frozenset[int]:
        """Return the leaves and all that is around them, without the chart."""
        found = {*leaves}
        for leaf in leaves:
            found |= {*self.ancestors(leaf, CHART)}
        return frozenset(found)

    def is_configuration(self, leaves: Sequence[int]) -> bool:
        """Return whether an agent can be in just these leaves."""
        active = self.active(leaves)
        return all(
            not self.nodes[number].children
            or sum(child in active for child in self.nodes[number].children)
            == (len(self.nodes[number].children) if self._is(number, "parallel") else 1)
            for number in (CHART, *active)
        )

    def _is(self, number: int, kind: Kind) -> bool:
        return self.nodes[number].kind == kind

    # What a transition leaves

    def effective(self, targets: Iterable[int | HistoryAt], memory: Memory) -> list[int]:
        """Return the states that targets stand for now (``getEffectiveTargetStates``)."""
        found: list[int] = []
        for target in targets:
            found += self.remembered(target, memory) if isinstance(target, HistoryAt) else [target]
        return found

    def remembered(self, history: HistoryAt, memory: Memory) -> Sequence[int]:
        """Return what a history stands for now."""
        leaves = memory.get(history.composite)
        if leaves is None:
            return history.default
        if history.deep:
            return leaves

        own = self.nodes[history.composite].children
        return [child for child in own if any(leaf in self._span(child) for leaf in leaves)]

    def _span(self, number: int) -> range:
        return range(number, self.nodes[number].last + 1)

    def domain(self, arc: Arc, memory: Memory) -> int | None:
        """Return the state inside which everything is left (``getTransitionDomain``)."""
        targets = self.effective(arc.targets, memory)
        if not targets:
            return None

        def holds(number: int) -> bool:
            return all(self.is_inside(target, number) for target in targets)

        if arc.written.internal and self._is(arc.source, "composite") and holds(arc.source):
            return arc.source

        return next(
            number
            for number in self.ancestors(arc.source)
            if self._is(number, "composite") and holds(number)
        )

    def exited(self, arc: Arc, active: Collection[int], memory: Memory) -> frozenset[int]:
        """Return the active states that a transition leaves (``computeExitSet``)."""
        domain = self.domain(arc, memory)
        if domain is None:
            return frozenset()
        return frozenset(number for number in active if self.is_inside(number, domain))

    def compatible(
        self, arcs: Iterable[Arc], active: Collection[int], memory: Memory = _NOTHING
    ) -> tuple[Arc, ...]:
        """Return transitions of several regions, those in conflict left out.

        That is ``removeConflictingTransitions``: the inner source wins, else the earlier region.
        """
        kept: list[tuple[Arc, frozenset[int]]] = []
        for arc in arcs:
            left = self.exited(arc, active, memory)
            rivals = [(other, its) for other, its in kept if left & its]
            if all(self.is_inside(arc.source, other.source) for other, _ in rivals):
                kept = [pair for pair in kept if pair not in rivals]
                kept.append((arc, left))

        return tuple(arc for arc, _ in kept)

    # What it enters

    def entered(self, arcs: Iterable[Arc], memory: Memory = _NOTHING) -> Entering:
        """Return the states that are entered (``computeEntrySet``)."""
        found = Entering()
        for arc in arcs:
            for target in arc.targets:
                self._enter(target, found, memory)

            domain = self.domain(arc, memory)
            for number in self.effective(arc.targets, memory):
                self._enter_around(number, domain, found, memory)

        return found

    def begun(self) -> Entering:
        """Return the states that are entered when the chart begins."""
        found = Entering()
        self._enter(CHART, found, _NOTHING)
        found.discard(CHART)
        return found

    def _enter(self, target: int | HistoryAt, found: Entering, memory: Memory) -> None:
        if isinstance(target, HistoryAt):
            if target.content is not None and target.composite not in memory:
                found.call(target.composite, target.content)
            self._enter_all(self.remembered(target, memory), target.composite, found, memory)
            return

        found.add(target)
        node = self.nodes[target]
        if node.kind == "composite":
            found.call(target, *node.start)
            self._enter_all(node.initial, target, found, memory)
        elif node.kind == "parallel":
            self._enter_regions(target, found, memory)

    def _enter_all(
        self,
        targets: Sequence[int | HistoryAt],
        composite: int,
        found: Entering,
        memory: Memory,
    ) -> None:
        for target in targets:
            self._enter(target, found, memory)
        # only then, since the regions around one may hold another
        for number in self.effective(targets, memory):
            self._enter_around(number, composite, found, memory)

    def _enter_around(
        self, number: int, until: int | None, found: Entering, memory: Memory
    ) -> None:
        for ancestor in self.ancestors(number, until):
            found.add(ancestor)
            if self._is(ancestor, "parallel"):
                self._enter_regions(ancestor, found, memory)

    def _enter_regions(self, parallel: int, found: Entering, memory: Memory) -> None:
        for child in self.nodes[parallel].children:
            if found.isdisjoint(range(child + 1, self.nodes[child].last + 1)):
                self._enter(child, found, memory)

    # When a composite is done

    def is_done(self, number: int, active: Collection[int]) -> bool:
        """Return whether a composite has come to its end (``isInFinalState``)."""
        node = self.nodes[number]
        if node.kind == "parallel":
            return all(self.is_done(child, active) for child in node.children)
        return any(self._is(child, "final") and child in active for child in node.children)

"""The states of a chart in numbers, and which of them a transition leaves and enters.

This is appendix D of the SCXML recommendation (https://www.w3.org/TR/scxml/#AlgorithmforSCXMLInterpretation)
as pure functions of numbers. States are numbered in document order. 0 is the chart itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from prism.statechart.states import state_text
from prism.statechart.transitions import ANY_STATE, Action, Guard, Transition

Memory = Mapping[int, tuple[int, ...]]
"""The leaves that were active when a composite was left last, by the composite's number."""

CHART = 0

BEGIN: Transition[Any] = Transition("begin", ANY_STATE, None, internal=True)
"""The event that enters the first state when an agent begins; no chart defines it."""


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
        last: Number of the last state inside.
    """

    state: Any
    number: int
    parent: int
    kind: Literal["leaf", "final", "composite", "parallel"]
    entry: tuple[Action, ...] = ()
    exit: tuple[Action, ...] = ()
    children: list[int] = field(default_factory=list)
    initial: tuple[int | HistoryAt, ...] = ()
    last: int = 0


class HistoryAt(NamedTuple):
    """A history as a target: the composite's number, and where it leads without a memory."""

    composite: int
    deep: bool
    default: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Arc:
    """A written transition in numbers.

    Args:
        number: Its place among the arcs.
        place: Its place among the written transitions; a wildcard's arcs have one place.
        source: The state it belongs to.
        targets: Where it leads; none if it leaves nothing.
        written: The transition.
        guard: Its guard as a function of agent and context.
        action: Its action, likewise.
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

    Attributes:
        texts: Their texts, by number; that of the chart is empty.
        numbers: Their numbers, by text.
        leaves: The states without states inside.
        has_composites: Whether states lie inside states.
        has_regions: Whether several states may be active side by side.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes: tuple[Node, ...] = tuple(nodes)
        self.texts: tuple[str, ...] = ("", *(state_text(node.state) for node in nodes[1:]))
        self.numbers: dict[str, int] = {
            text: number for number, text in enumerate(self.texts) if number
        }
        self.leaves: tuple[int, ...] = tuple(node.number for node in nodes[1:] if not node.children)
        self.has_composites: bool = len(self.leaves) < len(nodes) - 1
        self.has_regions: bool = any(node.kind == "parallel" for node in nodes)

    # Where states lie

    def is_inside(self, number: int, other: int) -> bool:
        """Return whether a state lies inside another one, at any depth."""
        return other < number <= self.nodes[other].last

    def inside(self, numbers: Iterable[int], other: int) -> tuple[int, ...]:
        """Return those of some states that are another one, or lie inside it."""
        last = self.nodes[other].last
        return tuple(number for number in numbers if other <= number <= last)

    def ancestors(self, number: int, until: int | None = None) -> Iterator[int]:
        """Yield the states around a state, innermost first, up to one that is left out."""
        while number != CHART:
            number = self.nodes[number].parent
            if number == until:
                return
            yield number

    def active(self, leaves: Iterable[int], within: int = CHART) -> frozenset[int]:
        """Return the leaves and all that is around them within a composite, without that."""
        return frozenset(each for leaf in leaves for each in (leaf, *self.ancestors(leaf, within)))

    def leaves_among(self, active: Iterable[int]) -> tuple[int, ...]:
        """Return those of some states that are leaves, in document order."""
        return tuple(sorted(number for number in active if not self.nodes[number].children))

    def is_configuration(self, leaves: tuple[int, ...], within: int = CHART) -> bool:
        """Return whether an agent can be in just these leaves, of those within a composite."""
        if leaves != self.inside(leaves, within):
            return False

        active = self.active(leaves, within) | {within}
        inner = [self.nodes[number] for number in active if self.nodes[number].children]
        return leaves == self.leaves_among(active) and all(
            len(active.intersection(node.children))
            == (len(node.children) if node.kind == "parallel" else 1)
            for node in inner
        )

    # What a transition leaves

    def effective(self, targets: Iterable[int | HistoryAt], memory: Memory) -> list[int]:
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
                children = self.nodes[target.composite].children
                states += [child for child in children if self.inside(leaves, child)]
        return states

    def domain(self, arc: Arc, memory: Memory) -> int | None:
        """Return the state inside which everything is left (``getTransitionDomain``)."""
        targets = self.effective(arc.targets, memory)
        if not targets:
            return None

        own: tuple[int, ...] = (arc.source,) if arc.written.internal else ()
        return next(
            number
            for number in (*own, *self.ancestors(arc.source))
            if self.nodes[number].kind == "composite"
            and all(self.is_inside(target, number) for target in targets)
        )

    def compatible(
        self, arcs: Iterable[Arc], active: Collection[int], memory: Memory
    ) -> dict[Arc, frozenset[int]]:
        """Return transitions of several regions and what each leaves, those in conflict left out.

        That is ``removeConflictingTransitions`` (the inner source wins, else the earlier region)
        and ``computeExitSet``.
        """
        kept: dict[Arc, frozenset[int]] = {}
        for arc in arcs:
            domain = self.domain(arc, memory)
            exits = active if domain is not None else ()
            left = frozenset(each for each in exits if self.is_inside(each, domain or CHART))
            rivals = [other for other, its in kept.items() if left & its]
            if all(self.is_inside(arc.source, other.source) for other in rivals):
                for other in rivals:
                    del kept[other]
                kept[arc] = left
        return kept

    # What it enters

    def entered(self, arcs: Iterable[Arc], memory: Memory) -> set[int]:
        """Return the states that are entered (``computeEntrySet``)."""
        come: set[int] = set()
        for arc in arcs:
            self._enter(come, arc.targets, self.domain(arc, memory), memory)
        return come

    def _enter(
        self, come: set[int], targets: Sequence[int | HistoryAt], until: int | None, memory: Memory
    ) -> None:
        """Enter targets, what is inside, and what is around them up to a state left out."""
        for target in targets:
            if isinstance(target, HistoryAt):
                states = self.effective((target,), memory)
                self._enter(come, states, target.composite, memory)
                continue
            come.add(target)
            if self.nodes[target].kind == "composite":
                self._enter(come, self.nodes[target].initial, target, memory)
            self._enter_regions(come, target, memory)

        # only then, since the regions around one may hold another
        for number in self.effective(targets, memory):
            for ancestor in self.ancestors(number, until):
                come.add(ancestor)
                self._enter_regions(come, ancestor, memory)

    def _enter_regions(self, come: set[int], number: int, memory: Memory) -> None:
        if self.nodes[number].kind == "parallel":
            for child in self.nodes[number].children:
                if come.isdisjoint(range(child + 1, self.nodes[child].last + 1)):
                    self._enter(come, (child,), number, memory)

    def beginning(self, leaves: tuple[int, ...] = ()) -> Arc:
        """Return what enters the initial state, or some leaves if given."""
        return Arc(CHART, CHART, CHART, leaves or self.nodes[CHART].initial, BEGIN, None, None)

    # When a composite is done

    def is_done(self, number: int, active: Collection[int]) -> bool:
        """Return whether a composite has come to its end (``isInFinalState``)."""
        node = self.nodes[number]
        if node.kind == "parallel":
            return all(self.is_done(child, active) for child in node.children)
        return any(self.nodes[child].kind == "final" and child in active for child in node.children)

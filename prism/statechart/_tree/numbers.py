"""The tree of a chart's states in numbers, what a step leaves and enters, and the plan of a step.

This is appendix D of the SCXML recommendation (https://www.w3.org/TR/scxml/#AlgorithmforSCXMLInterpretation)
as pure functions of numbers. States are numbered in document order. 0 is the chart itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from prism.statechart._nesting import done
from prism.statechart.states import state_text
from prism.statechart.transitions import ANY_STATE, Action, Guard, Transition

Memory = Mapping[int, tuple[int, ...]]
"""The leaves that were active when a composite was left last, by the composite's number."""

Call = tuple[Action, frozenset[int]]
"""An action, and the states that are active while it runs."""

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

    Attributes:
        texts: Their texts, by number; that of the chart is empty.
        numbers: Their numbers, by text.
        leaves: The states without states inside.
        has_regions: Whether several states may be active side by side.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.texts = ("", *(state_text(node.state) for node in nodes[1:]))
        self.numbers = {text: number for number, text in enumerate(self.texts) if number}
        self.leaves = tuple(node.number for node in nodes[1:] if not node.children)
        self.has_regions = any(node.kind == "parallel" for node in nodes)

    @cached_property
    def begins_by_history(self) -> bool:
        """Whether a history is where some state begins."""
        return any(isinstance(each, HistoryAt) for node in self.nodes for each in node.initial)

    def asks_history(self, arc: Arc) -> bool:
        """Return whether a history decides what a transition enters."""
        return any(self.begins_by_history or isinstance(each, HistoryAt) for each in arc.targets)

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
        around = (each for leaf in leaves for each in (leaf, *self.ancestors(leaf, within)))
        return frozenset(around)

    def is_configuration(self, leaves: tuple[int, ...], within: int = CHART) -> bool:
        """Return whether an agent can be in just these leaves, of those within a composite."""
        if leaves != self.inside(leaves, within):
            return False
        active = self.active(leaves, within)
        for node in (self.nodes[number] for number in (within, *active)):
            wanted = len(node.children) if node.kind == "parallel" else 1
            if node.children and len(active.intersection(node.children)) != wanted:
                return False

        return leaves == tuple(sorted(each for each in active if not self.nodes[each].children))

    # What a transition leaves

    def effective(self, targets: Iterable[int | HistoryAt], memory: Memory) -> list[int]:
        """Return the states that targets stand for now (``getEffectiveTargetStates``)."""
        found: list[int] = []
        for target in targets:
            if not isinstance(target, HistoryAt):
                found.append(target)
            elif target.composite not in memory:
                found += target.default
            elif target.deep:
                found += memory[target.composite]
            else:
                leaves = memory[target.composite]
                own = self.nodes[target.composite].children
                found += [child for child in own if self.inside(leaves, child)]

        return found

    def domain(self, arc: Arc, memory: Memory) -> int | None:
        """Return the state inside which everything is left (``getTransitionDomain``)."""
        targets = self.effective(arc.targets, memory)
        if not targets:
            return None

        around = [*self.ancestors(arc.source)]
        if arc.written.internal:
            around.insert(0, arc.source)
        return next(
            number
            for number in around
            if self.nodes[number].kind == "composite"
            and all(self.is_inside(target, number) for target in targets)
        )

    def exited(self, arc: Arc, active: Collection[int], memory: Memory) -> frozenset[int]:
        """Return the active states that a transition leaves (``computeExitSet``)."""
        domain = self.domain(arc, memory)
        left = active if domain is not None else ()
        return frozenset(each for each in left if self.is_inside(each, domain or CHART))

    def compatible(
        self, arcs: Iterable[Arc], active: Collection[int], memory: Memory
    ) -> tuple[Arc, ...]:
        """Return transitions of several regions, those in conflict left out.

        That is ``removeConflictingTransitions``: the inner source wins, else the earlier region.
        """
        kept: dict[Arc, frozenset[int]] = {}
        for arc in arcs:
            left = self.exited(arc, active, memory)
            rivals = [other for other, its in kept.items() if left & its]
            if all(self.is_inside(arc.source, other.source) for other in rivals):
                for other in rivals:
                    del kept[other]
                kept[arc] = left

        return tuple(kept)

    # What it enters

    def entered(self, arcs: Iterable[Arc], memory: Memory) -> Entering:
        """Return the states that are entered (``computeEntrySet``)."""
        found = Entering(self, memory)
        for arc in arcs:
            found.enter_all(arc.targets, self.domain(arc, memory))
        return found

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


class Entering(set[int]):
    """The states that a step enters, added one after the other.

    Args:
        tree: The states of the chart.
        memory: What histories stand for.
    """

    def __init__(self, tree: Tree, memory: Memory) -> None:
        super().__init__()
        self._tree = tree
        self._memory = memory

    def enter_all(self, targets: Sequence[int | HistoryAt], until: int | None) -> None:
        """Enter targets and what is around them, up to a state that is not entered itself."""
        for target in targets:
            self.enter(target)
        # only then, since the regions around one may hold another
        for number in self._tree.effective(targets, self._memory):
            for ancestor in self._tree.ancestors(number, until):
                self.add(ancestor)
                if self._tree.nodes[ancestor].kind == "parallel":
                    self._enter_regions(ancestor)

    def enter(self, target: int | HistoryAt) -> None:
        """Enter a state and what is inside it (``addDescendantStatesToEnter``)."""
        if isinstance(target, HistoryAt):
            self.enter_all(self._tree.effective((target,), self._memory), target.composite)
            return

        self.add(target)
        node = self._tree.nodes[target]
        if node.kind == "composite":
            self.enter_all(node.initial, target)
        elif node.kind == "parallel":
            self._enter_regions(target)

    def _enter_regions(self, parallel: int) -> None:
        for child in self._tree.nodes[parallel].children:
            if self.isdisjoint(range(child + 1, self._tree.nodes[child].last + 1)):
                self.enter(child)


# What a step does


class Notes(NamedTuple):
    """The changes that a step makes to the memory of an agent, by the texts of states.

    Args:
        left: What a history will stand for: the leaves that are left, by composite.
        stopped: The states that are left and whose time is kept.
        started: The states that are entered and whose time is kept.
    """

    left: Mapping[str, list[str]]
    stopped: tuple[str, ...]
    started: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """One step of an agent from one state.

    Args:
        numbers: Places of the transitions among those written.
        before: Exit actions, innermost first, and the transitions' own, in order.
        after: Entry actions, outermost first.
        leaves: The active leaves afterwards.
        moves: Whether they are others than before.
        exits: Whether any state is left, be it for the same one.
        notes: What the step changes in the agent's memory; None if nothing.
        raised: What is done now: triggers, in order.
        settles: Whether something may follow of itself: eventless transitions, or raised events.
    """

    numbers: tuple[int, ...]
    before: tuple[Call, ...]
    after: tuple[Call, ...]
    leaves: tuple[int, ...]
    moves: bool
    exits: bool
    notes: Notes | None
    raised: tuple[str, ...]
    settles: bool


@dataclass(frozen=True)
class Planner:
    """Plans the steps of one chart.

    Args:
        tree: Its states.
        kept: Composites that a history refers to.
        timed: States whose time is kept.
        reacting: States that have eventless transitions.
        reacts_to: Returns whether the chart reacts to an event; no other need be raised.
    """

    tree: Tree
    kept: frozenset[int]
    timed: frozenset[int]
    reacting: frozenset[int]
    reacts_to: Callable[[str], bool]

    @property
    def remembers(self) -> bool:
        """Whether agents need a memory."""
        return bool(self.kept or self.timed)

    def beginning(self, leaves: tuple[int, ...] = ()) -> Plan:
        """Plan the step that enters the initial state, or some leaves if given."""
        return self.plan((self.tree.beginning(leaves),), (), {})

    def plan(self, arcs: Sequence[Arc], leaves: tuple[int, ...], memory: Memory) -> Plan:
        """Plan the step that some transitions make together.

        Args:
            arcs: The transitions, none of them in conflict.
            leaves: The active leaves; none before an agent begins.
            memory: What the agent's histories stand for.
        """
        active = self.tree.active(leaves)
        gone = frozenset().union(*(self.tree.exited(arc, active, memory) for arc in arcs))
        left = {
            each: self.tree.inside(leaves, each) for each in sorted(gone & self.kept, reverse=True)
        }
        come = self.tree.entered(arcs, {**memory, **left})
        rest = active - gone
        own = [(arc.action, rest) for arc in arcs if arc.action is not None]
        after, raised = self._entries(sorted(come), rest)
        now = rest | come
        entered = tuple(sorted(now.intersection(self.tree.leaves)))
        return Plan(
            tuple(arc.place for arc in arcs) if leaves else (),
            (*self._exits(gone, active), *own),
            after,
            entered,
            leaves not in ((), entered),
            bool(gone),
            self._notes(left, gone, come),
            raised,
            bool(raised or now & self.reacting),
        )

    def _exits(self, gone: Iterable[int], active: frozenset[int]) -> Iterator[Call]:
        for number in sorted(gone, reverse=True):
            for action in self.tree.nodes[number].exit:
                yield action, active
            active -= {number}

    def _entries(
        self, come: Iterable[int], active: frozenset[int]
    ) -> tuple[tuple[Call, ...], tuple[str, ...]]:
        calls: list[Call] = []
        raised: list[str] = []
        for number in come:
            node = self.tree.nodes[number]
            active |= {number}
            calls += [(action, active) for action in node.entry]
            if node.kind == "final":
                raised += filter(self.reacts_to, self.done(node.parent, active))

        return tuple(calls), tuple(raised)

    def _notes(self, left: Memory, gone: Iterable[int], come: Iterable[int]) -> Notes | None:
        texts = self.tree.texts
        stopped, started = (
            tuple(texts[number] for number in sorted(self.timed.intersection(numbers)))
            for numbers in (gone, come)
        )
        if not (left or stopped or started):
            return None
        composites = {
            texts[each]: [texts[leaf] for leaf in leaves] for each, leaves in left.items()
        }
        return Notes(composites, stopped, started)

    def done(self, composite: int, active: Collection[int]) -> list[str]:
        """Return the ``done`` events of a final state: its parent's, and perhaps a parallel's."""
        if composite == CHART:
            return []
        nodes = self.tree.nodes
        raised, parallel = [done(nodes[composite].state)], nodes[composite].parent
        if nodes[parallel].kind == "parallel" and self.tree.is_done(parallel, active):
            raised.append(done(nodes[parallel].state))
        return raised

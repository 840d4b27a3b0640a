"""The states and transitions of a chart in numbers.

States are numbered in document order; 0 is the chart itself, and a flat chart is a tree of depth
one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple

from prism.statechart._parts import Action, EventDescriptor, Guard, History, State, as_tuple
from prism.statechart.states import Configuration, state_text
from prism.statechart.transitions import Transition

CHART = 0


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
        place: Its place among the transitions.
        source: The state it belongs to.
        targets: Where it leads; none if it leaves nothing.
        written: The transition.
        guard: Its guard as a function of agent and context.
        action: Its action, likewise.
    """

    place: int
    source: int
    targets: tuple[int | HistoryAt, ...]
    written: Transition[Any]
    guard: Guard | None
    action: Action | None


def member_of(state: Any) -> Any:
    """Return the member that names a state."""
    return state.state if isinstance(state, State) else state


def with_insides(states: Iterable[Any]) -> Iterator[Any]:
    """Yield states and all that is inside, in document order."""
    for state in states:
        yield state
        if isinstance(state, State):
            yield from with_insides(state.states)


@dataclass(frozen=True)
class Hierarchy:
    """The definition of a chart as it was written, and the same in numbers once it is sound.

    Args:
        states: The states at the top, each a member or a `State`.
        transitions: The transitions as written.
        initial: Where agents begin: a member, or a tuple with one in each region.
        decision_states: As written.
        timeouts: As written.
        final_states: As written.
    """

    states: tuple[Any, ...]
    transitions: tuple[Transition[Any], ...]
    initial: Any
    decision_states: tuple[Any, ...]
    timeouts: Mapping[Any, int]
    final_states: tuple[Any, ...]

    # The states

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The chart itself and all states, by number."""
        nodes: list[Node] = []
        written: list[State[Any]] = []
        final = frozenset(self.final_states)

        def add(item: Any, parent: int) -> int:
            state = item if isinstance(item, State) else State(item)
            kind: Any = "final" if state.state in final else "leaf"
            if state.states:
                kind = "parallel" if state.parallel else "composite"
            node = Node(state.state, len(nodes), parent, kind, state.entry, state.exit)
            nodes.append(node)
            written.append(state)
            node.children = [add(each, node.number) for each in state.states]
            node.last = len(nodes) - 1
            return node.number

        chart: Any = None
        add(State(chart, self.states, initial=self.initial), CHART)
        numbers = {state_text(node.state): node.number for node in nodes}
        for node, state in zip(nodes, written, strict=True):
            targets = tuple(_in_numbers(each, nodes, numbers) for each in state.initial)
            node.initial = targets or tuple(node.children[:1])
        return tuple(nodes)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The texts of the states, by number; that of the chart is empty."""
        return "", *(state_text(node.state) for node in self.nodes[1:])

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The numbers of the states, by text."""
        return {text: number for number, text in enumerate(self.texts) if number}

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """The states without states inside."""
        return tuple(node.number for node in self.nodes[1:] if not node.children)

    @cached_property
    def has_regions(self) -> bool:
        """Whether several states may be active side by side."""
        return any(node.kind == "parallel" for node in self.nodes)

    def state_at(self, leaves: Iterable[int]) -> Any:
        """Return the state of an agent in some leaves: a member, or a configuration."""
        members = [self.nodes[number].state for number in leaves]
        return members[0] if len(members) == 1 else Configuration(members)

    def around(self, leaf: Any) -> tuple[Any, ...]:
        """Return a leaf and the states around it, innermost first."""
        number = self.numbers[state_text(leaf)]
        around = (each for each in self.ancestors(number) if each != CHART)
        return leaf, *(self.nodes[each].state for each in around)

    # The transitions

    @cached_property
    def arcs(self) -> tuple[Arc, ...]:
        """The transitions in numbers."""
        arcs = []
        for number, item in enumerate(self.transitions):
            targets = () if item.target is None else as_tuple(item.target)
            arcs.append(
                Arc(
                    number,
                    self.numbers[state_text(item.source)],
                    tuple(_in_numbers(each, self.nodes, self.numbers) for each in targets),
                    item,
                    item.guard,
                    item.action,
                )
            )
        return tuple(arcs)

    @cached_property
    def arcs_of(self) -> dict[int, list[Arc]]:
        """The transitions by the number of their source."""
        by_source: dict[int, list[Arc]] = {}
        for arc in self.arcs:
            by_source.setdefault(arc.source, []).append(arc)
        return by_source

    def arcs_around(self, leaf: int) -> Iterator[Arc]:
        """Yield the transitions of a leaf, then of what is around it, innermost first."""
        for number in (leaf, *self.ancestors(leaf)):
            yield from self.arcs_of.get(number, ())

    @cached_property
    def eventless(self) -> frozenset[int]:
        """The states that have eventless transitions."""
        return frozenset(arc.source for arc in self.arcs if arc.written.trigger is None)

    @cached_property
    def triggers(self) -> dict[str, None]:
        """The events that the chart knows, in definition order."""
        return {item.trigger: None for item in self.transitions if item.trigger is not None}

    def reacts_to(self, event: object) -> bool:
        """Return whether a transition has an event as its trigger, or describes it."""
        return event in self.triggers or any(
            each.matches(event) for each in self.triggers if isinstance(each, EventDescriptor)
        )

    @cached_property
    def decides(self) -> frozenset[int]:
        """The leaves in which a reasoner may have to choose."""
        states = (self.numbers[state_text(state)] for state in self.decision_states)
        return frozenset(leaf for state in states for leaf in self.leaves_at(state))

    # What is remembered of agents

    def histories(self, arcs: Iterable[Arc]) -> frozenset[int]:
        """Return the composites whose histories may decide what transitions enter."""
        targets = chain.from_iterable(each.targets for each in arcs)
        initial = chain.from_iterable(node.initial for node in self.nodes)
        return frozenset(
            each.composite for each in chain(targets, initial) if isinstance(each, HistoryAt)
        )

    @cached_property
    def kept(self) -> frozenset[int]:
        """The composites that a history refers to."""
        return self.histories(self.arcs)

    @cached_property
    def timed(self) -> frozenset[int]:
        """The states whose time is kept; without composites, a limit needs none."""
        has_composites = len(self.leaves) < len(self.nodes) - 1
        limited = self.timeouts if has_composites else ()
        after = (arc.source for arc in self.arcs if arc.written.after is not None)
        return frozenset(self.numbers[state_text(state)] for state in limited).union(after)

    @cached_property
    def remembers(self) -> bool:
        """Whether anything is remembered of agents."""
        return bool(self.kept or self.timed)

    # Where states lie

    def is_inside(self, number: int, other: int) -> bool:
        """Return whether a state lies inside another one, at any depth."""
        return other < number <= self.nodes[other].last

    def inside(self, numbers: Iterable[int], other: int) -> tuple[int, ...]:
        """Return those of some states that are another one, or lie inside it."""
        return tuple(each for each in numbers if each == other or self.is_inside(each, other))

    def leaves_at(self, number: int) -> Sequence[int]:
        """Return the leaves inside a state, or the leaf itself."""
        # the states inside have the numbers behind it
        last = self.nodes[number].last
        return self.leaves[bisect_left(self.leaves, number) : bisect_right(self.leaves, last)]

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


def _in_numbers(target: Any, nodes: Sequence[Node], numbers: Mapping[str, int]) -> int | HistoryAt:
    if not isinstance(target, History):
        return numbers[state_text(target)]

    node = nodes[numbers[state_text(target.state)]]
    # an initial history does not lead to itself
    states = [each for each in node.initial if isinstance(each, int)] or node.children[:1]
    default = tuple(node.children if node.kind == "parallel" else states)
    if target.default is not None:
        default = tuple(numbers[state_text(each)] for each in as_tuple(target.default))
    return HistoryAt(node.number, target.deep, default)

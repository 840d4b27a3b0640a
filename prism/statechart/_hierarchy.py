"""A chart as it was written: in numbers, and as a flat chart from leaf to leaf."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from prism.statechart._nesting import EventDescriptor, In, State
from prism.statechart._numbers import CHART, Arc, HistoryAt, Node, Tree
from prism.statechart.states import Configuration, state_text
from prism.statechart.transitions import History, Transition, as_tuple, is_any_state


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
    """The definition of a valid chart as it was written; a flat one is a tree of depth one.

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

    # In numbers

    @cached_property
    def tree(self) -> Tree:
        """The states by number."""
        final = frozenset(self.final_states)
        nodes: list[Node] = []
        written: list[State[Any]] = []

        def add(item: Any, parent: int) -> int:
            state = item if isinstance(item, State) else State(item)
            node = Node(state.state, len(nodes), parent, "leaf", state.entry, state.exit)
            nodes.append(node)
            written.append(state)
            node.children = [add(each, node.number) for each in state.states]
            node.last = len(nodes) - 1
            if node.children:
                node.kind = "parallel" if state.parallel else "composite"
            elif node.state in final:
                node.kind = "final"
            return node.number

        chart: Any = None
        add(State(chart, self.states, initial=self.initial), CHART)
        tree = Tree(nodes)
        for node, state in zip(nodes, written, strict=True):
            targets = tuple(self._target(each, tree) for each in state.initial)
            node.initial = targets or tuple(node.children[:1])
        return tree

    @staticmethod
    def _target(target: Any, tree: Tree) -> int | HistoryAt:
        if not isinstance(target, History):
            return tree.numbers[state_text(target)]

        node = tree.nodes[tree.numbers[state_text(target.state)]]
        # an initial history does not lead to itself
        states = [each for each in node.initial if isinstance(each, int)] or node.children[:1]
        default = tuple(node.children) if node.kind == "parallel" else tuple(states)
        if target.default is not None:
            default = tuple(tree.numbers[state_text(each)] for each in as_tuple(target.default))
        return HistoryAt(node.number, target.deep, default)

    @cached_property
    def arcs(self) -> tuple[Arc, ...]:
        """The transitions in numbers; a wildcard gives one for every state at the top."""
        arcs: list[Arc] = []
        for place, item in enumerate(self.transitions):
            targets = () if item.target is None else as_tuple(item.target)
            numbers = tuple(self._target(each, self.tree) for each in targets)
            for source in self._sources(item):
                guard = self._guard(item)
                arcs.append(Arc(len(arcs), place, source, numbers, item, guard, item.action))
        return tuple(arcs)

    def _sources(self, item: Transition[Any]) -> list[int]:
        nodes = self.tree.nodes
        if not is_any_state(item.source):
            return [self.tree.numbers[state_text(item.source)]]
        return [number for number in nodes[CHART].children if nodes[number].kind != "final"]

    def _guard(self, item: Transition[Any]) -> Any:
        guard = item.guard
        return guard.within(self.members_inside(guard.state)) if isinstance(guard, In) else guard

    @cached_property
    def arcs_of(self) -> dict[int, list[Arc]]:
        """The transitions by the number of their source."""
        by_source = defaultdict[int, list[Arc]](list)
        for arc in self.arcs:
            by_source[arc.source].append(arc)
        return by_source

    # What agents need besides their state

    def histories(self, arcs: Iterable[Arc]) -> frozenset[int]:
        """Return the composites whose histories may decide what transitions enter."""
        targets = [target for arc in arcs for target in arc.targets]
        targets += [each for node in self.tree.nodes for each in node.initial]
        return frozenset(each.composite for each in targets if isinstance(each, HistoryAt))

    @cached_property
    def kept(self) -> frozenset[int]:
        """The composites that a history refers to."""
        return self.histories(self.arcs)

    @cached_property
    def timed(self) -> frozenset[int]:
        """The states whose time is kept."""
        limits = self.timeouts if self.tree.has_composites else ()
        limited = frozenset(self.tree.numbers[state_text(state)] for state in limits)
        return limited.union(arc.source for arc in self.arcs if arc.written.after is not None)

    @cached_property
    def remembers(self) -> bool:
        """Whether anything is kept of agents."""
        return bool(self.kept or self.timed)

    # Events

    @cached_property
    def eventless(self) -> frozenset[int]:
        """The states that have eventless transitions."""
        return frozenset(arc.source for arc in self.arcs if arc.written.trigger is None)

    @cached_property
    def triggers(self) -> dict[str, None]:
        """The events that the chart knows, in definition order."""
        return {
            name: None
            for trigger in dict.fromkeys(item.trigger for item in self.transitions)
            if trigger is not None
            for name in (trigger.split() if isinstance(trigger, EventDescriptor) else [trigger])
        }

    @cached_property
    def descriptors(self) -> tuple[EventDescriptor, ...]:
        """The triggers that were read from SCXML, which match events by their beginnings."""
        triggers = dict.fromkeys(item.trigger for item in self.transitions)
        return tuple(each for each in triggers if isinstance(each, EventDescriptor))

    def reacts_to(self, event: object) -> bool:
        """Return whether a transition has an event as its trigger, or matches it."""
        return event in self.triggers or (
            isinstance(event, str) and any(each.matches(event) for each in self.descriptors)
        )

    # As a flat chart

    @property
    def texts(self) -> tuple[str, ...]:
        """All states as text, composites and leaves, in document order."""
        return self.tree.texts[1:]

    @cached_property
    def decides(self) -> frozenset[int]:
        """The leaves in which a reasoner may have to choose."""
        states = (self.tree.numbers[state_text(state)] for state in self.decision_states)
        return frozenset(leaf for state in states for leaf in self.leaves_at(state))

    @property
    def leaves(self) -> tuple[Any, ...]:
        """The states that an agent's state is made of."""
        return self.members(self.tree.leaves)

    def members_inside(self, state: Any) -> tuple[Any, ...]:
        """Return the leaves inside a state, or the leaf itself."""
        return self.members(self.leaves_at(self.tree.numbers[state_text(state)]))

    def around(self, leaf: Any) -> tuple[Any, ...]:
        """Return a leaf and the states around it, innermost first."""
        number = self.tree.numbers[state_text(leaf)]
        return self.members((number, *self.tree.ancestors(number, CHART)))

    def leaves_at(self, number: int) -> Sequence[int]:
        """Return the leaves inside a state, or the leaf itself, as numbers."""
        leaves, last = self.tree.leaves, self.tree.nodes[number].last
        # the states inside have the numbers behind it
        return leaves[bisect_left(leaves, number) : bisect_right(leaves, last)]

    def members(self, numbers: Iterable[int]) -> tuple[Any, ...]:
        """Return states by their numbers."""
        return tuple(self.tree.nodes[number].state for number in numbers)

    @property
    def first(self) -> Any:
        """The state of an agent that begins."""
        entered = self.tree.entered([self.tree.beginning()], {})
        members = self.members(self.tree.leaves_among(entered))
        return members[0] if len(members) == 1 else Configuration(members)

    @cached_property
    def flat(self) -> tuple[Transition[Any], ...]:
        """The transitions from leaf to leaf.

        Those of inner states come first. A transition to a history is one to each state that it may
        stand for, and one into regions leads to each leaf that is entered.
        """
        nodes = self.tree.nodes
        inner_first = sorted(self.arcs, key=lambda arc: -len([*self.tree.ancestors(arc.source)]))
        return tuple(
            arc.written.between(nodes[leaf].state, nodes[end].state, self._guard(arc.written))
            for arc in inner_first
            for leaf in self.leaves_at(arc.source)
            for end in self.ends_of(arc, leaf)
        )

    def ends_of(self, arc: Arc, leaf: int) -> Sequence[int]:
        """Return the leaves to which a transition may lead from one leaf."""
        tree = self.tree
        if not (arc.targets and tree.has_composites):
            return [each for each in arc.targets if isinstance(each, int)] or [leaf]
        if arc.number not in self._ends:
            composites = [each.composite for each in arc.targets if isinstance(each, HistoryAt)]
            # what histories may stand for, one at a time
            memories = [{each: (at,)} for each in composites for at in self.leaves_at(each)]
            entered = (tree.leaves_among(tree.entered([arc], each)) for each in ({}, *memories))
            self._ends[arc.number] = [*dict.fromkeys(chain.from_iterable(entered))]
        return self._ends[arc.number]

    @cached_property
    def _ends(self) -> dict[int, list[int]]:
        return {}

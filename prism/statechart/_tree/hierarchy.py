"""A chart with states inside states, as it was written, checked, and put into numbers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from prism.statechart._asking import told
from prism.statechart._nesting import (
    Configuration,
    EventDescriptor,
    In,
    State,
    done,
    leaf_texts,
)
from prism.statechart._tree.numbers import CHART, Arc, HistoryAt, Memory, Node, Planner, Tree
from prism.statechart.states import state_text
from prism.statechart.transitions import (
    History,
    Transition,
    as_tuple,
    is_any_state,
)


def member_of(state: Any) -> Any:
    """Return the member that names a state."""
    return state.state if isinstance(state, State) else state


def _place(target: Any, nodes: Sequence[Node], numbers: Mapping[str, int]) -> int | HistoryAt:
    """Return a target in numbers."""
    if not isinstance(target, History):
        return numbers[state_text(target)]

    composite = numbers[state_text(target.state)]
    node = nodes[composite]
    # an initial history does not lead to itself
    states = [each for each in node.initial if isinstance(each, int)] or node.children[:1]
    default = tuple(node.children) if node.kind == "parallel" else tuple(states)
    if target.default is not None:
        default = tuple(numbers[state_text(each)] for each in as_tuple(target.default))

    return HistoryAt(composite, target.deep, default)


def with_insides(states: Iterable[Any]) -> Iterator[Any]:
    """Yield states and all that is inside, in document order."""
    for state in states:
        yield state
        if isinstance(state, State):
            yield from with_insides(state.states)


@dataclass(frozen=True)
class Hierarchy:
    """The definition of a valid chart with composites, as it was written.

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
        nodes = [Node(None, CHART, CHART, "composite")]
        self._add(self.states, CHART, nodes)
        numbers = {state_text(node.state): node.number for node in nodes[1:]}
        nodes[CHART].initial = tuple(numbers[state_text(each)] for each in as_tuple(self.initial))
        for state in with_insides(self.states):
            node = nodes[numbers[state_text(member_of(state))]]
            if isinstance(state, State) and state.initial:
                node.initial = tuple(_place(each, nodes, numbers) for each in state.initial)
            elif node.children:
                node.initial = (node.children[0],)

        return Tree(nodes)

    def _add(self, states: Iterable[Any], parent: int, nodes: list[Node]) -> None:
        for state in states:
            number = len(nodes)
            node = Node(member_of(state), number, parent, self._kind(state))
            nodes.append(node)
            nodes[parent].children.append(number)
            if isinstance(state, State):
                node.entry, node.exit = state.entry, state.exit
                self._add(state.states, number, nodes)
            node.last = len(nodes) - 1
        nodes[parent].last = len(nodes) - 1

    def _kind(self, state: Any) -> Any:
        if isinstance(state, State) and state.states:
            return "parallel" if state.parallel else "composite"
        return "final" if member_of(state) in self._final else "leaf"

    @cached_property
    def _final(self) -> frozenset[Any]:
        return frozenset(self.final_states)

    @cached_property
    def arcs(self) -> tuple[Arc, ...]:
        """The transitions in numbers; a wildcard gives one for every state at the top."""
        found: list[Arc] = []
        for place, item in enumerate(self.transitions):
            for source in self._sources(item):
                found.append(self._arc(len(found), place, source, item))

        return tuple(found)

    @cached_property
    def arcs_of(self) -> dict[int, list[Arc]]:
        """The transitions by the number of their source."""
        found: dict[int, list[Arc]] = {}
        for arc in self.arcs:
            found.setdefault(arc.source, []).append(arc)
        return found

    def _arc(self, number: int, place: int, source: int, item: Transition[Any]) -> Arc:
        targets = () if item.target is None else as_tuple(item.target)
        state = self.tree.nodes[source].state
        return Arc(
            number,
            place,
            source,
            tuple(map(self._target, targets)),
            item,
            told(self._guard(item.guard), item, state),
            told(item.action, item, state),
        )

    def _sources(self, item: Transition[Any]) -> list[int]:
        tree = self.tree
        if not is_any_state(item.source):
            return [tree.numbers[state_text(item.source)]]
        top = tree.nodes[CHART].children
        return [number for number in top if tree.nodes[number].kind != "final"]

    def _target(self, target: Any) -> int | HistoryAt:
        return _place(target, self.tree.nodes, self.tree.numbers)

    def _guard(self, guard: Any) -> Any:
        if not isinstance(guard, In):
            return guard
        return guard.within(self.members_inside(guard.state))

    @cached_property
    def planner(self) -> Planner:
        """Plans the steps."""
        targets = [target for arc in self.arcs for target in arc.targets]
        targets += [each for node in self.tree.nodes for each in node.initial]
        return Planner(
            self.tree,
            frozenset(each.composite for each in targets if isinstance(each, HistoryAt)),
            self._timed,
            frozenset(arc.source for arc in self.arcs if arc.written.trigger is None),
            self.reacts_to,
        )

    @property
    def _timed(self) -> frozenset[int]:
        """The states whose time is kept; ``ticks_in_state`` serves flat limits."""
        limits = self.timeouts if self._has_composites else ()
        limited = frozenset(self.tree.numbers[state_text(state)] for state in limits)
        return limited.union(arc.source for arc in self.arcs if arc.written.after is not None)

    @property
    def _has_composites(self) -> bool:
        return any(node.children for node in self.tree.nodes[1:])

    @cached_property
    def triggers(self) -> dict[str, None]:
        """The events that the chart knows, in definition order."""
        return dict.fromkeys(
            name
            for item in self.transitions
            if item.trigger is not None
            for name in (
                item.trigger.split()
                if isinstance(item.trigger, EventDescriptor)
                else [item.trigger]
            )
        )

    @cached_property
    def descriptors(self) -> tuple[EventDescriptor, ...]:
        """The triggers that were read from SCXML, which match events by their beginnings."""
        triggers = dict.fromkeys(item.trigger for item in self.transitions)
        return tuple(each for each in triggers if isinstance(each, EventDescriptor))

    def reacts_to(self, event: object) -> bool:
        """Return whether a transition has an event as its trigger, or matches it."""
        if event in self.triggers:
            return True
        return isinstance(event, str) and any(each.matches(event) for each in self.descriptors)

    @cached_property
    def needs_memory(self) -> bool:
        """Whether agents must have room for what the chart remembers."""
        draws = any(callable(item.after) for item in self.transitions)
        return self.planner.remembers and (draws or self._has_composites)

    @cached_property
    def answers_done(self) -> bool:
        """Whether some transition reacts to the end of a composite."""
        nodes = self.tree.nodes[1:]
        return any(self.reacts_to(done(node.state)) for node in nodes if node.children)

    @cached_property
    def decides(self) -> frozenset[int]:
        """The leaves in which a reasoner may have to choose."""
        numbers = self.tree.numbers
        return frozenset(
            numbers[state_text(leaf)]
            for state in self.decision_states
            for leaf in self.members_inside(state)
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """All states as text, composites and leaves, in document order."""
        return self.tree.texts[1:]

    def active_texts(self, state: Any) -> tuple[str, ...]:
        """Return the active states of an agent's state as text, outermost first."""
        texts = leaf_texts(state) if self.tree.has_regions else [state_text(state)]
        leaves = [self.tree.numbers[text] for text in texts]
        return tuple(self.tree.texts[number] for number in sorted(self.tree.active(leaves)))

    # As a flat chart

    @property
    def deciding(self) -> frozenset[Any]:
        """The same leaves, as members of the enum."""
        return frozenset(self._members(self.decides))

    @property
    def ends(self) -> frozenset[Any]:
        """The final states at the top, in which an agent is done."""
        nodes = self.tree.nodes
        top = nodes[CHART].children
        return frozenset(self._members(each for each in top if nodes[each].kind == "final"))

    @property
    def leaves(self) -> tuple[Any, ...]:
        """The states that an agent's state is made of."""
        return self._members(self.tree.leaves)

    def members_inside(self, state: Any) -> tuple[Any, ...]:
        """Return the leaves inside a state, or the leaf itself."""
        return self._members(self.leaves_at(self.tree.numbers[state_text(state)]))

    def around(self, leaf: Any) -> tuple[Any, ...]:
        """Return a leaf and the states around it, innermost first."""
        number = self.tree.numbers[state_text(leaf)]
        return self._members((number, *self.tree.ancestors(number, CHART)))

    def leaves_at(self, number: int) -> Sequence[int]:
        leaves = self.tree.leaves
        # the states inside have the numbers behind it
        first, last = (
            bisect_left(leaves, number),
            bisect_right(leaves, self.tree.nodes[number].last),
        )
        return leaves[first:last]

    def _members(self, numbers: Iterable[int]) -> tuple[Any, ...]:
        return tuple(self.tree.nodes[number].state for number in numbers)

    @property
    def begins_in(self) -> tuple[int, ...]:
        """The leaves in which an agent begins."""
        return self.planner.beginning().leaves

    @property
    def first(self) -> Any:
        """The state of an agent that begins."""
        members = self._members(self.begins_in)
        return members[0] if len(members) == 1 else Configuration(members)

    @property
    def expanded(self) -> tuple[Transition[Any], ...]:
        """The transitions of a chart without composites, wildcards replaced."""
        nodes = self.tree.nodes
        return tuple(
            replace(item, source=nodes[source].state) if is_any_state(item.source) else item
            for item in self.transitions
            for source in self._sources(item)
        )

    @cached_property
    def flat(self) -> tuple[Transition[Any], ...]:
        """The transitions from leaf to leaf.

        Those of inner states come first. A transition to a history is one to each state that it may
        stand for, and one into regions leads to each leaf that is entered.
        """
        found = []
        for arc in sorted(self.arcs, key=lambda arc: -len([*self.tree.ancestors(arc.source)])):
            for leaf in self.leaves_at(arc.source):
                for target in self.ends_of(arc, leaf):
                    source, end = self._members((leaf, target))
                    found.append(arc.written.between(source, end, self._guard(arc.written.guard)))

        return tuple(found)

    def ends_of(self, arc: Arc, leaf: int) -> Sequence[int]:
        """Return the leaves to which a transition may lead from one leaf."""
        if not arc.targets:
            return [leaf]
        if arc.number not in self._ends:
            self._ends[arc.number] = self._found_ends(arc)
        return self._ends[arc.number]

    @cached_property
    def _ends(self) -> dict[int, list[int]]:
        return {}

    def _found_ends(self, arc: Arc) -> list[int]:
        composites = [each.composite for each in arc.targets if isinstance(each, HistoryAt)]
        # what histories may stand for, one at a time
        memories: list[Memory] = [
            {},
            *({each: (leaf,)} for each in composites for leaf in self.leaves_at(each)),
        ]
        entered = (sorted(self.tree.entered([arc], memory)) for memory in memories)
        leaves = (each for found in entered for each in found if not self.tree.nodes[each].children)
        return [*dict.fromkeys(leaves)]

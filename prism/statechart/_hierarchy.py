"""The states and transitions of a chart in numbers.

States are numbered in document order; 0 is the chart itself, and a flat chart is a tree of depth
one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

from prism.statechart._parts import Action, History, State, as_state, as_tuple
from prism.statechart.states import Configuration, joined, state_text
from prism.statechart.transitions import Transition, is_meant

CHART = 0

Path = tuple[str | int, ...]
"""A part of a chart, such as ``("transitions", 3)`` or ``("states", "idle")``."""

Problem = tuple[Path, str]
"""What is wrong, and where."""


Target: TypeAlias = "int | HistoryAt"
"""A state, or a history, in numbers."""


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
    initial: tuple[Target, ...] = ()
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
        number: Its number among the transitions.
        source: The state it belongs to.
        targets: Where it leads; none if it leaves nothing.
        written: The transition.
    """

    number: int
    source: int
    targets: tuple[Target, ...]
    written: Transition[Any]


class Hierarchy:
    """The states and transitions of a chart in numbers.

    Args:
        written: The arguments of a chart's definition; each transition has one source.

    Attributes:
        problems: What is wrong with the names of states, and makes all else meaningless; each with
            the place in the chart.
        nodes: The chart itself and all states, by number.
        texts: Their texts, by number; that of the chart is empty.
        numbers: The numbers of the states, by text.
        leaves: The states without states inside.
        has_regions: Whether several states may be active side by side.
        arcs: The transitions in numbers.
        triggers: The events that the chart knows, in definition order.
        eventless: The states that have eventless transitions.
        has_shares: Whether any transition has a probability.
        decides: The leaves in which a reasoner may have to choose.
        histories: The histories to which transitions and composites lead.
        kept: The composites that they refer to.
        timed: The states whose time is kept; without composites, a limit needs none.
    """

    def __init__(self, written: Mapping[str, Any]) -> None:
        chart: Any = None
        transitions: Sequence[Transition[Any]] = written["transitions"]
        self.problems: list[Problem] = []
        self.nodes: list[Node] = []
        root = State(chart, written["states"], initial=written["initial"])
        self._add(root, CHART, frozenset(written["final_states"]))
        self.texts: tuple[str, ...] = ("", *(state_text(node.state) for node in self.nodes[1:]))
        self.numbers: dict[str, int] = {text: number for number, text in enumerate(self.texts)}
        self._listing = joined(self.texts[1:])
        # inner ones first: an initial history leads where its composite does
        for node in reversed(self.nodes):
            path = ("states", self.texts[node.number]) if node.number else ("initial",)
            node.initial = self._targets(node.initial, path, "initial") or tuple(node.children[:1])
        self.leaves: tuple[int, ...] = self.leaves_among(range(1, len(self.nodes)))
        self.has_regions: bool = any(node.kind == "parallel" for node in self.nodes)

        self.arcs: tuple[Arc, ...] = tuple(self._arc(*each) for each in enumerate(transitions))
        self._arcs_of: dict[int, list[Arc]] = {}
        for arc in self.arcs:
            self._arcs_of.setdefault(arc.source, []).append(arc)
        triggers = (each.trigger for each in transitions if each.trigger is not None)
        self.triggers: dict[str, Any] = dict.fromkeys(triggers)
        eventless = (arc.source for arc in self.arcs if arc.written.trigger is None)
        self.eventless: frozenset[int] = frozenset(eventless)
        self.has_shares: bool = any(arc.written.probability for arc in self.arcs)

        deciding, limited, _ = (
            [self._number(each, (key,), key) for each in written[key]]
            for key in ("decision_states", "timeouts", "final_states")
        )
        self.decides: frozenset[int] = frozenset(chain(*map(self.leaves_at, {*deciding})))
        every = chain(*(arc.targets for arc in self.arcs), *(node.initial for node in self.nodes))
        histories = (each for each in every if isinstance(each, HistoryAt))
        self.histories: dict[HistoryAt, Any] = dict.fromkeys(histories)
        self.kept: frozenset[int] = frozenset(each.composite for each in self.histories)
        has_composites = len(self.leaves) < len(self.nodes) - 1
        after = (arc.source for arc in self.arcs if arc.written.after is not None)
        self.timed: frozenset[int] = frozenset(chain(limited if has_composites else (), after))

    def _add(self, item: Any, parent: int, final: Collection[Any]) -> int:
        """Number a state and all that is inside."""
        state: Any = as_state(item)
        kind: Any = "final" if state.state in final else "leaf"
        if state.states:
            kind = "parallel" if state.parallel else "composite"
        node = Node(state.state, len(self.nodes), parent, kind, state.entry, state.exit)
        self.nodes.append(node)
        node.children = [self._add(each, node.number, final) for each in state.states]
        node.initial, node.last = state.initial, len(self.nodes) - 1
        return node.number

    def _arc(self, number: int, item: Transition[Any]) -> Arc:
        about = ("transitions", number), item
        source, targets = self._number(item.source, *about), self._targets(item.target, *about)
        return Arc(number, source, targets, item)

    def _number(self, state: Any, path: Path, what: object) -> int:
        number = self.numbers.get(state_text(state), CHART) if isinstance(state, Enum) else CHART
        # members of two enums are equal if their texts are
        if type(self.nodes[number].state) is not type(state):
            problem = f"{what}: {state!r} is not among the states ({self._listing})"
            if isinstance(state, str) and not isinstance(state, Enum) and state in self.numbers:
                member = self.nodes[self.numbers[state]].state
                problem += f": use {type(member).__name__}.{member.name}"
            self.problems.append((path, problem))
        return number

    def _targets(self, targets: Any, *about: Any) -> tuple[Target, ...]:
        return tuple(self._target(each, *about) for each in as_tuple(targets))

    def _target(self, target: Any, *about: Any) -> Target:
        if not isinstance(target, History):
            return self._number(target, *about)

        node = self.nodes[self._number(target.state, *about)]
        default = tuple(self._number(each, *about) for each in as_tuple(target.default))
        if not default:
            # an initial history does not lead to itself
            states = [each for each in node.initial if isinstance(each, int)] or node.children[:1]
            default = tuple(node.children if node.kind == "parallel" else states)
        return HistoryAt(node.number, target.deep, default)

    # The states

    def state_at(self, leaves: Iterable[int]) -> Any:
        """Return the state of an agent in some leaves: a member, or a configuration."""
        members = self.members(leaves)
        return members[0] if len(members) == 1 else Configuration(members)

    def members(self, numbers: Iterable[int]) -> tuple[Any, ...]:
        """Return the members of the enum that are states."""
        return tuple(self.nodes[number].state for number in numbers)

    def around(self, leaf: Any) -> tuple[Any, ...]:
        """Return a leaf and the states around it, innermost first."""
        return leaf, *self.members([*self.ancestors(self.numbers[state_text(leaf)])][:-1])

    # The transitions

    def arcs_around(self, leaf: int) -> Iterator[Arc]:
        """Yield the transitions of a leaf, then of what is around it, innermost first."""
        for number in (leaf, *self.ancestors(leaf)):
            yield from self._arcs_of.get(number, ())

    def reacts_to(self, event: object) -> bool:
        """Return whether a transition has an event as its trigger, or describes it."""
        return event in self.triggers or any(is_meant(event, each) for each in self.triggers)

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

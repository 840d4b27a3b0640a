"""The content of a diagram as plain texts, and what an agent does in it on each level of states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile

Counts = Mapping[tuple[str, str], int]
Ends = tuple[str | None, str]

_TOGETHER = "+"
"""Stands between states that an agent is in at once."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """All transitions from one state to another, drawn as one arrow.

    Args:
        source: Source state; None for every other state, including the target if it has the
            transition.
        target: Target state.
        labels: One text for each transition, such as ``"decides [should_engage] / note"``.
    """

    source: str | None
    target: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Box:
    """The content of a state in a diagram.

    Args:
        inside: Names of the states directly inside, in the order in which they are drawn.
        initial: The state inside that is entered first, unless the states inside are regions.
        is_parallel: Whether the states inside are regions, all of which are active together.
    """

    inside: tuple[str, ...]
    initial: tuple[str, ...] = ()
    is_parallel: bool = False


@dataclass(frozen=True, slots=True)
class Diagram:
    """States and the arrows between them; made from a chart, or by a report from a log.

    Args:
        states: Names of all states, each once, in the order in which they are drawn.
        arrows: The transitions.
        initial: State that agents start in, if known.
        name: Title of the diagram.
        decision_states: States in which a reasoner is asked.
        final_states: States in which an agent has finished.
        boxes: The content of each state that has states inside.
        notes: Lines below a state's name, such as ``time-out after 2 ticks`` or ``entry / unlock``.
        histories: What is drawn for each history: ``H`` or ``H*``.
    """

    states: tuple[str, ...]
    arrows: tuple[Arrow, ...]
    initial: str | None = None
    name: str = "statechart"
    decision_states: frozenset[str] = frozenset()
    final_states: frozenset[str] = frozenset()
    boxes: Mapping[str, Box] = field(default_factory=dict)
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    histories: Mapping[str, str] = field(default_factory=dict)


class Levels:
    """Which states and arrows belong to which level; None is the outermost.

    Args:
        diagram: A diagram, with or without nested states.

    Attributes:
        diagram: The same.
        arrows: The arrows of each level by their ends, with their labels.
    """

    def __init__(self, diagram: Diagram) -> None:
        self.diagram: Diagram = diagram
        self.arrows: dict[str | None, dict[Ends, dict[str, None]]] = {}
        self._around = {name: state for state, box in diagram.boxes.items() for name in box.inside}
        for arrow in diagram.arrows:
            self.add(arrow)

    def add(self, arrow: Arrow) -> None:
        """Put an arrow on the innermost level that has both of its ends."""
        source, target = arrow.source, arrow.target
        from_top = [source] if source is None else [*self._path(source)]
        to_top = self._path(target)
        pairs = zip(from_top[:-1], to_top[:-1], strict=False)
        depth = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        while depth and self.is_parallel(from_top[depth - 1]):
            # no arrow leads from region to region: it starts at the enclosing state
            depth -= 1

        ends = from_top[depth], to_top[depth]
        level = self.arrows.setdefault(from_top[depth - 1] if depth else None, {})
        before = f"{source}: " if ends[0] != source else ""
        behind = f" → {self.diagram.histories.get(target, target)}" if ends[1] != target else ""
        labels = {f"{before}{label}{behind}": None for label in arrow.labels}
        level[ends] = level.get(ends, {}) | labels

    def _path(self, state: str) -> list[str]:
        """Return a state and the states around it, outermost first."""
        path = [state]
        while path[0] in self._around:
            path.insert(0, self._around[path[0]])
        return path

    def level_of(self, state: str | None) -> str | None:
        """Return the state around another one."""
        return None if state is None else self._around.get(state)

    def is_parallel(self, state: str | None) -> bool:
        """Return True if regions are inside a state."""
        return state in self.diagram.boxes and self.diagram.boxes[state or ""].is_parallel

    def states(self, level: str | None) -> list[str]:
        """Return the states of a level."""
        return [each for each in self.diagram.states if self.level_of(each) == level]

    def initial(self, level: str | None) -> tuple[str, ...]:
        """Return what is entered first inside a state, or in the whole diagram."""
        if level is not None:
            return self.diagram.boxes[level].initial
        return () if self.diagram.initial is None else (self.diagram.initial,)

    def beginning(self, level: str | None) -> tuple[str, str] | None:
        """Return the state of a level that is entered first, and what is entered inside it.

        The second is empty if the dots inside the boxes lead there.
        """
        for initial in self.initial(level)[:1]:
            path = self._path(initial)
            first = state = path[0 if level is None else path.index(level) + 1]
            while state != initial and (box := self.diagram.boxes.get(state)):
                state = (*box.initial, *box.inside)[0]
            return first, "" if state == initial else initial
        return None

    def active(self, state: str) -> dict[str, None]:
        """Return the states that an agent is in, those around others before them.

        Args:
            state: Where the agent is: a state, or states in regions, as in ``work+pocket``.
        """
        is_one = state in self.diagram.states or not self.diagram.boxes
        leaves = [state] if is_one else state.split(_TOGETHER)
        return dict.fromkeys(each for leaf in leaves for each in self._path(leaf))

    def used(self, source: str, target: str) -> dict[tuple[str, str], None]:
        """Return the ends of the arrows that take an agent to another state.

        An agent that changes in several regions takes one arrow in each. If no arrow joins the
        changed states, the self-transition of a state around them is used, if there is one.
        """
        before, after = self.active(source), self.active(target)
        left = {self.level_of(state): state for state in before if state not in after}
        entered = {self.level_of(state): state for state in after if state not in before}
        # what lies deeper on only one of both sides is left or entered with what is around it
        changed = [(left[level], entered[level]) for level in left if level in entered]
        # the innermost with a self-transition, else a leaf
        *_, last = sorted(before, key=lambda state: self.has((state, state)))
        return dict.fromkeys(self._used_arrow(*ends) for ends in changed or [(last, last)])

    def _used_arrow(self, source: str, target: str) -> tuple[str, str]:
        """Return the ends of the arrow that leads from a state to another of the same level."""
        level, histories = self.level_of(source), self.diagram.histories
        arrows = [
            (source, target),
            *((source, history) for history in histories if self.level_of(history) == level),
            *((state, state) for state in self._path(source)[-2::-1]),
        ]
        return next(filter(self.has, arrows), (source, target))

    def has(self, ends: Ends) -> bool:
        """Return True if an arrow of the diagram joins two states of one level."""
        return ends in self.arrows.get(self.level_of(ends[0]), {})

    def traffic(self, counts: Counts) -> Counter[tuple[str, str]]:
        """Return how often each arrow was used, by its ends.

        Args:
            counts: How often agents made each transition between states.
        """
        totals = Counter[tuple[str, str]]()
        for (source, target), count in counts.items():
            totals.update(dict.fromkeys(self.used(source, target), count))

        return totals

    def agents(self, counts: Mapping[str, int]) -> Counter[str]:
        """Return the number of agents in each state, including the states inside it.

        Args:
            counts: The agents in each state or set of states.
        """
        totals = Counter[str]()
        for state, count in counts.items():
            totals.update(dict.fromkeys(self.active(state), count))

        return totals

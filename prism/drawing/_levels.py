"""Nested states: the level of each, and the arrow that an agent takes on each level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import takewhile
from typing import TypeVar

from prism.drawing._diagram import Arrow, Diagram

Counts = Mapping[tuple[str, str], int]

_Told = TypeVar("_Told")

_TOGETHER = "+"
"""Stands between states that an agent is in at once."""


class Levels:
    """Which states and arrows belong to which level; None is the outermost.

    Args:
        diagram: A diagram, with or without nested states.

    Attributes:
        diagram: The same.
    """

    def __init__(self, diagram: Diagram) -> None:
        self.diagram: Diagram = diagram
        self._around = {name: state for state, box in diagram.boxes.items() for name in box.inside}
        self._arrows: dict[str | None, dict[tuple[str, str], dict[str, None]]] = {}
        for arrow in diagram.arrows:
            self._add(arrow)

    def _add(self, arrow: Arrow) -> None:
        source, target = arrow.source or arrow.target, arrow.target
        from_top, to_top = self._path(source), self._path(target)
        pairs = zip(from_top[:-1], to_top[:-1], strict=False)
        depth = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        level = from_top[depth - 1] if depth else None
        if level is not None and self.diagram.boxes[level].is_parallel:
            # no arrow leads from region to region: it starts at the enclosing state
            depth -= 1
            level = from_top[depth - 1] if depth else None

        ends = from_top[depth], to_top[depth]
        labels = self._arrows.setdefault(level, {}).setdefault(ends, {})
        for label in arrow.labels:
            before = f"{source}: " if ends[0] != source else ""
            behind = f" → {self._shown(target)}" if ends[1] != target else ""
            labels[before + label + behind] = None

    def _path(self, state: str) -> list[str]:
        """Return a state and the states around it, outermost first."""
        found = [state]
        while found[0] in self._around:
            found.insert(0, self._around[found[0]])
        return found

    def _shown(self, state: str) -> str:
        return self.diagram.marks.get(state, state)

    def at(self, state: str | None) -> Diagram:
        """Return one level as a diagram."""
        whole = self.diagram
        if state is None:
            states = tuple(each for each in whole.states if each not in self._around)
            initial = None if whole.initial is None else self._path(whole.initial)[0]
        else:
            states = whole.boxes[state].inside
            begins = whole.boxes[state].initial
            path = self._path(begins[0]) if begins else []
            initial = path[path.index(state) + 1] if path else None

        return Diagram(
            states,
            tuple(
                Arrow(*ends, tuple(labels)) for ends, labels in self._arrows.get(state, {}).items()
            ),
            initial,
            whole.name,
            whole.decision_states.intersection(states),
            _among(whole.timeouts, states),
            whole.final_states.intersection(states),
            notes=_among(whole.notes, states),
            marks=_among(whole.marks, states),
        )

    def begins_in(self) -> str | None:
        """Return the initial state, if the dots inside the boxes do not lead to it."""
        initial = self.diagram.initial
        if initial is None:
            return None

        state = self._path(initial)[0]
        while state != initial and state in self.diagram.boxes:
            box = self.diagram.boxes[state]
            state = (*box.initial, *box.inside)[0]

        return None if state == initial else initial

    def histories_of(self, state: str) -> list[str]:
        """Return the histories of a state with regions, which lie outside its regions."""
        box, marks = self.diagram.boxes.get(state), self.diagram.marks
        if box is None or not box.is_parallel:
            return []
        return [each for each in box.inside if each in marks]

    def level_of(self, state: str) -> str | None:
        """Return the state around another one."""
        return self._around.get(state)

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
        if not self.diagram.boxes:
            return {(source, target): None}

        before, after = self.active(source), self.active(target)
        left = {self.level_of(state): state for state in before if state not in after}
        entered = {self.level_of(state): state for state in after if state not in before}
        # what lies deeper on only one of both sides is left or entered with what is around it
        changed = [(left[level], entered[level]) for level in left if level in entered]
        if not changed:
            changed = [self._kept(before)]

        return dict.fromkeys(self._taken(*ends) for ends in changed)

    def _kept(self, active: Iterable[str]) -> tuple[str, str]:
        """Return the innermost self-transition, or the place to draw one."""
        inner = sorted(active, key=lambda state: -len(self._path(state)))
        loops = ((state, state) for state in inner)
        return next((ends for ends in loops if self.has(ends)), (inner[0], inner[0]))

    def _taken(self, source: str, target: str) -> tuple[str, str]:
        """Return the ends of the arrow that leads from a state to another of the same level."""
        level = self.level_of(source)
        beside = () if level is None else self.diagram.boxes[level].inside
        marks = (each for each in beside if each in self.diagram.marks)
        around = self._path(source)[-2::-1]
        ways = [
            (source, target),
            *((source, mark) for mark in marks),
            *((state, state) for state in around),
        ]
        return next(filter(self.has, ways), (source, target))

    def has(self, ends: tuple[str, str]) -> bool:
        """Return True if an arrow of the diagram joins two states of one level."""
        return ends in self._arrows.get(self.level_of(ends[0]), {})

    def labels(self, source: str, target: str) -> dict[str, None]:
        """Return the labels of the arrows from an agent's state to another state."""
        before, after = self.active(source), self.active(target)
        return {
            label: None
            for arrow in self.diagram.arrows
            if arrow.target in after and (arrow.source is None or arrow.source in before)
            for label in arrow.labels
        }

    def traffic(self, counts: Counts) -> Counter[tuple[str, str]]:
        """Return how often each arrow was used, by its ends.

        Args:
            counts: How often agents made each transition between states.
        """
        found = Counter[tuple[str, str]]()
        for (source, target), count in counts.items():
            for ends in self.used(source, target):
                found[ends] += count

        return found

    def agents(self, counts: Mapping[str, int]) -> Counter[str]:
        """Return the number of agents in each state, including the states inside it.

        Args:
            counts: The agents in each state or set of states.
        """
        found = Counter[str]()
        for state, count in counts.items():
            for each in self.active(state):
                found[each] += count

        return found


def _among(told: Mapping[str, _Told], states: Collection[str]) -> dict[str, _Told]:
    """Return the entries for these states."""
    return {name: each for name, each in told.items() if name in states}

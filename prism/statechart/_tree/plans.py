"""The plan of a step, made once: what is exited and entered, and which actions run when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from prism.statechart._nesting import done
from prism.statechart._tree.numbers import CHART, Arc, Entering, Memory, Tree
from prism.statechart.states import state_text
from prism.statechart.transitions import Action

Call = tuple[Action, frozenset[int]]
"""An action, and the states that are active while it runs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One step of an agent from one state.

    Args:
        numbers: Places of the transitions among those written.
        before: Exit actions, innermost first, and the transitions' own, in order.
        after: Entry actions, outermost first.
        leaves: The active leaves afterwards.
        left: What a history will stand for, by the composite's text: the texts of its leaves.
        stopped: Texts of the states that are left and whose time is kept.
        started: Texts of the states that are entered and whose time is kept.
        raised: Triggers of what is done now, in order.
        settles: Whether something may follow of itself: eventless transitions, or raised events.
        remembers: Whether the step changes the agent's memory.
    """

    numbers: tuple[int, ...]
    before: tuple[Call, ...]
    after: tuple[Call, ...]
    leaves: tuple[int, ...]
    left: Mapping[str, list[str]]
    stopped: tuple[str, ...]
    started: tuple[str, ...]
    raised: tuple[str, ...]
    settles: bool
    remembers: bool

    is_open: ClassVar[bool] = False
    """Whether it must be resolved first; a plan is what has been."""


@dataclass(frozen=True)
class Planner:
    """Plans the steps of one chart.

    Args:
        tree: Its states.
        kept: Composites that a history refers to.
        timed: States whose time is kept.
        reacting: States that have eventless transitions.
        triggers: The triggers of the chart; nothing else need be raised.
        is_document: Whether it was read from SCXML, whose content raises events itself.
    """

    tree: Tree
    kept: frozenset[int]
    timed: frozenset[int]
    reacting: frozenset[int]
    triggers: Collection[str]
    is_document: bool = False

    @property
    def remembers(self) -> bool:
        """Whether agents need a memory."""
        return bool(self.kept or self.timed or self.is_document)

    def plan(self, arcs: Sequence[Arc], leaves: tuple[int, ...], memory: Memory) -> Plan:
        """Plan the step that some transitions make together.

        Args:
            arcs: The transitions, none of them in conflict.
            leaves: The active leaves.
            memory: What the agent's histories stand for.
        """
        active = self.tree.active(leaves)
        gone = sorted(
            {number for arc in arcs for number in self.tree.exited(arc, active, memory)},
            reverse=True,
        )
        left = self._remembered(gone, leaves)
        come = self.tree.entered(arcs, {**memory, **left})

        before = self._exits(gone, active)
        rest = active.difference(gone)
        before += [(arc.action, rest) for arc in arcs if arc.action is not None]

        return self._planned(tuple(arc.place for arc in arcs), before, gone, left, rest, come)

    def beginning(self, leaves: Iterable[int] = ()) -> Plan:
        """Plan the step in which an agent enters some leaves, by default the initial ones."""
        come = self.tree.begun()
        if leaves:
            come = Entering()
            come.update(self.tree.active(leaves))
        return self._planned((), [], [], {}, frozenset(), come)

    def histories(self, arcs: Iterable[Arc]) -> tuple[int, ...]:
        """Return the composites whose histories decide what transitions enter."""
        named = {
            target.composite: None
            for arc in arcs
            for target in arc.targets
            if not isinstance(target, int)
        }
        return (*named, *self.tree.initial_histories)

    def _planned(
        self,
        numbers: tuple[int, ...],
        before: list[Call],
        gone: Iterable[int],
        left: Memory,
        rest: frozenset[int],
        entering: Entering,
    ) -> Plan:
        come = sorted(entering)
        after, events = self._entries(come, rest, entering.content)
        raised = tuple(trigger for trigger in events if trigger in self.triggers)
        active = rest.union(come)
        if self.is_document and any(map(self._ends, come)):
            # ``exitInterpreter``: nobody leaves the states that are active now
            after += self._exits(sorted(active, reverse=True), active)

        stopped, started = self._timed_texts(gone), self._timed_texts(come)
        return Plan(
            numbers,
            tuple(before),
            tuple(after),
            tuple(filter(self._is_leaf, sorted(active))),
            {self._text(number): [*map(self._text, found)] for number, found in left.items()},
            stopped,
            started,
            raised,
            bool(raised or active & self.reacting or self.is_document),
            bool(left or stopped or started),
        )

    def _remembered(self, gone: Iterable[int], leaves: Sequence[int]) -> dict[int, tuple[int, ...]]:
        return {
            number: tuple(leaf for leaf in leaves if self.tree.is_inside(leaf, number))
            for number in gone
            if number in self.kept
        }

    def _exits(self, gone: Iterable[int], active: frozenset[int]) -> list[Call]:
        calls: list[Call] = []
        for number in gone:
            calls += [(action, active) for action in self.tree.nodes[number].exit]
            active -= {number}
        return calls

    def _entries(
        self, come: Iterable[int], active: frozenset[int], content: Mapping[int, Sequence[Action]]
    ) -> tuple[list[Call], list[str]]:
        calls: list[Call] = []
        raised: list[str] = []
        for number in come:
            node = self.tree.nodes[number]
            active |= {number}
            calls += [(action, active) for action in (*node.entry, *content.get(number, ()))]
            if node.kind == "final" and not self.is_document:
                raised += self.done(node.parent, active)
        return calls, raised

    def _is_leaf(self, number: int) -> bool:
        return not self.tree.nodes[number].children

    def _ends(self, number: int) -> bool:
        node = self.tree.nodes[number]
        return node.kind == "final" and node.parent == CHART

    def done(self, composite: int, active: Collection[int]) -> list[str]:
        """Return the ``done`` events of a final state: its parent's, and perhaps a parallel's."""
        if composite == CHART:
            return []
        nodes = self.tree.nodes
        raised, parallel = [done(nodes[composite].state)], nodes[composite].parent
        if nodes[parallel].kind == "parallel" and self.tree.is_done(parallel, active):
            raised.append(done(nodes[parallel].state))
        return raised

    def _text(self, number: int) -> str:
        return state_text(self.tree.nodes[number].state)

    def _timed_texts(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._text(number) for number in numbers if number in self.timed)

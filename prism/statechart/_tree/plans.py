"""The plan of a step, made once: what is exited and entered, and which actions run when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from prism.statechart._nesting import done
from prism.statechart._tree.numbers import CHART, Arc, Entering, HistoryAt, Memory, Tree
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
        moves: Whether they are others than before.
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
    moves: bool
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

    def asks_history(self, arc: Arc) -> bool:
        """Return whether a history decides what a transition enters."""
        return any(
            self.tree.begins_by_history or isinstance(each, HistoryAt) for each in arc.targets
        )

    def plan(
        self,
        arcs: Sequence[Arc],
        leaves: tuple[int, ...],
        memory: Memory,
        entering: Entering | None = None,
    ) -> Plan:
        """Plan the step that some transitions make together.

        Args:
            arcs: The transitions, none of them in conflict.
            leaves: The active leaves.
            memory: What the agent's histories stand for.
            entering: What is entered, where no transition says it: when an agent begins.
        """
        tree, texts = self.tree, self.tree.texts
        active = tree.active(leaves)
        exited = (tree.exited(arc, active, memory) for arc in arcs)
        gone = sorted(frozenset().union(*exited), reverse=True)
        left = {each: tree.inside(leaves, each) for each in gone if each in self.kept}
        if entering is None:
            entering = tree.entered(arcs, {**memory, **left})
        come, rest = sorted(entering), active.difference(gone)
        now = rest.union(come)

        before = self._exits(gone, active)
        before += [(arc.action, rest) for arc in arcs if arc.action is not None]
        after, raised = self._entries(come, rest, entering.content)
        entered = tuple(sorted(now.intersection(tree.leaves)))
        stopped, started = self._timed_texts(gone), self._timed_texts(come)
        return Plan(
            tuple(arc.place for arc in arcs),
            tuple(before),
            tuple(after),
            entered,
            bool(arcs) and entered != leaves,
            {texts[each]: [texts[leaf] for leaf in found] for each, found in left.items()},
            stopped,
            started,
            tuple(raised),
            bool(raised or now & self.reacting or self.is_document),
            bool(left or stopped or started),
        )

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
                events = self.done(node.parent, active)
                raised += [trigger for trigger in events if trigger in self.triggers]

        if self.is_document and not active.isdisjoint(self._ends):
            # ``exitInterpreter``: nobody leaves the states that are active now
            calls += self._exits(sorted(active, reverse=True), active)
        return calls, raised

    @property
    def _ends(self) -> list[int]:
        """The final states at the top."""
        nodes = self.tree.nodes
        return [each for each in nodes[CHART].children if nodes[each].kind == "final"]

    def done(self, composite: int, active: Collection[int]) -> list[str]:
        """Return the ``done`` events of a final state: its parent's, and perhaps a parallel's."""
        if composite == CHART:
            return []
        nodes = self.tree.nodes
        raised, parallel = [done(nodes[composite].state)], nodes[composite].parent
        if nodes[parallel].kind == "parallel" and self.tree.is_done(parallel, active):
            raised.append(done(nodes[parallel].state))
        return raised

    def _timed_texts(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.tree.texts[number] for number in numbers if number in self.timed)

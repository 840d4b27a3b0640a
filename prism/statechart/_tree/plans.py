"""The plan of a step, made once: what is exited and entered, and which actions run when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from prism.statechart._nesting import done
from prism.statechart._tree.numbers import CHART, Arc, Memory, Tree
from prism.statechart.transitions import Action

Call = tuple[Action, frozenset[int]]
"""An action, and the states that are active while it runs."""


class Notes(NamedTuple):
    """What a step changes in the memory of an agent, by the texts of states.

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
        notes: What the step changes in the agent's memory; None if nothing.
        raised: What is done now: triggers, each with its context, in order.
        settles: Whether something may follow of itself: eventless transitions, or raised events.
    """

    numbers: tuple[int, ...]
    before: tuple[Call, ...]
    after: tuple[Call, ...]
    leaves: tuple[int, ...]
    moves: bool
    notes: Notes | None
    raised: tuple[tuple[str, Any], ...]
    settles: bool

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
        after, raised = self._entries(sorted(come), rest, come.content)
        now = rest | come
        entered = tuple(sorted(now.intersection(self.tree.leaves)))
        return Plan(
            tuple(arc.place for arc in arcs) if leaves else (),
            (*self._exits(gone, active), *own),
            after,
            entered,
            leaves not in ((), entered),
            self._notes(left, gone, come),
            raised,
            bool(raised or now & self.reacting or self.is_document),
        )

    def _exits(self, gone: Iterable[int], active: frozenset[int]) -> Iterator[Call]:
        for number in sorted(gone, reverse=True):
            for action in self.tree.nodes[number].exit:
                yield action, active
            active -= {number}

    def _entries(
        self, come: Iterable[int], active: frozenset[int], content: Mapping[int, Sequence[Action]]
    ) -> tuple[tuple[Call, ...], tuple[tuple[str, Any], ...]]:
        calls: list[Call] = []
        raised: list[tuple[str, Any]] = []
        for number in come:
            node = self.tree.nodes[number]
            active |= {number}
            calls += [(action, active) for action in (*node.entry, *content.get(number, ()))]
            if node.kind == "final" and not self.is_document:
                # nothing says what is done is about
                events = self.done(node.parent, active)
                raised += [(each, None) for each in events if each in self.triggers]

        top = self.tree.nodes[CHART].children
        if self.is_document and any(
            self.tree.nodes[each].kind == "final" for each in active.intersection(top)
        ):
            # ``exitInterpreter``: nobody leaves the states that are active now
            calls += self._exits(active, active)
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

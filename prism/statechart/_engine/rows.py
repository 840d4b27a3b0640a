"""What may react to an event in a chart with composites, and the steps that follow.

That depends on the active leaves alone: the transitions of what lies around a leaf come behind its
own. It is read on first use, and the latest is kept. What only the moment decides, by guards,
chance and histories, is left to a `Moment`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from itertools import chain, groupby, islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

from prism.statechart._appendix_d import Memory, beginning, compatible, entered, is_done
from prism.statechart._definition import ROUNDING, Definition
from prism.statechart._engine.machine import PASSED, Verdict, evaluate
from prism.statechart._hierarchy import CHART, Arc
from prism.statechart._parts import Action, done
from prism.statechart.memory import random_of, remembered
from prism.statechart.states import SEPARATOR, is_text, state_text
from prism.statechart.transitions import Edge, is_meant, trigger_text
from prism.telemetry.instruments import installed

if TYPE_CHECKING:
    from prism.statechart._hierarchy import Hierarchy

MOST_KEPT = 20_000
"""Configurations, events in them, and steps that are kept; there may be more than fit."""

MOST_OUTCOMES = 1000
"""Combinations of several regions' transitions that are listed for an event."""


class Resolved(NamedTuple):
    """An agent's state as numbers of the tree.

    Args:
        value: The leaf's member, or the configuration.
        leaves: The numbers of the active leaves, in document order.
        active: The numbers of all active states.
        around: Their members, outermost first.
    """

    value: Any
    leaves: tuple[int, ...]
    active: frozenset[int]
    around: tuple[Any, ...]


NOWHERE = Resolved(None, (), frozenset(), ())
"""Where an agent is that has not begun."""


@dataclass(slots=True)
class Plan:
    """What one step does.

    Args:
        arcs: The transitions that it makes.
        before: Exit actions, innermost first, and the transitions' own, in order.
        after: Entry actions, outermost first.
        exits: Whether any state is left, be it for the same one.
        left: What histories stand for then: texts of leaves, by that of the composite.
        stopped: The texts of states that are left and whose time is kept.
        started: The texts of states that are entered and whose time is kept.
        raised: What is done now: triggers, in order.
    """

    arcs: tuple[Arc, ...]
    before: tuple[Action, ...]
    after: tuple[Action, ...]
    exits: bool
    left: dict[str, list[str]]
    stopped: tuple[str, ...]
    started: tuple[str, ...]
    raised: tuple[str, ...]


class NestedRows:
    """What may react, by state and event, and the steps that follow.

    Args:
        tree: The chart's states and transitions.

    Attributes:
        tree: As given.
        resolve: Returns an agent's state as numbers; raises a KeyError if it cannot be in it.
        groups: Returns what may react in a state to an event, or to none: for each leaf its own
            transitions and those around it, inner ones first.
        step: Returns the step from a state that transitions make together under a trigger, with
            what histories stand for as pairs.
    """

    def __init__(self, tree: Hierarchy) -> None:
        self.tree = tree
        # where steps lead, as in Appendix D, although no agent can be put there
        self._beyond: set[tuple[int, ...]] = set()
        keep = lru_cache(MOST_KEPT, typed=True)
        self.resolve: Callable[[Any], Resolved] = keep(self._resolved)
        self.groups: Callable[[Any, Any], list[tuple[Arc, ...]]] = keep(self._groups)
        self.step: Callable[..., Edge] = keep(self._edge)

    def __getitem__(self, state: Any) -> Resolved:
        return self.resolve(state)

    def __contains__(self, state: object) -> bool:
        """Return whether an agent of the chart can be in a state."""
        try:
            return self.resolve(state) is not None
        except KeyError:
            return False

    def _resolved(self, state: Any) -> Resolved:
        numbers, texts = self.tree.numbers, [state_text(state)]
        if texts[0] not in numbers and not isinstance(state, Enum):
            texts = texts[0].split(SEPARATOR)
        leaves = tuple(numbers.get(text, CHART) for text in texts)
        is_possible = leaves in self._beyond or self.tree.is_configuration(leaves)
        if not isinstance(state, (str, Enum)) or not is_possible:
            raise KeyError(state)

        # one object for each state, so that a fire can compare by identity
        if is_text(state):
            return self.resolve(self.tree.state_at(leaves))
        active = self.tree.active(leaves)
        around = self.tree.members(sorted(active))
        return Resolved(self.tree.state_at(leaves), leaves, active, around)

    # Reactions

    def _groups(self, state: Any, event: Any) -> list[tuple[Arc, ...]]:
        groups = (self._group(leaf, event) for leaf in self.resolve(state).leaves)
        return [*dict.fromkeys(filter(None, groups))]

    def _group(self, leaf: int, event: Any) -> tuple[Arc, ...]:
        arcs = self.tree.arcs_around(leaf)
        return tuple(arc for arc in arcs if is_meant(event, arc.written.trigger))

    def deciding_leaves(self, state: Any, trigger: str) -> frozenset[str]:
        """Return the texts of the leaves that react to an event; of all leaves if none does."""
        leaves = self.resolve(state).leaves
        reacting = [leaf for leaf in leaves if self._group(leaf, trigger)]
        return frozenset(self.tree.texts[each] for each in reacting or leaves)

    def first(self, state: Any, event: Any, moment: Moment) -> Edge | None:
        """Return the step of the transitions that are enabled now; None if none is."""
        passing = (filter(moment.passes, moment.drawn(arcs)) for arcs in self.groups(state, event))
        chosen = [arc for arcs in passing for arc in islice(arcs, 1)]
        return self.together(state, event, chosen, moment) if chosen else None

    def enabled(self, state: Any, event: Any, moment: Moment | None = None) -> Iterator[Edge]:
        """Yield the steps of all transitions that pass now, or ever, in definition order."""
        passes = None if moment is None else moment.passes
        groups = self.groups(state, event)
        passing = [arcs for group in groups if (arcs := [*filter(passes, group)])]
        for chosen in islice(product(*passing), MOST_OUTCOMES if passing else 0):
            yield self.together(state, event, chosen, moment)

    def together(self, state: Any, event: Any, arcs: Iterable[Arc], moment: Moment | None) -> Edge:
        """Return the step of transitions that are enabled together."""
        memory = tuple(moment.histories().items()) if moment and self.tree.kept else ()
        return self.step(state, trigger_text(event), tuple(dict.fromkeys(arcs)), memory)

    # Steps

    def beginning(self, state: Any) -> Edge:
        """Return the step that enters a state, and stays there."""
        return self._edge(None, "begin", [beginning(self.tree, self.resolve(state).leaves)])

    def _edge(self, state: Any, trigger: str, arcs: Iterable[Arc], kept: Any = ()) -> Edge:
        """Return the step that some transitions make together, those in conflict left out.

        Args:
            state: Where the agent is; None if it has not begun.
            trigger: The event in logs.
            arcs: The transitions.
            kept: What the agent's histories stand for, as pairs.
        """
        memory: Memory = dict(kept)
        resolved = NOWHERE if state is None else self.resolve(state)
        tree, texts, timed = self.tree, self.tree.texts, self.tree.timed
        exits = compatible(tree, arcs, resolved.active, memory)
        gone = frozenset[int]().union(*exits.values())
        left = {each: tree.inside(resolved.leaves, each) for each in sorted(gone & self.tree.kept)}
        come = sorted(entered(tree, exits, {**memory, **left}))
        rest = resolved.active - gone
        leaves = tree.leaves_among(rest.union(come))
        if not tree.is_configuration(leaves):
            self._beyond.add(leaves)
        state = self.resolve(tree.state_at(leaves)).value
        edge = Edge(state if resolved is NOWHERE else resolved.value, state, trigger)

        leaving = [*chain(*(tree.nodes[each].exit for each in sorted(gone, reverse=True)))]
        actions = [arc.written.action for arc in exits if arc.written.action is not None]
        edge.plan = Plan(
            arcs=() if resolved is NOWHERE else tuple(exits),
            before=(*leaving, *actions),
            after=tuple(chain(*(tree.nodes[each].entry for each in come))),
            exits=bool(gone),
            left={texts[each]: [texts[leaf] for leaf in at] for each, at in left.items()},
            stopped=tuple(texts[each] for each in sorted(gone & timed)),
            started=tuple(texts[each] for each in come if each in timed),
            raised=tuple(self._done(come, rest)),
        )
        return edge

    def _done(self, come: Iterable[int], active: frozenset[int]) -> Iterator[str]:
        """Yield what is done once some states are entered, one after the other."""
        tree, nodes = self.tree, self.tree.nodes
        for number in come:
            active |= {number}
            if nodes[number].kind == "final":
                around = nodes[number].parent
                outer = nodes[around].parent
                is_last = nodes[outer].kind == "parallel" and is_done(tree, outer, active)
                ends = [around, outer] if is_last else [around]
                events = (done(nodes[each].state) for each in ends if each != CHART)
                yield from filter(tree.reacts_to, events)


def rows_of(definition: Definition[Any]) -> NestedRows:
    """Return what may react in the states of a chart; made once, and kept with its definition."""
    definition.rows = definition.rows or NestedRows(definition.hierarchy)
    return definition.rows


@dataclass
class Moment:
    """What decides between the transitions of an agent at an event: guards, chance and histories.

    Args:
        tree: The chart's states and transitions.
        agent: The agent.
        context: The event's context.
        judged: Called with a transition and its guard's verdict if the guard raised; with any while
            somebody observes charts.
        verdicts: Of the guards that have been asked, each once, though several regions share it.
    """

    tree: Hierarchy
    agent: Any
    context: Any
    judged: Callable[[Arc, Verdict], object] = lambda *_: None
    verdicts: dict[Arc, Verdict] = field(default_factory=dict)

    def passes(self, arc: Arc) -> bool:
        """Return whether the guard of a transition passes."""
        if arc not in self.verdicts:
            verdict = self.verdicts[arc] = evaluate(arc.written.guard, self.agent, self.context)
            if installed or verdict.error is not None:
                self.judged(arc, verdict)
        return self.verdicts[arc] is PASSED

    def draw(self) -> float:
        """Return a random number below 1."""
        return float(random_of(self.agent).random())

    def drawn(self, group: Iterable[Arc]) -> Iterator[Arc]:
        """Yield the transitions of one leaf; of rivals by chance only the one that is drawn."""
        if not self.tree.has_shares:
            yield from group
            return
        for _, same_source in groupby(group, lambda arc: arc.source):
            rivals = [*same_source]
            passing = [*filter(self.passes, rivals)] if any(map(share_of, rivals)) else []
            if any(map(share_of, passing)):
                yield from self._selected(passing)
                return
            yield from rivals

    def _selected(self, rivals: list[Arc]) -> list[Arc]:
        """Draw one of several transitions by its share; one without a share gets the rest."""
        shares = [*map(share_of, rivals)]
        if (arc := selected(rivals, shares, self.draw())) is not None:
            return [arc]
        rest = [each for each in rivals if each.written.probability is None]
        # ten shares of 0.1 are a little less than 1
        return rest[:1] or (rivals[-1:] if sum(shares) > 1 - ROUNDING else [])

    def histories(self) -> Memory:
        """Return what the agent's histories stand for, without what the chart rules out."""
        tree, kept = self.tree, {}
        for text, leaves in remembered(self.agent).get("history", {}).items():
            at = tree.numbers.get(text, CHART)
            numbers = tuple(sorted(tree.numbers.get(leaf, CHART) for leaf in leaves))
            if at and tree.is_configuration(numbers, at):
                kept[at] = numbers
        return kept


def share_of(arc: Arc) -> float:
    """Return the probability that a transition is written with."""
    return arc.written.probability or 0.0


def selected(arcs: Iterable[Arc], shares: Iterable[float], number: float) -> Arc | None:
    """Return the transition in whose share a number falls; None if it is beyond all of them."""
    for arc, share in zip(arcs, shares, strict=True):
        number -= share
        if number < 0:
            return arc
    return None

"""The rows of a chart with composites: by state and event, what may react.

That depends on the active leaves alone: the transitions of what lies around a leaf come behind its
own. Rows are made when they are first used. What the moment decides, by guards, between regions, by
chance and by history, is left to a `Resolver`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from enum import Enum
from functools import lru_cache, partial
from itertools import accumulate, chain, islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

from prism.statechart._nesting import SEPARATOR, Configuration, EventDescriptor
from prism.statechart._tree.numbers import CHART, Arc, Memory, Plan
from prism.statechart.states import state_text
from prism.statechart.transitions import ALWAYS, Edge, trigger_text

if TYPE_CHECKING:
    from prism.statechart._tree.hierarchy import Hierarchy

EVENTLESS: Any = object()
"""Key of the eventless transitions in a row, which no caller can name."""

MOST_EVENTS = 1_000
"""Events whose resolvers a row keeps; a chart that was read from SCXML may react to any text."""

MOST_OUTCOMES = 1000
"""Combinations of several regions' transitions that are listed for an event."""

MOST_ROWS = 20_000
"""Configurations whose rows are kept; beyond them the oldest are made again when needed."""

_ROUNDING = 1e-9

Ask = Callable[[Arc], bool]
"""Evaluates the guard of a transition on the agent and the context at hand."""


class Place(NamedTuple):
    """An agent's state as numbers of the tree.

    Args:
        state: The leaf's member, or the configuration.
        leaves: The numbers of the active leaves, in document order.
        active: The numbers of all active states.
    """

    state: Any
    leaves: tuple[int, ...]
    active: frozenset[int]


class Kept(dict[Any, Any]):
    """Values that are made on first use.

    Args:
        make: Makes the value of a key; raises a KeyError if there is none.
        most: How many are kept; beyond them the oldest goes.
    """

    def __init__(self, make: Callable[[Any], Any], most: int) -> None:
        super().__init__()
        self._make = make
        self._most = most

    def __missing__(self, key: Any) -> Any:
        """Make a value, and keep it."""
        value = self._make(key)
        if len(self) >= self._most:
            del self[next(iter(self))]
        self[key] = value
        return value


class NestedRows(Kept):
    """Resolvers by state and trigger, made on first use.

    Args:
        hierarchy: The chart's states and transitions.

    Attributes:
        planner: Plans the steps.
        tree: The states in numbers.
        place: Returns an agent's state as numbers; raises a KeyError if it cannot be in it.
        alone: Returns the resolver of one transition alone; None if its source is not active.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        super().__init__(self._row, MOST_ROWS)
        self.planner = hierarchy.planner
        self.tree = hierarchy.tree
        self._arcs_of = hierarchy.arcs_of
        # where steps lead, as in Appendix D, although no agent can be put there
        self._beyond: set[tuple[int, ...]] = set()
        self.place: Callable[[Any], Place] = lru_cache(MOST_ROWS)(self._placed)
        self._place_of: Callable[[tuple[int, ...]], Place] = lru_cache(MOST_ROWS)(self._place_at)
        self.alone: Callable[[Any, Arc], Any] = lru_cache(MOST_ROWS)(self._only)

    def __contains__(self, state: object) -> bool:
        """Return whether an agent of the chart can be in a state."""
        try:
            return self.place(state) is not None
        except KeyError:
            return False

    def open(self, place: Place, trigger: str, groups: Iterable[tuple[Arc, ...]]) -> Resolver:
        """Return what chooses among transitions when their event comes."""
        different = tuple(dict.fromkeys(groups))
        asks = any(map(self.tree.asks_history, chain(*different)))
        make = partial(self._together, place, trigger)
        return Resolver(different, make, self.planner.kept if asks else ())

    def leaves_asked(self, state: Any, trigger: str) -> frozenset[str]:
        """Return the texts of the leaves that a choice among an event's transitions depends on.

        Those are the leaves that react. What reacts around several of them counts only where
        nothing inside does.
        """
        leaves = self.place(state).leaves
        arcs = {leaf: [*chain(*self.groups((leaf,), trigger))] for leaf in leaves}
        reacting = [leaf for leaf in leaves if arcs[leaf]]
        own = [
            leaf
            for leaf in reacting
            if any(self.tree.inside(leaves, arc.source) == (leaf,) for arc in arcs[leaf])
        ]

        return frozenset(self.tree.texts[each] for each in own or reacting or leaves)

    def arcs(self, state: Any, trigger: str) -> list[Arc]:
        """Return the transitions that may react to an event, each once."""
        return [*dict.fromkeys(chain(*self.groups(self.place(state).leaves, trigger)))]

    def about(self, state: Any, trigger: str, texts: Set[str]) -> Resolver:
        """Return the resolver of an event to which only some leaves react."""
        place = self.place(state)
        leaves = [each for each in place.leaves if self.tree.texts[each] in texts]
        return self.open(place, trigger, self.groups(leaves, trigger))

    def outcomes(self, state: Any, trigger: str) -> Iterator[Edge]:
        """Yield the steps that are possible from a state, guards and memory ignored."""
        resolver = self[state][trigger]
        return iter(()) if resolver is None else resolver.enabled(lambda _: True, dict)

    def beginning(self, state: Any = None) -> Edge:
        """Return the step that enters a state, by default the initial one, and stays there."""
        plan = self.planner.beginning(() if state is None else self.place(state).leaves)
        return self._step(self._place_of(plan.leaves).state, "begin", plan)

    def groups(self, leaves: Iterable[int], event: Any) -> list[tuple[Arc, ...]]:
        """Return what may react to an event, by leaf: its own transitions, then those around it."""
        by_leaf = (
            tuple(
                arc
                for number in (leaf, *self.tree.ancestors(leaf))
                for arc in self._arcs_of.get(number, ())
                if _reacts(arc, event)
            )
            for leaf in leaves
        )
        return [arcs for arcs in by_leaf if arcs]

    def plan(self, place: Place, arcs: Iterable[Arc], memory: Memory) -> Plan:
        """Return the plan of transitions of several regions, those in conflict left out."""
        kept = self.tree.compatible(arcs, place.active, memory)
        return self.planner.plan(kept, place.leaves, memory)

    # Places

    def _placed(self, state: Any) -> Place:
        numbers, texts = self.tree.numbers, [state_text(state)]
        if texts[0] not in numbers and not isinstance(state, Enum):
            texts = texts[0].split(SEPARATOR)
        leaves = tuple(numbers.get(text, CHART) for text in texts)
        is_possible = leaves in self._beyond or self.tree.is_configuration(leaves)
        if not isinstance(state, str) or not is_possible:
            raise KeyError(state)

        return self._place_of(leaves)

    def _place_at(self, leaves: tuple[int, ...]) -> Place:
        members = [self.tree.nodes[number].state for number in leaves]
        state = members[0] if len(members) == 1 else Configuration(members)
        return Place(state, leaves, self.tree.active(leaves))

    # Resolvers

    def _row(self, state: Any) -> Kept:
        return Kept(partial(self._reacting, self.place(state)), MOST_EVENTS)

    def _reacting(self, place: Place, event: Any) -> Resolver | None:
        groups = self.groups(place.leaves, event)
        shown = ALWAYS if event is EVENTLESS else event
        return self.open(place, shown, groups) if groups else None

    def _only(self, state: Any, arc: Arc) -> Resolver | None:
        place = self.place(state)
        is_active = arc.source in place.active
        return self.open(place, trigger_text(arc.written.trigger), [(arc,)]) if is_active else None

    def _together(self, place: Place, trigger: str, arcs: Iterable[Arc], memory: Memory) -> Edge:
        """Return the step of transitions that are enabled together."""
        return self._step(place.state, trigger, self.plan(place, arcs, memory))

    def _step(self, state: Any, trigger: str, plan: Plan) -> Edge:
        if not self.tree.is_configuration(plan.leaves):
            self._beyond.add(plan.leaves)
        edge = Edge(state, self._place_of(plan.leaves).state, trigger)
        edge.plan = plan
        if plan.before or plan.after or plan.notes or plan.settles:
            # which sends a fire past its fast path
            edge.leaves = None
        return edge


def _reacts(arc: Arc, event: Any) -> bool:
    trigger = arc.written.trigger
    if trigger is None or event is EVENTLESS:
        return trigger is None and event is EVENTLESS
    return trigger == event or (
        isinstance(trigger, EventDescriptor) and isinstance(event, str) and trigger.matches(event)
    )


# Choices that only the moment decides


class Resolver:
    """Chooses the transitions of one configuration and one event.

    It asks guards, draws where transitions have probabilities, leaves out conflicts, and returns
    the step of what is left: an edge with its plan.

    Args:
        groups: The transitions that may react, for each leaf: its own and those around it, inner
            ones first.
        make: Makes the step of transitions that are enabled together.
        kept: The composites whose histories decide what is entered.

    Attributes:
        groups: As given.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[Arc]],
        make: Callable[[Sequence[Arc], Memory], Edge],
        kept: Iterable[int],
    ) -> None:
        self.groups: Sequence[Sequence[Arc]] = groups
        self._make = make
        self._kept = tuple(kept)
        self._is_by_chance = _has_share(chain(*groups))
        self._known: dict[Any, Edge] = {}

    def resolve(
        self, ask: Ask, draw: Callable[[], float], histories: Callable[[], Memory]
    ) -> Edge | None:
        """Return the step of the transitions that are enabled now; None if none is."""
        chosen: dict[Arc, None] = {}
        for group in self.groups:
            arcs = _drawn(group, ask, draw) if self._is_by_chance else group
            first = next(filter(ask, arcs), None)
            if first is not None:
                chosen[first] = None

        return self.together(tuple(chosen), histories) if chosen else None

    def enabled(self, ask: Ask, histories: Callable[[], Memory]) -> Iterator[Edge]:
        """Yield the steps of all transitions that pass now, in definition order."""
        passing = ([*filter(ask, group)] for group in self.groups)
        groups = [group for group in passing if group]
        for arcs in islice(product(*groups), MOST_OUTCOMES if groups else 0):
            yield self.together(tuple(dict.fromkeys(arcs)), histories)

    def together(self, arcs: tuple[Arc, ...], histories: Callable[[], Memory] = dict) -> Edge:
        """Return the step of transitions that are enabled together."""
        key: Any = arcs
        memory: Memory = {}
        if self._kept:
            memory = histories()
            key = (arcs, *map(memory.get, self._kept))
        found = self._known.get(key)
        if found is None:
            found = self._make(arcs, memory)
            if len(self._known) < MOST_OUTCOMES:
                self._known[key] = found

        return found


def _has_share(arcs: Iterable[Arc]) -> bool:
    return any(arc.written.probability for arc in arcs)


def _drawn(group: Sequence[Arc], ask: Ask, draw: Callable[[], float]) -> Iterator[Arc]:
    """Yield the transitions of one leaf; of those that share a source by chance, the one drawn."""
    for arc in group:
        rivals = [other for other in group if other.source == arc.source]
        passing = [other for other in rivals if ask(other)] if _has_share(rivals) else []
        if _has_share(passing):
            yield from _at(passing, draw())
            return
        yield arc


def _at(arcs: Sequence[Arc], number: float) -> list[Arc]:
    """Return the transition that a number below 1 selects; one without a share gets the rest."""
    sharing = [arc for arc in arcs if arc.written.probability is not None]
    sums = [*accumulate(arc.written.probability or 0.0 for arc in sharing)]
    # ten shares of 0.1 are a little less than 1
    if number < sums[-1] or sums[-1] > 1 - _ROUNDING:
        return [sharing[min(bisect_right(sums, number), len(sharing) - 1)]]

    return [arc for arc in arcs if arc.written.probability is None][:1]

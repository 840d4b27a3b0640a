"""The rows of a chart with composites, in the form that flat charts have.

What an event does depends on the active leaves alone, so the transitions of what lies around a leaf
are candidates of its row, behind its own. Rows are made when they are first used.

What only the moment decides, between regions, by chance and by history, is left to a `Resolver`: a
candidate that has one is not a transition yet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from enum import Enum
from functools import lru_cache, partial
from itertools import accumulate, chain, islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

from prism.statechart._engine.machine import EVENTLESS, OPEN, Candidate
from prism.statechart._nesting import SEPARATOR, Configuration, EventDescriptor
from prism.statechart._tree.numbers import CHART, Arc, Memory, Plan
from prism.statechart.states import state_text
from prism.statechart.transitions import ALWAYS, Edge

if TYPE_CHECKING:
    from prism.statechart._tree.hierarchy import Hierarchy

MOST_EVENTS = 1_000
"""Events whose candidates a row keeps in a chart that was read from SCXML."""

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

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, made if need be."""
        try:
            return self[key]
        except KeyError:
            return default


class NestedRows(Kept):
    """Candidates by state and trigger, made on first use.

    Args:
        hierarchy: The chart's states and transitions.

    Attributes:
        planner: Plans the steps.
        tree: The states in numbers.
        place: Returns an agent's state as numbers; raises a KeyError if it cannot be in it.
        alone: Returns the candidate of one transition alone; None if its source is not active.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        super().__init__(self._row, MOST_ROWS)
        self.planner = hierarchy.planner
        self.tree = hierarchy.tree
        self._decides = hierarchy.decides
        self._arcs_of = hierarchy.arcs_of
        self._matches_by_beginning = bool(hierarchy.descriptors)
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

    def open(self, place: Place, trigger: str, groups: Iterable[tuple[Arc, ...]]) -> Candidate[Any]:
        """Return a candidate whose `Resolver` chooses among transitions when their event comes."""
        different = tuple(dict.fromkeys(groups))
        asks = any(map(self.tree.asks_history, chain(*different)))
        edge = Edge(place.state, place.state, trigger)
        edge.plan = Resolver(
            different,
            partial(self._together, place, trigger),
            self.planner.kept if asks else (),
        )
        return None, OPEN, place.state, edge

    def leaves_asked(self, state: Any, trigger: str) -> frozenset[str]:
        """Return the texts of the leaves that a choice among an event's transitions depends on.

        Those are the leaves that react. What reacts around several of them counts only where
        nothing inside does.
        """
        leaves = self.place(state).leaves
        arcs = {leaf: [*chain(*self.groups((leaf,), trigger).get(trigger, ()))] for leaf in leaves}
        reacting = [leaf for leaf in leaves if arcs[leaf]]
        own = [
            leaf
            for leaf in reacting
            if any(self.tree.inside(leaves, arc.source) == (leaf,) for arc in arcs[leaf])
        ]

        return frozenset(self.tree.texts[each] for each in own or reacting or leaves)

    def about(self, state: Any, trigger: str, texts: Set[str]) -> Candidate[Any]:
        """Return the candidate, an open one, of an event to which only some leaves react."""
        place = self.place(state)
        leaves = [each for each in place.leaves if self.tree.texts[each] in texts]
        return self.open(place, trigger, self.groups(leaves, trigger).get(trigger, ()))

    def outcomes(self, state: Any, trigger: str) -> Iterator[Candidate[Any]]:
        """Yield the candidates of a state, guards and memory ignored, none of them open."""
        for candidate in self[state].get(trigger, ()):
            plan = candidate[3].plan
            yield from plan.enabled(lambda _: True, dict) if plan.is_open else (candidate,)

    def beginning(self, state: Any = None) -> Candidate[Any]:
        """Return the candidate that enters a state, by default the initial one, and stays there."""
        plan = self.planner.beginning(() if state is None else self.place(state).leaves)
        return self._candidate(self._place_of(plan.leaves).state, "begin", plan)

    def groups(self, leaves: Iterable[int], event: Any = None) -> dict[Any, list[tuple[Arc, ...]]]:
        """Return what may react, by trigger: the transitions of each leaf, then of those around it.

        Args:
            leaves: The active leaves.
            event: The one event that is asked about, which descriptors may match.
        """
        found: dict[Any, list[tuple[Arc, ...]]] = {}
        for leaf in leaves:
            own: dict[Any, list[Arc]] = {}
            for number in (leaf, *self.tree.ancestors(leaf)):
                for arc in self._arcs_of.get(number, ()):
                    own.setdefault(_key(arc, event), []).append(arc)
            for key, arcs in own.items():
                found.setdefault(key, []).append(tuple(arcs))

        return found

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

    # Candidates

    def _row(self, state: Any) -> dict[str, tuple[Candidate[Any], ...]]:
        place = self.place(state)
        if self._matches_by_beginning:
            return Kept(partial(self._matching, place), MOST_EVENTS)
        return {
            trigger: self._candidates(place, _shown(trigger), groups)
            for trigger, groups in self.groups(place.leaves).items()
        }

    def _matching(self, place: Place, event: Any) -> tuple[Candidate[Any], ...]:
        """Return the candidates of an event in a chart that was read from SCXML."""
        return self._candidates(place, _shown(event), self.groups(place.leaves, event)[event])

    def _only(self, state: Any, arc: Arc) -> Candidate[Any] | None:
        place = self.place(state)
        if arc.source not in place.active:
            return None
        return self._candidates(place, _shown(_key(arc)), [(arc,)])[0]

    def _candidates(
        self, place: Place, trigger: str, groups: Iterable[tuple[Arc, ...]]
    ) -> tuple[Candidate[Any], ...]:
        groups = tuple(dict.fromkeys(groups))
        firsts = dict.fromkeys(group[0] for group in groups)
        is_by_regions = len(groups) > 1 and (
            not self._decides.isdisjoint(place.leaves)
            or any(arc.guard is not None for arc in firsts)
        )
        if is_by_regions or any(map(self._is_open, chain(*groups))):
            return (self.open(place, trigger, groups),)
        if len(groups) > 1:
            return (self._together(place, trigger, firsts, {}),)

        alone = ((arc, self._together(place, trigger, (arc,), {})) for arc in groups[0])
        return tuple((arc.guard, *candidate[1:]) for arc, candidate in alone)

    def _is_open(self, arc: Arc) -> bool:
        """Return whether what a transition does depends on more than the active leaves."""
        return arc.written.probability is not None or self.tree.asks_history(arc)

    def _together(
        self, place: Place, trigger: str, arcs: Iterable[Arc], memory: Memory
    ) -> Candidate[Any]:
        """Return the candidate of transitions that are enabled together."""
        return self._candidate(place.state, trigger, self.plan(place, arcs, memory))

    def _candidate(self, state: Any, trigger: str, plan: Plan) -> Candidate[Any]:
        if not self.tree.is_configuration(plan.leaves):
            self._beyond.add(plan.leaves)
        edge = Edge(state, self._place_of(plan.leaves).state, trigger)
        edge.plan = plan
        if plan.before or plan.after or plan.notes or plan.settles:
            # which sends a fire past its fast path
            edge.leaves = None

        return None, None, edge.to_state, edge


def _key(arc: Arc, event: Any = None) -> Any:
    trigger = arc.written.trigger
    if trigger is None:
        return EVENTLESS
    is_meant = (
        isinstance(event, str) and isinstance(trigger, EventDescriptor) and trigger.matches(event)
    )
    return event if is_meant else trigger


def _shown(key: Any) -> str:
    return ALWAYS if key is EVENTLESS else key


# Choices that only the moment decides


class Resolver:
    """Chooses the transitions of one configuration and one event.

    It asks guards, draws where transitions have probabilities, leaves out conflicts, and returns
    the candidate of what is left.

    Args:
        groups: The transitions that may react, for each leaf: its own and those around it, inner
            ones first.
        make: Makes the candidate of transitions that are enabled together.
        kept: The composites whose histories decide what is entered.

    Attributes:
        groups: As given.
    """

    is_open = True
    """That it must be resolved, which a `Plan` has been."""

    settles = True
    """That more may follow: what it is resolved to says whether it does."""

    def __init__(
        self,
        groups: Sequence[Sequence[Arc]],
        make: Callable[[Sequence[Arc], Memory], Candidate[Any]],
        kept: Iterable[int],
    ) -> None:
        self.groups: Sequence[Sequence[Arc]] = groups
        self._make = make
        self._kept = tuple(kept)
        self._is_by_chance = _has_share(chain(*groups))
        self._known: dict[Any, Candidate[Any]] = {}

    def resolve(self, ask: Ask, draw: Callable[[], float], histories: Callable[[], Memory]) -> Any:
        """Return the candidate of the transitions that are enabled now; None if none is."""
        chosen: dict[Arc, None] = {}
        for group in self.groups:
            arcs = _drawn(group, ask, draw) if self._is_by_chance else group
            first = next(filter(ask, arcs), None)
            if first is not None:
                chosen[first] = None

        return self.together(tuple(chosen), histories) if chosen else None

    def enabled(self, ask: Ask, histories: Callable[[], Memory]) -> Iterator[Any]:
        """Yield the candidates of all transitions that pass now, in definition order."""
        passing = ([*filter(ask, group)] for group in self.groups)
        groups = [group for group in passing if group]
        for arcs in islice(product(*groups), MOST_OUTCOMES if groups else 0):
            yield self.together(tuple(dict.fromkeys(arcs)), histories)

    def together(self, arcs: tuple[Arc, ...], histories: Callable[[], Memory] = dict) -> Any:
        """Return the candidate of transitions that are enabled together."""
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

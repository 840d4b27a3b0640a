"""The rows of a chart with composites, in the form that flat charts have.

What an event does depends on the active leaves alone, so the transitions of what lies around a leaf
are candidates of its row, behind its own. Rows are made when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum
from functools import partial
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

from prism.statechart._engine.machine import EVENTLESS, Candidate
from prism.statechart._engine.resolvers import MOST_OUTCOMES, Resolver
from prism.statechart._nesting import SEPARATOR, Configuration, EventDescriptor
from prism.statechart._tree.numbers import Arc, HistoryAt
from prism.statechart._tree.plans import Planner
from prism.statechart.states import state_text
from prism.statechart.transitions import ALWAYS, Edge

if TYPE_CHECKING:
    from prism.statechart._engine.documents import Session
    from prism.statechart._tree.hierarchy import Hierarchy

MOST_EVENTS = 1_000
"""Events whose candidates a row of a document's chart keeps."""

MOST_ROWS = 20_000
"""Configurations whose rows are kept; beyond them the oldest are made again when needed."""


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


class NestedRows(dict[Any, dict[str, tuple[Candidate[Any], ...]]]):
    """Candidates by state and trigger, made on first use.

    Args:
        hierarchy: The chart's states and transitions.

    Attributes:
        planner: Plans the steps.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        super().__init__()
        self.planner: Planner = hierarchy.planner
        self._tree = hierarchy.planner.tree
        self._decides = hierarchy.decides
        self._arcs = hierarchy.arcs
        self._arcs_of: dict[int, list[Arc]] = {}
        for arc in hierarchy.arcs:
            self._arcs_of.setdefault(arc.source, []).append(arc)
        # of a chart that was read from SCXML, which others need not load
        self.event_of: Callable[[Any, Any], Any] | None = None
        self.new_session: Callable[[Any, Any], Session] | None = None
        if hierarchy.is_document:
            from prism.statechart._engine.documents import Session, event_of

            self.event_of, self.new_session = event_of, Session
        self._places: dict[Any, Place] = {}
        self._alone: dict[tuple[Any, int], Candidate[Any] | None] = {}

    def __missing__(self, state: Any) -> dict[str, tuple[Candidate[Any], ...]]:
        """Make the row of a state.

        Raises:
            KeyError: If no agent of the chart can be in it.
        """
        place = self.place(state)
        groups = self.groups(place.leaves)
        row = (
            {
                trigger: self._candidates(place, _shown(trigger), groups)
                for trigger, groups in groups.items()
            }
            if self.new_session is None
            else MatchingRow(partial(self._matching, place))
        )
        if len(self) >= MOST_ROWS:
            del self[next(iter(self))]
        self[place.state] = row

        return row

    def __contains__(self, state: object) -> bool:
        """Return whether an agent of the chart can be in a state."""
        return super().__contains__(state) or self._leaves_of(state) is not None

    def place(self, state: Any) -> Place:
        """Return an agent's state as numbers of the tree.

        Raises:
            KeyError: If no agent of the chart can be in this state.
        """
        found = self._places.get(state)
        if found is None:
            leaves = self._leaves_of(state)
            if leaves is None:
                raise KeyError(state)
            found = self._keep(self._state_of(leaves), leaves)

        return found

    def at(self, leaves: tuple[int, ...]) -> Any:
        """Return the state of an agent in some leaves: a member, or the one configuration."""
        state = self._state_of(leaves)
        return (self._places.get(state) or self._keep(state, leaves)).state

    def alone(self, state: Any, number: int) -> Candidate[Any] | None:
        """Return the candidate of one written transition; None if its source is not active."""
        key = (state, number)
        if key not in self._alone:
            place, arc = self.place(state), self._arcs[number]
            if len(self._alone) >= MOST_ROWS:
                self._alone.clear()
            self._alone[key] = (
                self._candidates(place, arc.written.trigger, [(arc,)])[0]
                if arc.source in place.active
                else None
            )

        return self._alone[key]

    def candidate(
        self, place: Place, trigger: str, arcs: Sequence[Arc], memory: Mapping[int, Any]
    ) -> Candidate[Any]:
        """Return the candidate of transitions that are made together; their guards have passed."""
        plan = self.planner.plan(arcs, place.leaves, memory)
        edge = Edge(place.state, self.at(plan.leaves), trigger)
        edge.plan = plan
        if plan.before or plan.after or plan.remembers or plan.settles:
            # which sends a fire past its fast path
            edge.leaves = None

        return None, None, edge.to_state, edge

    def leaves_asked(self, state: Any, trigger: str) -> frozenset[str]:
        """Return the texts of the leaves that a choice among an event's transitions depends on.

        Those are the leaves that react. What reacts around several of them counts only where
        nothing inside does.
        """
        tree, leaves = self._tree, self.place(state).leaves
        around: list[int] = []
        own: list[int] = []
        for leaf in leaves:
            for arc in chain.from_iterable(self.groups((leaf,), trigger).get(trigger, ())):
                inside = sum(
                    each == arc.source or tree.is_inside(each, arc.source) for each in leaves
                )
                (own if inside == 1 else around).append(leaf)

        return frozenset(state_text(tree.nodes[each].state) for each in own or around or leaves)

    def about(self, state: Any, trigger: str, texts: Set[str]) -> Candidate[Any]:
        """Return the candidate, an open one, of an event to which only some leaves react."""
        place = self.place(state)
        leaves = [
            each for each in place.leaves if state_text(self._tree.nodes[each].state) in texts
        ]
        return self._open(place, trigger, self.groups(leaves, trigger).get(trigger, []))

    def outcomes(self, state: Any, trigger: str) -> Iterator[Candidate[Any]]:
        """Yield the candidates of a state, guards and memory ignored, none of them open."""
        for candidate in self[state].get(trigger, ()):
            edge = candidate[3]
            if edge.plan.is_open:
                yield from edge.plan.possible(dict)
            else:
                yield candidate

    def allows(self, state: Any, trigger: str, target: Any) -> bool:
        """Return whether transitions of a trigger lead from a state to another, guards ignored.

        Each region may react or not, and a history may stand for whatever has been entered.

        Raises:
            KeyError: If no agent of the chart can be in one of the states.
        """
        place, leaves = self.place(state), self.place(target).leaves
        groups = self.groups(place.leaves, trigger)
        found = groups.get(trigger, []) + (groups.get(EVENTLESS, []) if trigger == ALWAYS else [])
        choices = product(*[(None, *group) for group in dict.fromkeys(found)])
        return any(
            self._lead(place, {arc.number: arc for arc in arcs if arc is not None}, leaves)
            for arcs in islice(choices, 1, MOST_OUTCOMES)
        )

    def _lead(self, place: Place, arcs: Mapping[int, Arc], leaves: tuple[int, ...]) -> bool:
        tree, chosen = self._tree, tuple(arcs.values())
        entered = {
            number: tuple(leaf for leaf in leaves if tree.is_inside(leaf, number))
            for number in self.planner.histories(chosen)
        }
        for memory in ({}, {number: found for number, found in entered.items() if found}):
            kept = tree.compatible(chosen, place.active, memory)
            if self.planner.plan(kept, place.leaves, memory).leaves == leaves:
                return True

        return False

    def beginning(self, state: Any = None) -> Candidate[Any]:
        """Return the candidate that enters a state, by default the initial one, and stays there."""
        plan = self.planner.beginning(() if state is None else self.place(state).leaves)
        state = self.at(plan.leaves)
        edge = Edge(state, state, "begin")
        edge.plan = plan

        return None, None, state, edge

    def _state_of(self, leaves: Iterable[int]) -> Any:
        members = [self._tree.nodes[number].state for number in leaves]
        return members[0] if len(members) == 1 else Configuration(members)

    def _keep(self, state: Any, leaves: tuple[int, ...]) -> Place:
        if len(self._places) >= MOST_ROWS:
            del self._places[next(iter(self._places))]
        place = self._places[state] = Place(state, leaves, self._tree.active(leaves))
        return place

    def _leaves_of(self, state: object) -> tuple[int, ...] | None:
        if not isinstance(state, str):
            return None

        numbers = self._tree.numbers
        texts = [state_text(state)]
        if texts[0] not in numbers and not isinstance(state, Enum):
            texts = str(state).split(SEPARATOR)
        leaves = tuple(numbers.get(text, 0) for text in texts)
        is_possible = all(
            leaf and not self._tree.nodes[leaf].children for leaf in leaves
        ) and self._tree.is_configuration(leaves)

        return leaves if is_possible and leaves == tuple(sorted(leaves)) else None

    def groups(self, leaves: Iterable[int], event: Any = None) -> dict[Any, list[tuple[Arc, ...]]]:
        """Return what may react, by trigger: the transitions of each leaf, then of those around it.

        Args:
            leaves: The active leaves.
            event: The one event that is asked about, which descriptors may match.
        """
        found: dict[Any, list[tuple[Arc, ...]]] = {}
        for leaf in leaves:
            own: dict[Any, list[Arc]] = {}
            for number in (leaf, *self._tree.ancestors(leaf)):
                for arc in self._arcs_of.get(number, ()):
                    own.setdefault(_key(arc, event), []).append(arc)
            for key, arcs in own.items():
                found.setdefault(key, []).append(tuple(arcs))

        return found

    def _candidates(
        self, place: Place, trigger: str, groups: Sequence[tuple[Arc, ...]]
    ) -> tuple[Candidate[Any], ...]:
        different = list(dict.fromkeys(groups))
        arcs = [arc for group in different for arc in group]
        is_open = any(map(self._is_open, arcs))
        if len(different) == 1 and not is_open:
            return tuple(self._guarded(place, trigger, arc) for arc in arcs)

        firsts = [group[0] for group in different]
        decides = bool(self._decides.intersection(place.leaves))
        if not is_open and not decides and all(arc.guard is None for arc in firsts):
            compatible = self._tree.compatible(dict.fromkeys(firsts), place.active)
            return (self.candidate(place, trigger, compatible, {}),)

        return (self._open(place, trigger, different),)

    def _matching(self, place: Place, event: Any) -> tuple[Candidate[Any], ...]:
        """Return the candidate of an event in a document's chart; none if nothing reacts."""
        groups = self.groups(place.leaves, event).get(event, [])
        return (self._open(place, _shown(event), [*dict.fromkeys(groups)]),) if groups else ()

    def _is_open(self, arc: Arc) -> bool:
        """Return whether what a transition does depends on more than the active leaves."""
        return arc.written.probability is not None or any(
            self._tree.initial_histories or isinstance(target, HistoryAt) for target in arc.targets
        )

    def _guarded(self, place: Place, trigger: str, arc: Arc) -> Candidate[Any]:
        _, action, target, edge = self.candidate(place, trigger, (arc,), {})
        return arc.guard, action, target, edge

    def _open(
        self, place: Place, trigger: str, groups: Sequence[tuple[Arc, ...]]
    ) -> Candidate[Any]:
        """Return a candidate that is resolved when its event comes."""
        edge = Edge(place.state, place.state, trigger)
        edge.plan = Resolver(
            self.planner,
            place.leaves,
            groups,
            lambda arcs, memory: self.candidate(place, trigger, arcs, memory),
            edge,
        )
        return None, None, place.state, edge


class MatchingRow(dict[Any, tuple[Candidate[Any], ...]]):
    """The row of a state whose transitions name events by descriptors.

    Args:
        match: Returns the candidates of an event, which it is asked for on first sight.
    """

    def __init__(self, match: Callable[[Any], tuple[Candidate[Any], ...]]) -> None:
        super().__init__()
        self._match = match

    def __missing__(self, event: Any) -> tuple[Candidate[Any], ...]:
        """Look for what reacts to an event.

        Raises:
            KeyError: If nothing does.
        """
        is_event = isinstance(event, str) or event is EVENTLESS
        found = self._match(event) if is_event else ()
        if not found:
            raise KeyError(event)
        if len(self) >= MOST_EVENTS:
            del self[next(iter(self))]
        self[event] = found
        return found

    def get(self, event: Any, default: Any = None) -> Any:
        """Return the candidates of an event."""
        try:
            return self[event]
        except KeyError:
            return default


def _key(arc: Arc, event: Any) -> Any:
    trigger = arc.written.trigger
    if trigger is None:
        return EVENTLESS
    is_meant = (
        isinstance(event, str) and isinstance(trigger, EventDescriptor) and trigger.matches(event)
    )
    return event if is_meant else trigger


def _shown(key: Any) -> str:
    return ALWAYS if key is EVENTLESS else key

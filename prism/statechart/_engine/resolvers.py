"""Choices that only the moment decides: between regions, by chance, and by history.

A candidate whose edge has a `Resolver` is not a transition yet: it asks guards, each once, draws
where transitions have probabilities, leaves out conflicts, and returns the candidate of what is
left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from prism.statechart._tree.numbers import Arc
from prism.statechart._tree.plans import Planner
from prism.statechart.transitions import Edge

Ask = Callable[[Arc], bool]
"""Evaluates the guard of a transition on the agent and the context at hand."""

Draw = Callable[[], float]
"""Returns a number from 0 up to 1 of the agent's random numbers."""

Histories = Mapping[int, tuple[int, ...]]
"""What the histories of an agent stand for, by the composite's number."""

_ROUNDING = 1e-9

MOST_OUTCOMES = 1000
"""Combinations of several regions' transitions that are listed for an event."""


class Resolver:
    """Chooses the transitions of one configuration and one event.

    Args:
        planner: The chart's.
        leaves: The active leaves.
        groups: The transitions that may react, for each leaf: its own and those around it, inner
            ones first.
        make: Makes the candidate of transitions that are made together.
        edge: Of the candidate that is resolved.

    Attributes:
        is_plain: Whether nothing but guards decides, each of one region.
    """

    __slots__ = (
        "_by_history",
        "_known",
        "_leaves",
        "_make",
        "_planner",
        "edge",
        "groups",
        "is_plain",
    )

    is_open = True
    """That it must be resolved, which a `Plan` has been."""

    settles = True
    """That more may follow: what it is resolved to says whether it does."""

    def __init__(
        self,
        planner: Planner,
        leaves: tuple[int, ...],
        groups: Sequence[tuple[Arc, ...]],
        make: Callable[[tuple[Arc, ...], Histories], Any],
        edge: Edge,
    ) -> None:
        self._planner = planner
        self._leaves = leaves
        self.groups = tuple(groups)
        self._make = make
        self._known: dict[Any, Any] = {}
        arcs = [arc for group in self.groups for arc in group]
        are_apart = len({arc.number for arc in arcs}) == len(arcs)
        self._by_history = bool(planner.histories(arcs))
        self.edge: Edge = edge
        self.is_plain: bool = are_apart and not self._by_history and not _by_chance(arcs)

    def resolve(self, ask: Ask, draw: Draw, histories: Callable[[], Histories]) -> Any:
        """Return the candidate of the transitions that are enabled now; None if none is."""
        asked = _once(ask)
        found = (_first(group, asked, draw) for group in self.groups)
        chosen = dict.fromkeys(arc for arc in found if arc is not None)
        return self._candidate(tuple(chosen), histories) if chosen else None

    def chosen(self, arcs: tuple[Arc, ...]) -> Any:
        """Return the candidate of transitions that guards have passed; None if there are none."""
        found = self._known.get(arcs)
        if found is None and arcs:
            found = self._candidate(arcs, dict)
            if len(self._known) < 2 * MOST_OUTCOMES:
                self._known[arcs] = found

        return found

    def enabled(self, ask: Ask, histories: Callable[[], Histories]) -> Iterator[Any]:
        """Yield the candidates of all transitions whose guards pass now, in definition order."""
        asked = _once(ask)
        passing = [[arc for arc in group if asked(arc)] for group in self.groups]
        yield from self._combined([group for group in passing if group], histories)

    def possible(self, histories: Callable[[], Histories]) -> Iterator[Any]:
        """Yield the candidates of all transitions, guards ignored."""
        yield from self._combined(self.groups, histories)

    def _combined(
        self, groups: Sequence[Sequence[Arc]], histories: Callable[[], Histories]
    ) -> Iterator[Any]:
        if groups:
            for arcs in islice(product(*groups), MOST_OUTCOMES):
                different = {arc.number: arc for arc in arcs}
                yield self._candidate(tuple(different.values()), histories)

    def _candidate(self, arcs: tuple[Arc, ...], histories: Callable[[], Histories]) -> Any:
        asked = self._planner.histories(arcs) if self._by_history else ()
        memory = histories() if asked else {}
        key = (*[arc.number for arc in arcs], *[memory.get(number) for number in asked])
        found = self._known.get(key)
        if found is None:
            tree = self._planner.tree
            kept = tree.compatible(arcs, tree.active(self._leaves), memory)
            found = self._make(kept, memory)
            if len(self._known) < MOST_OUTCOMES:
                self._known[key] = found

        return found


def _once(ask: Ask) -> Ask:
    """Return a way to ask each guard once, though several regions share a transition."""
    answers: dict[int, bool] = {}

    def asked(arc: Arc) -> bool:
        if arc.number not in answers:
            answers[arc.number] = ask(arc)
        return answers[arc.number]

    return asked


def _by_chance(arcs: Iterable[Arc]) -> bool:
    return any(arc.written.probability for arc in arcs)


def _first(group: Sequence[Arc], ask: Ask, draw: Draw) -> Arc | None:
    """Return the transition that one leaf takes: the first enabled one, or the one drawn."""
    if not _by_chance(group):
        return next(filter(ask, group), None)

    for arc in group:
        rivals = [other for other in group if other.source == arc.source]
        if _by_chance(rivals):
            passing = [other for other in rivals if ask(other)]
            if _by_chance(passing):
                return _drawn(passing, draw())
        if ask(arc):
            return arc

    return None


def _drawn(arcs: Sequence[Arc], number: float) -> Arc | None:
    """Return the transition that a number below 1 selects; one without a share gets the rest."""
    total = 0.0
    for arc in arcs:
        total += arc.written.probability or 0.0
        # ten shares of 0.1 are a little less than 1
        if arc.written.probability and (number < total or total > 1 - _ROUNDING):
            return arc

    return next((arc for arc in arcs if arc.written.probability is None), None)

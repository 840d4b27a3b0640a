"""Choices that only the moment decides: between regions, by chance, and by history.

A candidate whose edge has a `Resolver` is not a transition yet: it asks guards, draws where
transitions have probabilities, leaves out conflicts, and returns the candidate of what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from prism.statechart._tree.numbers import Arc

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
        groups: The transitions that may react, for each leaf: its own and those around it, inner
            ones first.
        make: Makes the candidate of transitions that are enabled together.
        kept: The composites whose histories decide what is entered.

    Attributes:
        groups: As given.
        is_plain: Whether nothing but guards decides, each of one region.
    """

    __slots__ = ("_is_by_chance", "_kept", "_known", "_make", "groups", "is_plain")

    is_open = True
    """That it must be resolved, which a `Plan` has been."""

    settles = True
    """That more may follow: what it is resolved to says whether it does."""

    def __init__(
        self,
        groups: Sequence[Sequence[Arc]],
        make: Callable[[Sequence[Arc], Histories], Any],
        kept: Iterable[int],
    ) -> None:
        self.groups: Sequence[Sequence[Arc]] = groups
        self._make = make
        self._kept = tuple(kept)
        self._is_by_chance = any(map(_has_share, groups))
        self._known: dict[Any, Any] = {}
        arcs = [arc for group in groups for arc in group]
        is_shared = len(set(arcs)) < len(arcs)
        self.is_plain: bool = not (is_shared or self._is_by_chance or self._kept)

    def resolve(self, ask: Ask, draw: Draw, histories: Callable[[], Histories]) -> Any:
        """Return the candidate of the transitions that are enabled now; None if none is."""
        chosen: dict[Arc, None] = {}
        for group in self.groups:
            for arc in _drawn(group, ask, draw) if self._is_by_chance else group:
                if ask(arc):
                    chosen[arc] = None
                    break

        return self.together(tuple(chosen), histories) if chosen else None

    def enabled(self, ask: Ask, histories: Callable[[], Histories]) -> Iterator[Any]:
        """Yield the candidates of all transitions that pass now, in definition order."""
        passing = [[arc for arc in group if ask(arc)] for group in self.groups]
        groups = [group for group in passing if group]
        for arcs in islice(product(*groups), MOST_OUTCOMES if groups else 0):
            yield self.together(tuple(dict.fromkeys(arcs)), histories)

    def together(self, arcs: tuple[Arc, ...], histories: Callable[[], Histories] = dict) -> Any:
        """Return the candidate of transitions that are enabled together."""
        key: Any = arcs
        memory: Histories = {}
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


def _drawn(group: Sequence[Arc], ask: Ask, draw: Draw) -> Iterator[Arc]:
    """Yield the transitions of one leaf; of those that share a source by chance, the one drawn."""
    for arc in group:
        rivals = [other for other in group if other.source == arc.source]
        passing = [other for other in rivals if ask(other)] if _has_share(rivals) else []
        if _has_share(passing):
            yield from _at(passing, draw())
            return
        yield arc


def _at(arcs: Sequence[Arc], number: float) -> Iterator[Arc]:
    """Yield the transition that a number below 1 selects; one without a share gets the rest."""
    total = 0.0
    for arc in arcs:
        total += arc.written.probability or 0.0
        # ten shares of 0.1 are a little less than 1
        if arc.written.probability and (number < total or total > 1 - _ROUNDING):
            yield arc
            return

    yield from [arc for arc in arcs if arc.written.probability is None][:1]

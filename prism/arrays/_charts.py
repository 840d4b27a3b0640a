"""Charts of agents in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism.arrays._numbers import Agents, Mask, for_each
from prism.errors import DefinitionError, FieldTypeError
from prism.statechart import Statechart, Transition
from prism.statechart.transitions import StateT


class ArrayChart(Statechart[StateT]):
    """A flat chart whose guards and actions take a world and an array of agents.

    A guard, ``guard(world, agents)``, returns a truth value for each of these agents. An action,
    ``action(world, agents)``, runs just before they move.
    """


@dataclass(frozen=True, slots=True)
class Arc:
    """A transition between codes of states."""

    source: int
    target: int
    item: Transition[Any]
    chart: str

    def enabled(self, world: Any, who: Agents, states: NDArray[Any]) -> Mask:
        """Return for each of some agents, who are in some states, whether it may make it.

        Raises:
            FieldTypeError: If the guard does not return truth values for them.
        """
        fits: Mask = states == self.source
        guard: Any = self.item.guard
        if guard is not None and fits.any():
            what = f"chart {self.chart!r}: the guard of {self.item}"
            # numpy itself refuses `and`, `or`, `not` and 0 < x < 1, where &, | and ~ are meant
            mask = for_each(guard(world, who[fits]), int(fits.sum()), what)
            if mask.dtype != bool:
                raise FieldTypeError(f"{what} must return truth values, got {mask.dtype}")
            fits[fits] = mask
        return fits


class Codes:
    """The states of a world's charts as codes, and the transitions between them.

    Args:
        charts: The charts, one for each kind of agents.

    Attributes:
        states: All states; the code of each is its index.
        codes: The code of each state.
        arcs: The transitions of each event, in order of preference.

    Raises:
        DefinitionError: If one is not flat, or two have states of one text.
    """

    def __init__(self, charts: Sequence[Statechart[Any]]) -> None:
        definitions = [chart.definition for chart in charts]
        if nested := [each.name for each in definitions if each.is_nested]:
            wrong = "states inside states, after=, rate= or probability="
            raise DefinitionError(f"chart {nested[0]!r}: agents in arrays have no {wrong}")
        self.states: list[Any] = [state for each in definitions for state in each.states]
        self.dtype: Any = np.min_scalar_type(-len(self.states))
        self.codes: dict[Any, int] = {state: code for code, state in enumerate(self.states)}
        if len(self.codes) < len(self.states):
            raise DefinitionError("charts of a world need states of their own, with other texts")
        self.initial: list[int] = [self.codes[each.initial] for each in definitions]
        self.limits: NDArray[np.int32] = np.full(len(self.states), np.iinfo(np.int32).max, np.int32)
        self.arcs: dict[Any, list[Arc]] = {}
        for each in definitions:
            for state, ticks in each.timeouts.items():
                self.limits[self.codes[state]] = ticks
            for item in each.transitions:
                arc = Arc(self.codes[item.source], self.codes[item.target], item, each.name)
                self.arcs.setdefault(item.trigger, []).append(arc)

    def kind_of(self, state: Any) -> list[Any]:
        """Return all states of the chart that has a state."""
        kind = type(self.states[self.codes[state]])
        return [each for each in self.states if type(each) is kind]

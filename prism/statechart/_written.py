"""The parts of a chart, and the chart as a document and as a picture.

What writes and draws is imported when it is first used, since an application that only runs charts
needs none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from prism.statechart._engine.driving import Driving, distinct
from prism.statechart.states import state_text
from prism.statechart.transitions import StateT, Transition

if TYPE_CHECKING:
    from prism.statechart._engine.rows import NestedRows


class Written(Driving[StateT]):
    """What a chart is made of, as objects, as a document and as a picture."""

    # Its parts

    @property
    def states(self) -> frozenset[StateT]:
        """The states; ``definition.states`` has them in order."""
        return frozenset(self.definition.states)

    @property
    def state_type(self) -> type[StateT]:
        """The enum of the states, for ``state_type`` in the class of agents."""
        return self.definition.state_type

    @property
    def transitions(self) -> tuple[Transition[StateT], ...]:
        """The transitions in definition order, wildcards replaced."""
        return self.definition.transitions

    @property
    def triggers(self) -> tuple[str, ...]:
        """The events that the chart knows, in definition order."""
        return tuple(self._triggers)

    @property
    def initial(self) -> StateT:
        """State that new agents start in."""
        return self.definition.initial

    @property
    def decision_states(self) -> frozenset[StateT]:
        """States in which `afire` asks a reasoner."""
        return self.definition.decision_states

    @property
    def final_states(self) -> frozenset[StateT]:
        """States in which an agent is done."""
        return self.definition.final_states

    def valid_targets(self, state: StateT, trigger: str) -> list[StateT]:
        """Return the distinct targets of a state and an event, guards ignored."""
        outcomes = self._rows_as_it_runs.outcomes(self.state_of(state_text(state)), trigger)
        return distinct(each.to_state for each in outcomes)

    def valid_triggers(self, state: StateT) -> list[str]:
        """Return the events that a state reacts to, in definition order, guards ignored."""
        rows, member = self._rows_as_it_runs, self.state_of(state_text(state))
        return [trigger for trigger in self._triggers if rows.reaction(member, trigger)]

    @property
    def _rows_as_it_runs(self) -> NestedRows:
        from prism.statechart._engine.rows import NestedRows

        return NestedRows(self._as_it_runs.hierarchy) if self._steps is None else self._steps.rows

    # Documents and pictures

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as plain data, ready for JSON; ``docs/charts.md`` shows the shape.

        Guards and actions are written by their names (``__qualname__``, or a ``__name__`` that a
        callable object has).

        Raises:
            DefinitionError: If a function has no name, or two have the same; lists all of them.
        """
        from prism.statechart._document import to_data

        return to_data(self._as_it_runs)

    def to_json(self) -> str:
        """Return the definition as JSON text: see `to_dict`."""
        return format(self, "json")

    def to_scxml(self) -> str:
        """Return the chart as an SCXML document; ``docs/scxml.md`` describes its contents."""
        return format(self, "scxml")

    def to_svg(self, traffic: Mapping[tuple[str, str], int] | None = None) -> str:
        """Draw the chart as an SVG picture: see `prism.drawing.draw_svg`.

        Args:
            traffic: How often agents moved from source to target; the more often, the wider the
                arrow.
        """
        from prism.drawing import draw_svg
        from prism.statechart.outline import to_outline

        return draw_svg(to_outline(self._as_it_runs), traffic)

    def __format__(self, spec: str) -> str:
        """Write the chart as ``mermaid``, ``dot``, ``scxml``, ``json`` or ``svg``, else as `str`.

        Raises:
            ValueError: If the format is another one.
        """
        if not spec:
            return str(self)
        from prism.statechart.outline import as_text

        return as_text(self._as_it_runs, spec)

    def _repr_svg_(self) -> str:
        """Offer a notebook a picture."""
        return self.to_svg()

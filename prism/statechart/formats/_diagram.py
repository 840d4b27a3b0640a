"""A chart as it is drawn."""

from __future__ import annotations

from collections.abc import Iterable

from prism.drawing._diagram import Arrow, Diagram
from prism.statechart._definition import in_definition_order
from prism.statechart.formats._document import Definition, own_name
from prism.statechart.states import state_text
from prism.statechart.transitions import Transition

_FEWEST_COLLAPSED = 3


def to_diagram(chart: Definition) -> Diagram:
    """Return the outline of a chart; a move that every other state makes alike becomes one arrow without source."""
    states = in_definition_order(chart.states)
    return Diagram(
        tuple(map(state_text, states)),
        _arrows(chart.transitions, len(states)),
        state_text(chart.initial),
        chart.name,
        frozenset(map(state_text, chart.decision_states)),
        {state_text(state): chart.timeouts[state] for state in states if state in chart.timeouts},
    )


def _arrows(transitions: Iterable[Transition[object]], states: int) -> tuple[Arrow, ...]:  # type: ignore[type-var]
    sources: dict[tuple[str, str], dict[str, None]] = {}
    for item in transitions:
        sources.setdefault((state_text(item.target), label_of(item)), {})[
            state_text(item.source)
        ] = None

    labels: dict[tuple[str | None, str], dict[str, None]] = {}

    for (target, label), found in sources.items():
        others = len(found) - (target in found)
        everywhere = others == states - 1 and others >= _FEWEST_COLLAPSED
        for source in [None] if everywhere else list(found):
            labels.setdefault((source, target), {})[label] = None

    return tuple(Arrow(source, target, tuple(found)) for (source, target), found in labels.items())


def label_of(item: Transition[object]) -> str:  # type: ignore[type-var]
    """Return what stands at the arrow of a transition: ``trigger [guard] / action``, as in UML."""
    guard = "" if item.guard is None else f" [{own_name(item.guard) or 'guard'}]"
    action = "" if item.action is None else f" / {own_name(item.action) or 'action'}"
    return f"{item.trigger}{guard}{action}"

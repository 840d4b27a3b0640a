"""A chart as it is drawn, and the formats in which it can be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prism.drawing._diagram import Arrow, Box, Diagram
from prism.drawing._languages import to_dot, to_mermaid
from prism.drawing._svg import draw_svg
from prism.statechart._definition import Definition
from prism.statechart._identity import shown_name
from prism.statechart._nesting import Configuration
from prism.statechart._tree.numbers import CHART, HistoryAt
from prism.statechart.formats._document import to_data, to_text
from prism.statechart.formats._scxml import to_scxml
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMING, Transition, trigger_text

_FEWEST_COLLAPSED = 3
"""States that must have a transition in common before their arrows become one."""


def to_diagram(chart: Definition[Any]) -> Diagram:
    """Return the outline of a chart.

    A transition that all other states but the final ones have in common becomes one arrow without a
    source.
    """
    return Diagram(
        tuple(map(state_text, chart.states)),
        _arrows(chart.transitions, set(chart.states) - chart.final_states),
        None if isinstance(chart.initial, Configuration) else state_text(chart.initial),
        chart.name,
        frozenset(map(state_text, chart.decision_states)),
        {
            state_text(state): chart.timeouts[state]
            for state in chart.states
            if state in chart.timeouts
        },
        frozenset(map(state_text, chart.final_states)),
    )


def to_outline(chart: Definition[Any]) -> Diagram:
    """Return the outline of a chart with what lies inside what, and transitions as written."""
    tree = chart.tree
    if tree is None:
        return to_diagram(chart)

    nodes = tree.tree.nodes
    texts = list(tree.texts)
    targets = [target for arc in tree.arcs for target in arc.targets]
    targets += [each for node in nodes for each in node.initial]
    marks: dict[HistoryAt, str] = {}
    for target in targets:
        if isinstance(target, HistoryAt) and target not in marks:
            marks[target] = f"{state_text(nodes[target.composite].state)}, history {len(marks) + 1}"

    def name(target: int | HistoryAt) -> str:
        return marks[target] if isinstance(target, HistoryAt) else texts[target - 1]

    boxes = {
        texts[node.number - 1]: Box(
            (
                *map(name, node.children),
                *(mark for at, mark in marks.items() if at.composite == node.number),
            ),
            () if node.kind == "parallel" else tuple(map(name, node.initial)),
            node.kind == "parallel",
        )
        for node in nodes[1:]
        if node.children
    }
    labels: dict[tuple[str, str], dict[str, None]] = {}
    for arc in tree.arcs:
        for target in arc.targets or (arc.source,):
            leading = labels.setdefault((name(arc.source), name(target)), {})
            leading[label_of(arc.written)] = None
    notes = {
        texts[node.number - 1]: tuple(
            f"{kind} / {shown_name(action, kind)}"
            for kind, actions in (("entry", node.entry), ("exit", node.exit))
            for action in actions
        )
        for node in nodes[1:]
        if node.entry or node.exit
    }

    return Diagram(
        (*texts, *marks.values()),
        tuple(Arrow(source, target, tuple(found)) for (source, target), found in labels.items()),
        name(nodes[CHART].initial[0]),
        chart.name,
        frozenset(map(state_text, tree.decision_states)),
        {state_text(state): ticks for state, ticks in tree.timeouts.items()},
        frozenset(map(state_text, tree.final_states)),
        boxes,
        notes,
        {mark: "H*" if at.deep else "H" for at, mark in marks.items()},
    )


def _arrows(
    transitions: Iterable[Transition[Any]], sources_possible: set[Any]
) -> tuple[Arrow, ...]:
    left = set(map(state_text, sources_possible))

    # dicts serve as sets that keep the order of the definition
    sources: dict[tuple[str, str], dict[str, None]] = {}
    for item in transitions:
        leading = sources.setdefault((state_text(item.target), label_of(item)), {})
        leading[state_text(item.source)] = None

    labels: dict[tuple[str | None, str], dict[str, None]] = {}
    for (target, label), found in sources.items():
        others = found.keys() - {target}
        everywhere = others == left - {target} and len(others) >= _FEWEST_COLLAPSED
        for source in [None] if everywhere else list(found):
            labels.setdefault((source, target), {})[label] = None

    return tuple(Arrow(source, target, tuple(found)) for (source, target), found in labels.items())


def label_of(item: Transition[Any]) -> str:
    """Return the label of a transition's arrow: ``trigger [guard] / action``, as in UML."""
    guard, action = shown_name(item.guard, "guard"), shown_name(item.action, "action")
    label = trigger_text(item.trigger) + (f" [{guard}]" if guard else "")
    label += f" / {action}" if action else ""
    timing = (f"{name} {_shown(getattr(item, name))}" for name in TIMING if getattr(item, name))
    return " ".join([label, *(f"({each})" for each in timing)])


def _shown(value: Any) -> str:
    return shown_name(value, "rate") or "" if callable(value) else f"{value:g}"


_WRITERS: dict[str, Callable[[Definition[Any]], str]] = {
    "mermaid": lambda chart: to_mermaid(to_outline(chart)),
    "dot": lambda chart: to_dot(to_outline(chart)),
    "scxml": to_scxml,
    "json": lambda chart: to_text(to_data(chart, None, None)),
    "svg": lambda chart: draw_svg(to_outline(chart)),
}
FORMATS = tuple(_WRITERS)


def as_text(chart: Definition[Any], spec: str) -> str:
    """Write a chart in one of the formats.

    Args:
        chart: The chart.
        spec: One of ``FORMATS``.

    Raises:
        ValueError: If there is no such format.
    """
    if spec not in _WRITERS:
        raise ValueError(f"unknown format of a chart {spec!r}: use one of {', '.join(FORMATS)}")
    return _WRITERS[spec](chart)

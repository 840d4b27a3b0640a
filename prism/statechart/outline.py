"""A chart as it is drawn, and the formats in which it can be written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from prism.drawing import Arrow, Box, Diagram, draw_svg, to_dot, to_mermaid
from prism.statechart._definition import Definition
from prism.statechart._document import to_data
from prism.statechart._hierarchy import CHART, Hierarchy, HistoryAt
from prism.statechart._parts import TIMING
from prism.statechart._scxml import to_scxml
from prism.statechart.names import shown_name
from prism.statechart.states import state_text
from prism.statechart.transitions import Transition, trigger_text

__all__ = ["label_of", "to_outline"]

_FEWEST_COLLAPSED = 3
"""States that must have a transition in common before their arrows become one."""


def to_outline(chart: Definition[Any]) -> Diagram:
    """Return the outline of a chart with what lies inside what, and transitions as written.

    A transition that all other states but the final ones have in common becomes one arrow without
    a source.
    """
    tree, written = chart.hierarchy, chart.arguments
    decides, ends = (
        frozenset(map(state_text, written[each])) for each in ("decision_states", "final_states")
    )
    outline = _Outline(tree)
    return Diagram(
        (*tree.texts[1:], *outline.marks.values()),
        outline.arrows(set(tree.texts[1:]) - ends),
        outline.name(tree.nodes[CHART].initial[0]),
        chart.name,
        decides,
        ends,
        outline.boxes(),
        outline.notes(chart.timeouts),
        {label: "H*" if at.deep else "H" for at, label in outline.marks.items()},
    )


class _Outline:
    """The parts of the outline of a chart, by the texts of its states.

    Args:
        tree: The chart's states and transitions.

    Attributes:
        marks: The names of the histories, each of which has a mark in its composite.
    """

    def __init__(self, tree: Hierarchy) -> None:
        self._tree = tree
        targets = chain(*(arc.targets for arc in tree.arcs), *(node.initial for node in tree.nodes))
        histories = dict.fromkeys(each for each in targets if isinstance(each, HistoryAt))
        self.marks: dict[HistoryAt, str] = {
            at: f"{tree.texts[at.composite]}, history {number}"
            for number, at in enumerate(histories, start=1)
        }

    def name(self, target: int | HistoryAt) -> str:
        """Return the text of a state, or the name of a history."""
        return self.marks[target] if isinstance(target, HistoryAt) else self._tree.texts[target]

    def boxes(self) -> dict[str, Box]:
        """Return what lies inside each composite."""
        return {
            self.name(node.number): Box(
                (
                    *map(self.name, node.children),
                    *(label for at, label in self.marks.items() if at.composite == node.number),
                ),
                () if node.kind == "parallel" else tuple(map(self.name, node.initial)),
                node.kind == "parallel",
            )
            for node in self._tree.nodes[1:]
            if node.children
        }

    def arrows(self, leaving: set[str]) -> tuple[Arrow, ...]:
        """Return the transitions as written, those between the same states as one arrow.

        Args:
            leaving: The states that are not final.
        """
        # dicts serve as sets that keep the order of the definition
        sources: dict[tuple[str, str], dict[str, None]] = {}
        for arc in self._tree.arcs:
            for end in map(self.name, arc.targets or (arc.source,)):
                leading = sources.setdefault((end, label_of(arc.written)), {})
                leading[self.name(arc.source)] = None

        labels: dict[tuple[str | None, str], dict[str, None]] = {}
        for (target, label), leading in sources.items():
            others = leading.keys() - {target}
            is_shared = len(others) >= _FEWEST_COLLAPSED and others == leaving - {target}
            for source in [None] if is_shared else leading:
                labels.setdefault((source, target), {})[label] = None
        return tuple(Arrow(*ends, tuple(texts)) for ends, texts in labels.items())

    def notes(self, timeouts: Mapping[Any, int]) -> dict[str, tuple[str, ...]]:
        """Return the time-out, the entry and the exit actions of each state."""
        return {
            self.name(node.number): (
                *(f"time-out after {timeouts[it]} ticks" for it in timeouts.keys() & {node.state}),
                *(f"entry / {shown_name(action, 'entry')}" for action in node.entry),
                *(f"exit / {shown_name(action, 'exit')}" for action in node.exit),
            )
            for node in self._tree.nodes[1:]
        }


def label_of(item: Transition[Any]) -> str:
    """Return the label of a transition's arrow: ``trigger [guard] / action``, as in UML."""
    guard, action = shown_name(item.guard, "guard"), shown_name(item.action, "action")
    label = trigger_text(item.trigger) + (f" [{guard}]" if guard else "")
    label += f" / {action}" if action else ""
    timing = (f"{name} {_text_of(getattr(item, name))}" for name in TIMING if getattr(item, name))
    return " ".join([label, *(f"({each})" for each in timing)])


def _text_of(value: Any) -> str:
    return shown_name(value, "rate") or "" if callable(value) else f"{value:g}"


WRITERS: dict[str, Callable[[Definition[Any]], str]] = {
    "mermaid": lambda chart: to_mermaid(to_outline(chart)),
    "dot": lambda chart: to_dot(to_outline(chart)),
    "scxml": lambda chart: to_scxml(to_data(chart)),
    "json": lambda chart: json.dumps(to_data(chart), indent=2, ensure_ascii=False),
    "svg": lambda chart: draw_svg(to_outline(chart)),
}

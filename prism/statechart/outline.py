"""A chart as it is drawn, and the formats in which it can be written."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from prism.drawing import Arrow, Box, Diagram, draw_svg, to_dot, to_mermaid
from prism.statechart._definition import Definition
from prism.statechart._document import to_data
from prism.statechart._hierarchy import CHART, Hierarchy, HistoryAt
from prism.statechart._scxml import to_scxml
from prism.statechart.names import function_label
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMING, Transition, trigger_text

__all__ = ["label_of", "to_outline"]

_FEWEST_COLLAPSED = 3
"""States that must have a transition in common before their arrows become one."""


def to_outline(chart: Definition[Any]) -> Diagram:
    """Return the outline of a chart with what lies inside what, and transitions as written.

    A transition that all other states but the final ones have in common becomes one arrow without
    a source. A history has a mark in its composite.
    """
    tree, name = chart.hierarchy, partial(_name, chart.hierarchy)
    decides = frozenset(map(state_text, chart.arguments["decision_states"]))
    ends = frozenset(map(state_text, chart.arguments["final_states"]))
    marks = {name(each): each for each in tree.histories}
    boxes, notes = dict[str, Box](), dict[str, tuple[str, ...]]()
    for node in tree.nodes[1:]:
        limit = chart.timeouts.get(node.state)
        notes[name(node.number)] = (
            *([f"time-out after {limit} ticks"] if limit else []),
            *(f"entry / {function_label(action, 'entry')}" for action in node.entry),
            *(f"exit / {function_label(action, 'exit')}" for action in node.exit),
        )
        if node.children:
            histories = (mark for mark, at in marks.items() if at.composite == node.number)
            inside, is_parallel = (*map(name, node.children), *histories), node.kind == "parallel"
            initial = () if is_parallel else tuple(map(name, node.initial))
            boxes[name(node.number)] = Box(inside, initial, is_parallel)
    states, first = (*tree.texts[1:], *marks), name(tree.nodes[CHART].initial[0])
    arrows = _arrows(tree, set(tree.texts[1:]) - ends)
    signs = {mark: "H*" if at.deep else "H" for mark, at in marks.items()}
    return Diagram(states, arrows, first, chart.name, decides, ends, boxes, notes, signs)


def _name(tree: Hierarchy, target: int | HistoryAt) -> str:
    """Return the text of a state, or the name of a history."""
    if isinstance(target, HistoryAt):
        return f"{tree.texts[target.composite]}, history{'*' * target.deep}"
    return tree.texts[target]


def _arrows(tree: Hierarchy, leaving: set[str]) -> tuple[Arrow, ...]:
    """Return the transitions as written, those between the same states as one arrow.

    Args:
        tree: The chart's states and transitions.
        leaving: The states that are not final.
    """
    # dicts serve as sets that keep the order of the definition
    sources: dict[tuple[str, str], dict[str, None]] = {}
    for arc in tree.arcs:
        for end in arc.targets or (arc.source,):
            leading = sources.setdefault((_name(tree, end), label_of(arc.written)), {})
            leading[tree.texts[arc.source]] = None

    labels: dict[tuple[str | None, str], list[str]] = {}
    for (target, label), leading in sources.items():
        others = leading.keys() - {target}
        is_shared = len(others) >= _FEWEST_COLLAPSED and others == leaving - {target}
        for source in [None] if is_shared else leading:
            labels.setdefault((source, target), []).append(label)
    return tuple(Arrow(*ends, tuple(texts)) for ends, texts in labels.items())


def label_of(item: Transition[Any]) -> str:
    """Return the label of a transition's arrow: ``trigger [guard] / action``, as in UML."""
    guard, action = function_label(item.guard, "guard"), function_label(item.action, "action")
    label = trigger_text(item.trigger) + (f" [{guard}]" if guard else "")
    label += f" / {action}" if action else ""
    timing = (f"{name} {_text_of(getattr(item, name))}" for name in TIMING if getattr(item, name))
    return " ".join([label, *(f"({each})" for each in timing)])


def _text_of(value: Any) -> str:
    return function_label(value, "rate") or "" if callable(value) else f"{value:g}"


WRITERS: dict[str, Callable[[Definition[Any]], str]] = {
    "mermaid": lambda chart: to_mermaid(to_outline(chart)),
    "dot": lambda chart: to_dot(to_outline(chart)),
    "scxml": lambda chart: to_scxml(to_data(chart)),
    "json": lambda chart: json.dumps(to_data(chart), indent=2, ensure_ascii=False),
    "svg": lambda chart: draw_svg(to_outline(chart)),
}

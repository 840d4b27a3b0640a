"""A diagram as DOT text for Graphviz (https://graphviz.org/doc/info/lang.html)."""

from __future__ import annotations

from collections.abc import Sequence

from prism.drawing._characters import showable
from prism.drawing._diagram import Diagram


def to_dot(diagram: Diagram) -> str:
    """Return a diagram as a directed graph in the DOT language of Graphviz.

    States are nodes with generated ids (``s0``, ``s1``, ...) in the order of the diagram, labelled
    with their names, so that any text can be a state. Decision states have a double border, and an
    arrow leads from a final state to a dot in a circle.

    Args:
        diagram: What to write.
    """
    ids = {state: f"s{number}" for number, state in enumerate(diagram.states)}
    lines = [
        f"digraph {_quoted([diagram.name])} {{",
        '    node [shape=box, style=rounded, fontname="Helvetica"];',
        '    edge [fontname="Helvetica", fontsize=10];',
    ]

    for state, node in ids.items():
        label = [state]
        if state in diagram.timeouts:
            label.append(f"time-out after {diagram.timeouts[state]} ticks")
        border = ", peripheries=2" if state in diagram.decision_states else ""
        lines.append(f"    {node} [label={_quoted(label)}{border}];")

    if any(arrow.source is None for arrow in diagram.arrows):
        lines.append('    any [label="every other state", style="rounded,dashed"];')

    if diagram.initial is not None:
        lines += [
            '    start [shape=point, width=0.12, label=""];',
            f"    start -> {ids[diagram.initial]};",
        ]

    for arrow in diagram.arrows:
        source = "any" if arrow.source is None else ids[arrow.source]
        lines.append(f"    {source} -> {ids[arrow.target]} [label={_quoted(arrow.labels)}];")

    final = [node for state, node in ids.items() if state in diagram.final_states]
    if final:
        lines.append(
            '    end [shape=doublecircle, width=0.1, style=filled, fillcolor=black, label=""];'
        )
        lines += [f"    {node} -> end;" for node in final]

    return "\n".join([*lines, "}"]) + "\n"


def _quoted(lines: Sequence[str]) -> str:
    """Return lines as one quoted string in which no character has a meaning for Graphviz."""
    escaped = (
        showable(line)
        .replace("&", "&amp;")
        .replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("\r", " ")
        for line in lines
    )
    return '"' + "\\n".join(escaped).replace("\n", "\\n") + '"'

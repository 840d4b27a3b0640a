"""A chart as DOT text for Graphviz (https://graphviz.org/doc/info/lang.html)."""

from __future__ import annotations

from prism.drawing._diagram import Diagram, showable


def to_dot(outline: Diagram) -> str:
    """Write a directed graph.

    States are nodes with generated ids (``s0``, ``s1``, ...) in definition order, so that any text
    can be a state, and their texts as labels. Decision states have a double border.

    Args:
        outline: What to show.
    """
    ids = {state: f"s{number}" for number, state in enumerate(outline.states)}
    lines = [
        f"digraph {_quoted(outline.name)} {{",
        '    node [shape=box, style=rounded, fontname="Helvetica"];',
        '    edge [fontname="Helvetica", fontsize=10];',
    ]
    for state, name in ids.items():
        border = ", peripheries=2" if state in outline.decision_states else ""
        lines.append(f"    {name} [label={_quoted(*_described(outline, state))}{border}];")

    if any(arrow.source is None for arrow in outline.arrows):
        lines.append('    any [label="every other state", style="rounded,dashed"];')

    if outline.initial is not None:
        lines += [
            '    start [shape=point, width=0.12, label=""];',
            f"    start -> {ids[outline.initial]};",
        ]

    for arrow in outline.arrows:
        source = "any" if arrow.source is None else ids[arrow.source]
        lines.append(f"    {source} -> {ids[arrow.target]} [label={_quoted(*arrow.labels)}];")

    return "\n".join([*lines, "}"]) + "\n"


def _described(outline: Diagram, state: str) -> list[str]:
    limit = outline.timeouts.get(state)
    return [state] if limit is None else [state, f"time-out after {limit} ticks"]


def _quoted(*lines: str) -> str:
    """Write lines as one quoted string in which no character means anything to Graphviz."""
    escaped = (
        showable(line)
        .replace("&", "&amp;")
        .replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("\r", " ")
        for line in lines
    )
    return '"' + "\\n".join(escaped).replace("\n", "\\n") + '"'

"""A diagram as text that other programs draw: DOT and Mermaid.

DOT is Graphviz's (https://graphviz.org/doc/info/lang.html), Mermaid's is a ``stateDiagram-v2``
(https://mermaid.js.org/syntax/stateDiagram.html).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set

from prism.drawing._diagram import Diagram
from prism.drawing._text import showable


def to_dot(diagram: Diagram) -> str:
    """Return a diagram as a directed graph in the DOT language of Graphviz.

    States are nodes with generated ids (``s0``, ``s1``, ...) in the order of the diagram, labelled
    with their names, so that any text can be a state. Decision states have a double border, and an
    arrow leads from a final state to a dot in a circle.

    Args:
        diagram: What to write.
    """
    ids = _ids(diagram)
    lines = [
        f"digraph {_quoted([diagram.name])} {{",
        '    node [shape=box, style=rounded, fontname="Helvetica"];',
        '    edge [fontname="Helvetica", fontsize=10];',
    ]

    for state in diagram.states:
        limit = diagram.timeouts.get(state)
        label = [state] if limit is None else [state, f"time-out after {limit} ticks"]
        border = ", peripheries=2" if state in diagram.decision_states else ""
        lines.append(f"    {ids[state]} [label={_quoted(label)}{border}];")

    if _has_rest(diagram):
        lines.append('    any [label="every other state", style="rounded,dashed"];')

    if diagram.initial is not None:
        lines += [
            '    start [shape=point, width=0.12, label=""];',
            f"    start -> {ids[diagram.initial]};",
        ]

    lines += [
        f"    {ids[arrow.source]} -> {ids[arrow.target]} [label={_quoted(arrow.labels)}];"
        for arrow in diagram.arrows
    ]
    if final := _nodes(diagram, ids, diagram.final_states):
        lines.append(
            '    end [shape=doublecircle, width=0.1, style=filled, fillcolor=black, label=""];'
        )
        lines += [f"    {node} -> end;" for node in final]

    return "\n".join([*lines, "}"]) + "\n"


def _ids(diagram: Diagram) -> dict[str | None, str]:
    """Return an id for each state, and under None that of all other states."""
    return {None: "any", **{state: f"s{number}" for number, state in enumerate(diagram.states)}}


def _has_rest(diagram: Diagram) -> bool:
    return any(arrow.source is None for arrow in diagram.arrows)


def _nodes(diagram: Diagram, ids: Mapping[str | None, str], states: Set[str]) -> list[str]:
    """Return the ids of some states, in the order of the diagram."""
    return [ids[state] for state in diagram.states if state in states]


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


_SPECIAL = re.compile(
    r"[^A-Za-z0-9_ \x80-\U0010ffff]"
    r"|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"  # at the edge of a word it makes text bold
    r"|(?i:d(?=irection\s))"  # a command wherever it stands, even between quotes
)


def to_mermaid(diagram: Diagram) -> str:
    """Return a diagram as Mermaid text, a ``stateDiagram-v2``.

    States have generated ids (``s0``, ``s1``, ...) in the order of the diagram and their names as
    descriptions, so that any text can be a state. An arrow leads from a final state to the end.

    Args:
        diagram: What to write.
    """
    ids = _ids(diagram)
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{_escaped(state)}" as {ids[state]}' for state in diagram.states]
    lines += [
        f"    note right of {ids[state]} : time-out after {ticks} ticks"
        for state, ticks in diagram.timeouts.items()
    ]
    if _has_rest(diagram):
        lines.append('    state "every other state" as any')
    if diagram.initial is not None:
        lines.append(f"    [*] --> {ids[diagram.initial]}")

    for arrow in diagram.arrows:
        label = "<br/>".join(map(_escaped, arrow.labels))
        said = f" : {label}" if label else ""
        lines.append(f"    {ids[arrow.source]} --> {ids[arrow.target]}{said}")

    lines += [f"    {node} --> [*]" for node in _nodes(diagram, ids, diagram.final_states)]
    if decisions := _nodes(diagram, ids, diagram.decision_states):
        lines += [
            "    classDef decision stroke-width:3px",
            f"    class {','.join(decisions)} decision",
        ]

    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Return a text with all characters that Mermaid may interpret as codes, such as ``#34;``."""
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", showable(text))

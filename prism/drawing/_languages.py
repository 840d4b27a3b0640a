"""A diagram as text that other programs draw: DOT and Mermaid.

DOT is Graphviz's (https://graphviz.org/doc/info/lang.html), Mermaid's is a ``stateDiagram-v2``
(https://mermaid.js.org/syntax/stateDiagram.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set

from prism.drawing._diagram import Arrow, Diagram
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

    if diagram.boxes:
        lines.insert(1, "    compound=true;")
    for state in _outermost(diagram):
        lines += _dot_state(diagram, ids, state, "    ")

    if _has_rest(diagram):
        lines.append('    any [label="every other state", style="rounded,dashed"];')

    if diagram.initial is not None:
        lines += [
            '    start [shape=point, width=0.12, label=""];',
            f"    start -> {_dot_end(diagram, ids, diagram.initial, 'lhead')};",
        ]

    lines += [f"    {_dot_arrow(diagram, ids, arrow)};" for arrow in diagram.arrows]
    if final := _nodes(diagram, ids, diagram.final_states.intersection(_outermost(diagram))):
        lines.append(
            '    end [shape=doublecircle, width=0.1, style=filled, fillcolor=black, label=""];'
        )
        lines += [f"    {node} -> end;" for node in final]

    return "\n".join([*lines, "}"]) + "\n"


def _dot_state(
    diagram: Diagram, ids: Mapping[str | None, str], state: str, indent: str
) -> Iterator[str]:
    """Yield a node, or a cluster with what lies inside a state."""
    limit = diagram.timeouts.get(state)
    label = [state, *([] if limit is None else [f"time-out after {limit} ticks"])]
    label += diagram.notes.get(state, ())
    border = ", peripheries=2" if state in diagram.decision_states else ""
    # inside another state, a final state means that the enclosing state is done
    border += ", penwidth=3" if state in diagram.final_states and indent > "    " else ""
    box = diagram.boxes.get(state)
    if state in diagram.marks:
        yield f"{indent}{ids[state]} [shape=circle, label={_quoted([diagram.marks[state]])}];"
        return
    if box is None:
        yield f"{indent}{ids[state]} [label={_quoted(label)}{border}];"
        return

    style = "rounded" if not _is_region(diagram, state) else "rounded,dashed"
    yield f"{indent}subgraph cluster_{ids[state]} {{"
    yield f'{indent}    label={_quoted(label)}; style="{style}"; fontname="Helvetica";'
    for inside in box.inside:
        yield from _dot_state(diagram, ids, inside, indent + "    ")
    for number, initial in enumerate(box.initial):
        start = f"{ids[state]}_start{number}"
        yield f'{indent}    {start} [shape=point, width=0.08, label=""];'
        yield f"{indent}    {start} -> {_dot_end(diagram, ids, initial, 'lhead')};"
    yield f"{indent}}}"


def _dot_end(diagram: Diagram, ids: Mapping[str | None, str], state: str, side: str) -> str:
    """Return the end of an arrow: a node; for a cluster, a node inside and the cluster."""
    node, cluster = _dot_node(diagram, ids, state, side)
    return node + (f" [{cluster}]" if cluster else "")


def _dot_node(
    diagram: Diagram, ids: Mapping[str | None, str], state: str | None, side: str
) -> tuple[str, str]:
    inner = state
    while inner is not None and inner in diagram.boxes:
        inner = diagram.boxes[inner].inside[0]
    return ids[inner], "" if inner == state else f"{side}=cluster_{ids[state]}"


def _dot_arrow(diagram: Diagram, ids: Mapping[str | None, str], arrow: Arrow) -> str:
    source, tail = _dot_node(diagram, ids, arrow.source, "ltail")
    target, head = _dot_node(diagram, ids, arrow.target, "lhead")
    attributes = [f"label={_quoted(arrow.labels)}", *filter(None, (tail, head))]
    return f"{source} -> {target} [{', '.join(attributes)}]"


def _is_region(diagram: Diagram, state: str) -> bool:
    return any(box.is_parallel and state in box.inside for box in diagram.boxes.values())


def _outermost(diagram: Diagram) -> list[str]:
    """Return the outermost states."""
    inside = {name for box in diagram.boxes.values() for name in box.inside}
    return [state for state in diagram.states if state not in inside]


def _ids(diagram: Diagram) -> dict[str | None, str]:
    """Return an ID for each state and, under None, the ID of all other states."""
    return {None: "any", **{state: f"s{number}" for number, state in enumerate(diagram.states)}}


def _has_rest(diagram: Diagram) -> bool:
    return any(arrow.source is None for arrow in diagram.arrows)


def _nodes(diagram: Diagram, ids: Mapping[str | None, str], states: Set[str]) -> list[str]:
    """Return the ids of some states, in the order of the diagram."""
    return [ids[state] for state in diagram.states if state in states]


def _quoted(lines: Sequence[str]) -> str:
    """Join lines to one quoted string, with every character that Graphviz interprets escaped."""
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
    r"|(?i:d(?=irection\s))"  # a command anywhere, even between quotes
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
    around = {name: state for state, box in diagram.boxes.items() for name in box.inside}
    within = {state: [*_states_around(state, around)] for state in diagram.states}
    for state in _outermost(diagram):
        lines += _mermaid_state(diagram, ids, state, within, "    ")
    lines += [
        f"    note right of {ids[state]} : time-out after {ticks} ticks"
        for state, ticks in diagram.timeouts.items()
    ]
    if _has_rest(diagram):
        lines.append('    state "every other state" as any')
    if diagram.initial is not None:
        lines.append(f"    [*] --> {ids[diagram.initial]}")

    lines += _mermaid_arrows(diagram, ids, within)
    if decisions := _nodes(diagram, ids, diagram.decision_states):
        lines += [
            "    classDef decision stroke-width:3px",
            f"    class {','.join(decisions)} decision",
        ]

    return "\n".join(lines) + "\n"


def _mermaid_arrows(
    diagram: Diagram, ids: Mapping[str | None, str], within: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield the arrows between the outermost states, and from these to the end."""
    for arrow in diagram.arrows:
        if _common(arrow, within) is None:
            yield f"    {_mermaid_arrow(ids, arrow)}"

    ends = diagram.final_states.intersection(_outermost(diagram))
    for node in _nodes(diagram, ids, ends):
        yield f"    {node} --> [*]"


def _mermaid_state(
    diagram: Diagram,
    ids: Mapping[str | None, str],
    state: str,
    within: Mapping[str, Sequence[str]],
    indent: str,
) -> Iterator[str]:
    """Yield a state, with what lies inside it and its notes."""
    name = diagram.marks.get(state, state)
    described = f'{indent}state "{_escaped(name)}" as {ids[state]}'
    if state in diagram.boxes:
        yield described + " {"
        yield from _mermaid_box(diagram, ids, state, within, indent + "    ")
        yield indent + "}"
    else:
        yield described
    for note in diagram.notes.get(state, ()):
        yield f"{indent}note left of {ids[state]} : {_escaped(note)}"


def _mermaid_box(
    diagram: Diagram,
    ids: Mapping[str | None, str],
    state: str,
    within: Mapping[str, Sequence[str]],
    indent: str,
) -> Iterator[str]:
    """Yield what lies inside a state, and the arrows that do not leave it."""
    box = diagram.boxes[state]
    for number, inside in enumerate(box.inside):
        if box.is_parallel and number and inside not in diagram.marks:
            yield f"{indent}--"
        yield from _mermaid_state(diagram, ids, inside, within, indent)

    ends = _nodes(diagram, ids, diagram.final_states.intersection(box.inside))
    yield from (f"{indent}[*] --> {ids[initial]}" for initial in box.initial)
    yield from (f"{indent}{node} --> [*]" for node in ends)
    yield from (
        f"{indent}{_mermaid_arrow(ids, arrow)}"
        for arrow in diagram.arrows
        if _common(arrow, within) == state
    )


def _mermaid_arrow(ids: Mapping[str | None, str], arrow: Arrow) -> str:
    label = "<br/>".join(map(_escaped, arrow.labels))
    said = f" : {label}" if label else ""
    return f"{ids[arrow.source]} --> {ids[arrow.target]}{said}"


def _states_around(state: str, around: Mapping[str, str]) -> Iterator[str]:
    while state in around:
        state = around[state]
        yield state


def _common(arrow: Arrow, within: Mapping[str, Sequence[str]]) -> str | None:
    """Return the innermost state around both ends of an arrow; None for the diagram itself."""
    ends = within[arrow.target]
    found = (state for state in within.get(arrow.source or "", ()) if state in ends)
    return next(found, None)


def _escaped(text: str) -> str:
    """Return a text with all characters that Mermaid may interpret as codes, such as ``#34;``."""
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", showable(text))

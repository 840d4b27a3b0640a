"""A diagram as text that other programs draw: DOT and Mermaid.

DOT is Graphviz's (https://graphviz.org/doc/info/lang.html), Mermaid's is a ``stateDiagram-v2``
(https://mermaid.js.org/syntax/stateDiagram.html). In both, states have generated ids (``s0``,
``s1``, ...) in the order of the diagram and their names as labels, so that any text can be a state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from prism.drawing._diagram import Diagram, Levels
from prism.drawing._text import showable


def to_dot(diagram: Diagram) -> str:
    """Return a diagram as a directed graph in the DOT language of Graphviz.

    Decision states have a double border, final states a thick one. A state with states inside is a
    cluster; its arrows to and from what is inside it are drawn at a dashed node with its name,
    since Graphviz draws none from a border inwards.

    Args:
        diagram: What to write.
    """
    return "\n".join(_Dot(diagram).lines()) + "\n"


def to_mermaid(diagram: Diagram) -> str:
    """Return a diagram as Mermaid text, a ``stateDiagram-v2``.

    An arrow leads from a final state to the end.

    Args:
        diagram: What to write.
    """
    return "\n".join(_Mermaid(diagram).lines()) + "\n"


class _Language(Levels):
    """What the languages have in common: an id for each state."""

    def __init__(self, diagram: Diagram) -> None:
        super().__init__(diagram)
        self.ids: dict[str | None, str] = {None: "any"}
        self.ids |= {state: f"s{number}" for number, state in enumerate(diagram.states)}
        self.has_rest = any(arrow.source is None for arrow in diagram.arrows)


class _Dot(_Language):
    def lines(self) -> Iterator[str]:
        """Yield the lines of the graph."""
        diagram = self.diagram
        yield f"digraph {_quoted([diagram.name])} {{"
        if diagram.boxes:
            yield "    compound=true; newrank=true;"
        yield '    node [shape=box, style=rounded, fontname="Helvetica"];'
        yield '    edge [fontname="Helvetica", fontsize=10];'
        for state in self.states(None):
            yield from self._state(state, "    ")
        if self.has_rest:
            yield '    any [label="every other state", style="rounded,dashed"];'
        yield from self._starts("start", 0.12, None, "    ")
        for arrow in diagram.arrows:
            tail, *leaving = self._end(arrow.source, arrow.target, "ltail")
            head, *entering = self._end(arrow.target, arrow.source, "lhead")
            attributes = [f"label={_quoted(arrow.labels)}", *leaving, *entering]
            yield f"    {tail} -> {head} [{', '.join(attributes)}];"

        yield "}"

    def _state(self, state: str, indent: str) -> Iterator[str]:
        """Yield a node, or a cluster with what lies inside a state."""
        diagram, node = self.diagram, self.ids[state]
        if state in diagram.histories:
            yield f"{indent}{node} [shape=circle, label={_quoted([diagram.histories[state]])}];"
            return

        text = _quoted([state, *diagram.notes.get(state, ())])
        around = self.level_of(state)
        if state not in diagram.boxes:
            border = ", peripheries=2" if state in diagram.decision_states else ""
            border += ", penwidth=3" if state in diagram.final_states else ""
            yield f"{indent}{node} [label={text}{border}];"
            return

        style = "rounded,dashed" if self.is_parallel(around) else "rounded"
        yield f"{indent}subgraph cluster_{node} {{"
        yield f'{indent}    label={text}; style="{style}"; fontname="Helvetica";'
        for inside in diagram.boxes[state].inside:
            yield from self._state(inside, indent + "    ")
        ends = [{arrow.source, arrow.target} for arrow in diagram.arrows]
        if any(
            state in both and all(self._is_within(each, state) for each in both) for both in ends
        ):
            yield f'{indent}    {node}_self [label={_quoted([state])}, style="rounded,dashed"];'
        yield from self._starts(f"{node}_start", 0.08, state, indent + "    ")
        yield f"{indent}}}"

    def _is_within(self, state: str | None, around: str) -> bool:
        return state is not None and around in self.active(state)

    def _end(self, state: str | None, other: str | None, side: str) -> list[str]:
        """Return one end of an arrow: a node and, for a cluster, the attribute that names it."""
        boxes = self.diagram.boxes
        if state is None or state not in boxes:
            return [self.ids[state]]
        if self._is_within(other, state):
            return [f"{self.ids[state]}_self"]

        inner = state
        while inner in boxes:
            inner = boxes[inner].inside[0]
        return [self.ids[inner], f"{side}=cluster_{self.ids[state]}"]

    def _starts(self, name: str, size: float, level: str | None, indent: str) -> Iterator[str]:
        """Yield a dot for each state that is entered first, with an arrow from it."""
        for number, initial in enumerate(self.initial(level)):
            dot = f"{name}{number or ''}"
            head, *cluster = self._end(initial, None, "lhead")
            yield f'{indent}{dot} [shape=point, width={size}, label=""];'
            yield f"{indent}{dot} -> {head}{''.join(f' [{each}]' for each in cluster)};"


def _quoted(lines: Sequence[str]) -> str:
    """Join lines to one quoted string, with every character that Graphviz interprets escaped."""
    text = showable("\n".join(lines)).replace("&", "&amp;").replace("\\", "\\\\")
    return '"' + text.replace('"', '\\"').replace("\r", " ").replace("\n", "\\n") + '"'


_SPECIAL = re.compile(
    r"[^A-Za-z0-9_ \x80-\U0010ffff]"
    r"|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"  # at the edge of a word it makes text bold
    r"|(?i:d(?=irection\s))"  # a command anywhere, even between quotes
)


class _Mermaid(_Language):
    def lines(self) -> Iterator[str]:
        """Yield the lines of the diagram."""
        diagram, ids = self.diagram, self.ids
        yield "stateDiagram-v2"
        yield from self._level(None, "    ")
        if self.has_rest:
            yield '    state "every other state" as any'

        # Mermaid draws no arrow to or from a region that is written inside a state.
        for arrow in diagram.arrows:
            label = "<br/>".join(map(_escaped, arrow.labels))
            text = f" : {label}" if label else ""
            yield f"    {ids[arrow.source]} --> {ids[arrow.target]}{text}"

        if asking := [ids[state] for state in diagram.states if state in diagram.decision_states]:
            yield "    classDef decision stroke-width:3px"
            yield f"    class {','.join(asking)} decision"

    def _level(self, level: str | None, indent: str) -> Iterator[str]:
        """Yield what lies inside a state, or the outermost states."""
        diagram, ids = self.diagram, self.ids
        states = self.states(level)
        for number, state in enumerate(states):
            if self.is_parallel(level) and number and state not in diagram.histories:
                yield f"{indent}--"
            text = _escaped(diagram.histories.get(state, state))
            is_box = state in diagram.boxes
            yield f'{indent}state "{text}" as {ids[state]}{" {" if is_box else ""}'
            if is_box:
                yield from self._level(state, indent + "    ")
                yield indent + "}"
            for note in diagram.notes.get(state, ()):
                yield f"{indent}note left of {ids[state]} : {_escaped(note)}"

        for initial in self.initial(level):
            first: str | None = initial
            while self.is_parallel(around := self.level_of(first)):
                first = around
            yield f"{indent}[*] --> {ids[first]}"
        for state in states:
            if state in diagram.final_states:
                yield f"{indent}{ids[state]} --> [*]"


def _escaped(text: str) -> str:
    """Return a text with all characters that Mermaid may interpret as codes, such as ``#34;``."""
    return _SPECIAL.sub(lambda match: f"#{ord(match[0])};", showable(text))

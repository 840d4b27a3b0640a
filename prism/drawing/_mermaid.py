"""A chart as Mermaid text (``stateDiagram-v2``, https://mermaid.js.org/syntax/stateDiagram.html)."""

from __future__ import annotations

import re

from prism.drawing._diagram import Diagram, showable

_SPECIAL = re.compile(
    r"[^A-Za-z0-9_ \x80-\U0010ffff]"
    r"|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"  # at the edge of a word it makes text bold
    r"|(?i:d(?=irection\s))"  # a command wherever it stands, even between quotes
)


def to_mermaid(outline: Diagram) -> str:
    """Write a state diagram.

    States have generated ids (``s0``, ``s1``, ...) in definition order, so that any text can be a
    state, and their texts as descriptions.

    Args:
        outline: What to show.
    """
    ids = {state: f"s{number}" for number, state in enumerate(outline.states)}
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{_escaped(state)}" as {name}' for state, name in ids.items()]
    lines += [
        f"    note right of {ids[state]} : time-out after {ticks} ticks"
        for state, ticks in outline.timeouts.items()
    ]
    if any(arrow.source is None for arrow in outline.arrows):
        lines.append('    state "every other state" as any')
    if outline.initial is not None:
        lines.append(f"    [*] --> {ids[outline.initial]}")

    for arrow in outline.arrows:
        source = "any" if arrow.source is None else ids[arrow.source]
        label = "<br/>".join(map(_escaped, arrow.labels))
        lines.append(f"    {source} --> {ids[arrow.target]}" + (f" : {label}" if label else ""))

    decisions = [name for state, name in ids.items() if state in outline.decision_states]
    if decisions:
        lines += [
            "    classDef decision stroke-width:3px",
            f"    class {','.join(decisions)} decision",
        ]

    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Write everything that could mean something to Mermaid as a character code, such as ``#34;``."""
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", showable(text))

"""Diagrams as DOT and as Mermaid."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from prism.drawing import Box, Diagram, showable, to_dot, to_mermaid
from prism.statechart import social_media_chart
from prism.statechart.outline import to_outline

QUOTED = r'"((?:[^"\\\n]|\\["\\n])*)"'
NODE = re.compile(rf"    (s\d+) \[label={QUOTED}(, peripheries=2)?(, penwidth=3)?\];")
EDGE = re.compile(rf"    (s\d+|any) -> (s\d+) \[label={QUOTED}\];")
FRAME = re.compile(
    rf"digraph {QUOTED} \{{|    (?:node|edge|any|start|end) \[[^\[\]]*\];"
    r"|    start -> s\d+;|    s\d+ -> end;|\}"
)


def unquoted(text: str) -> str:
    """Read a quoted string as Graphviz does."""
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text).replace(
        "&amp;", "&"
    )


@given(data=st.data())
def test_any_chart_makes_a_graph_of_known_lines(random_charts: Any, data: st.DataObject) -> None:
    """Every line is a DOT statement, and nodes and edges carry all states and labels."""
    found = to_outline(data.draw(random_charts.charts()).definition)
    lines = to_dot(found).split("\n")[:-1]
    nodes = [match.groups() for match in map(NODE.fullmatch, lines) if match]
    edges = [match.groups() for match in map(EDGE.fullmatch, lines) if match]
    assert [
        line
        for line in lines
        if not (NODE.fullmatch(line) or EDGE.fullmatch(line) or FRAME.fullmatch(line))
    ] == []
    assert [bool(border) for *_, border in nodes] == [
        state in found.final_states for state in found.states
    ]
    limits = ["".join(f"\n{note}" for note in found.notes[state]) for state in found.states]
    assert [unquoted(label) for _, label, _, _ in nodes] == [
        showable(state).replace("\r", " ") + limit
        for state, limit in zip(found.states, limits, strict=True)
    ]
    assert [bool(border) for _, _, border, _ in nodes] == [
        state in found.decision_states for state in found.states
    ]
    assert [(source, target, unquoted(label)) for source, target, label in edges] == [
        (
            "any" if arrow.source is None else f"s{found.states.index(arrow.source)}",
            f"s{found.states.index(arrow.target)}",
            "\n".join(showable(label).replace("\r", " ") for label in arrow.labels),
        )
        for arrow in found.arrows
    ]


def test_special_characters_are_escaped() -> None:
    """Quotes, backslashes, ampersands and line ends in a text have no meaning for Graphviz."""
    written = to_dot(Diagram(('"]; x', "\\N\\", "&lt;\n"), (), name='a"b'))
    assert written.startswith('digraph "a\\"b" {')
    assert 's0 [label="\\"]; x"]' in written
    assert 's1 [label="\\\\N\\\\"]' in written
    assert 's2 [label="&amp;lt;\\n"]' in written


CODE = re.compile(r"#(\d+);")
SAFE = r"(?:[A-Za-z0-9_ \x80-\U0010ffff]|#\d+;)"
LINE = re.compile(
    rf'stateDiagram-v2|    (?:state "(?P<text>{SAFE}+)" as (?P<id>s\d+|any)'
    rf"|note left of s\d+ : time#45;out after \d+ ticks"
    rf"|(?P<source>\[\*\]|s\d+|any) --> (?P<target>s\d+)(?: : (?P<label>(?:{SAFE}|<br/>)+))?"
    r"|(?P<final>s\d+) --> \[\*\]"
    r"|classDef decision stroke-width:3px|class s\d+(?:,s\d+)* decision)"
)


def decoded(text: str) -> str:
    return CODE.sub(lambda found: chr(int(found[1])), text)


@given(data=st.data())
def test_any_chart_makes_a_diagram_of_known_lines(random_charts: Any, data: st.DataObject) -> None:
    """Every line is a Mermaid statement, and all states and labels can be read back."""
    found = to_outline(data.draw(random_charts.charts()).definition)
    lines = [LINE.fullmatch(line) for line in to_mermaid(found).split("\n")[:-1]]
    assert all(lines)
    named = {line["id"]: decoded(line["text"]) for line in lines if line and line["id"]}
    assert [text for name, text in named.items() if name != "any"] == list(
        map(showable, found.states)
    )
    ends = [named[line["final"]] for line in lines if line and line["final"]]
    assert ends == [showable(state) for state in found.states if state in found.final_states]
    arrows = [line for line in lines if line and line["target"]]
    assert named[arrows[0]["target"]] == showable(found.initial or "")
    for line, arrow in zip(arrows[1:], found.arrows, strict=True):
        assert named[line["target"]] == showable(arrow.target)
        assert (
            line["source"] == "any"
            if arrow.source is None
            else named[line["source"]] == showable(arrow.source)
        )
        assert tuple(map(decoded, line["label"].split("<br/>"))) == tuple(
            map(showable, arrow.labels)
        )


def test_what_stands_below_a_name_is_a_note_beside_it() -> None:
    """Also beside a state with others inside, behind what is inside."""
    notes = {"in": ("entry / wake",), "out": ("exit / x: y",)}
    diagram = Diagram(("in", "out"), (), boxes={"out": Box(("in",))}, notes=notes)
    lines = to_mermaid(diagram).split("\n")
    assert lines[1:7] == [
        '    state "out" as s1 {',
        '        state "in" as s0',
        "        note left of s0 : entry #47; wake",
        "    }",
        "    note left of s1 : exit #47; x#58; y",
        "",
    ]


def test_the_social_chart_is_readable_as_mermaid() -> None:
    """Plain names are not escaped; commands and emphasis anywhere in a text are."""
    written = f"{social_media_chart():mermaid}"
    for line in ('state "engaging_like" as s4', "any --> s0 : round_ends", "class s2 decision"):
        assert f"    {line}\n" in written
    written = to_mermaid(Diagram(("direction LR", "__x__ a_b"), ()))
    assert 'state "#100;irection LR" as s0' in written
    assert 'state "#95;#95;x#95;#95; a_b" as s1' in written

"""Diagrams as Mermaid text."""

import re
from html import unescape
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from prism.drawing import Arrow, Diagram, showable, to_mermaid
from prism.statechart import social_media_chart
from prism.statechart.formats._export import to_diagram

CODE = re.compile(r"#(\d+);")
SAFE = r"(?:[A-Za-z0-9_ \x80-\U0010ffff]|#\d+;)"
LINE = re.compile(
    rf'stateDiagram-v2|    (?:state "(?P<text>{SAFE}+)" as (?P<id>s\d+|any)'
    rf"|note right of s\d+ : time-out after \d+ ticks"
    rf"|(?P<source>\[\*\]|s\d+|any) --> (?P<target>s\d+)(?: : (?P<label>(?:{SAFE}|<br/>)+))?"
    r"|(?P<final>s\d+) --> \[\*\]"
    r"|classDef decision stroke-width:3px|class s\d+(?:,s\d+)* decision)"
)


def decoded(text: str) -> str:
    return CODE.sub(lambda found: chr(int(found[1])), text)


@given(data=st.data())
def test_any_chart_makes_a_diagram_of_known_lines(random_charts: Any, data: st.DataObject) -> None:
    """Every line is a Mermaid statement, and all states and labels can be read back."""
    found = to_diagram(data.draw(random_charts.charts()).definition)
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


def test_commands_and_emphasis_are_escaped() -> None:
    """Commands and emphasis that Mermaid finds anywhere in a text are written as codes."""
    written = to_mermaid(Diagram(("direction LR", "__x__ a_b"), ()))
    assert 'state "#100;irection LR" as s0' in written
    assert 'state "#95;#95;x#95;#95; a_b" as s1' in written
    assert unescape(written) == written


def test_the_social_chart_is_readable() -> None:
    """Plain names are not escaped; decision states, time-outs and wildcards are shown."""
    written = f"{social_media_chart():mermaid}"
    for line in (
        'state "engaging_like" as s4',
        "[*] --> s0",
        "any --> s0 : round_ends",
        "s2 --> s1 : ignores<br/>decides<br/>timeout",
        "s3 --> s5 : compose_done #91;intends_reply#93;",
        "note right of s7 : time-out after 2 ticks",
        "class s2 decision",
    ):
        assert f"    {line}\n" in written


def test_a_diagram_needs_neither_initial_state_nor_labels() -> None:
    """A diagram from a log, without initial state and triggers, has only states and arrows."""
    written = to_mermaid(Diagram(("a", "b"), (Arrow("a", "b"),)))
    assert written == 'stateDiagram-v2\n    state "a" as s0\n    state "b" as s1\n    s0 --> s1\n'

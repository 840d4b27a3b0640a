"""Charts with composites as Mermaid and DOT."""

from __future__ import annotations

from prism.drawing import Box
from prism.statechart import History, Transition
from prism.statechart.formats._export import to_outline
from tests.statechart.nested.phone import Day, Phone, day, phone, whole_phone
from tests.statechart.nested.test_json import everything


def test_an_outline_says_what_lies_inside_what() -> None:
    """Regions, where composites begin, entry and exit actions, and transitions as written."""
    outline = to_outline(day().definition)
    assert outline.boxes["awake"] == Box(("phone", "body"), (), is_parallel=True)
    assert outline.boxes["phone"] == Box(("idle", "feed", "writing"), ("idle",))
    assert outline.initial == "asleep"
    ends = [(arrow.source, arrow.target) for arrow in outline.arrows]
    assert ("awake", "asleep") in ends

    noted = to_outline(whole_phone().definition)
    assert noted.notes["engaging"] == ("entry / unlock", "exit / lock")


def test_a_history_has_a_mark_inside_its_composite() -> None:
    """Arrows to it end there."""
    chart = phone(Transition("returns", Phone.POCKET, History(Phone.ENGAGING, deep=True)))
    outline = to_outline(chart.definition)
    (mark,) = (name for name, sign in outline.marks.items() if sign == "H*")
    assert mark in outline.boxes["engaging"].inside
    assert mark in {arrow.target for arrow in outline.arrows}


def test_mermaid_has_states_in_states_and_regions() -> None:
    """An arrow stands in the innermost state around both of its ends."""
    lines = format(day(), "mermaid").splitlines()
    opened = lines.index('    state "awake" as s1 {')
    closed = lines.index("    }")
    assert "        --" in lines[opened:closed]
    assert "            s3 --> s4 : opens" in lines[opened:closed]
    assert "    s1 --> s0 : sleeps" in lines[closed:]


def test_dot_has_a_cluster_for_each_composite() -> None:
    """An arrow of a composite ends at its border; regions have a dashed one."""
    text = format(whole_phone(), "dot")
    assert "subgraph cluster_s1" in text
    assert '[label="opens", lhead=cluster_s1];' in text
    assert 'style="rounded,dashed"' in format(day(), "dot")
    assert text.count("{") == text.count("}")


def test_labels_say_when_and_with_which_chance() -> None:
    """Times, rates and probabilities stand behind the trigger."""
    text = format(everything(), "dot")
    for label in ("tires (after 20)", "idles (rate speed)", "looks (probability 0.3)", "always"):
        assert label in text, label


def test_a_chart_that_begins_in_regions_is_drawn() -> None:
    """Its first state is a configuration, which no single arrow leads to."""
    chart = day()
    begun = type(chart)(chart.tree, chart.definition.written, initial=Day.AWAKE)
    for name in ("mermaid", "dot", "svg"):
        assert "feed" in format(begun, name)

"""Charts as diagrams: their outline, and composites as SVG, Mermaid and DOT."""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.drawing import Box
from prism.statechart import History, Statechart, Transition, state_enum
from prism.statechart.outline import label_of, to_outline
from tests.statechart.formats.test_round_trip import everything
from tests.statechart.nested.phone import Day, Phone, day, whole_phone


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
    # a shallow history and a deep one, in their own composite alone
    back = [Transition("back", Day.ASLEEP, History(Day.PHONE, deep=deep)) for deep in (False, True)]
    marked = to_outline(day(*back).definition)
    assert [*marked.histories.values()] == ["H", "H*"]
    assert marked.boxes["phone"].inside[3:] == (*marked.histories,)
    assert marked.boxes["body"].inside == ("fresh", "tired")


@pytest.mark.parametrize("count", [3, 4])
def test_three_states_or_more_share_an_arrow(count: int) -> None:
    """Fewer have one each."""
    states = [*state_enum("Few", "abcd"[:count])]
    moves = [Transition("go", each, states[0]) for each in states[1:]]
    arrows = to_outline(Statechart(states, moves, states[0]).definition).arrows
    assert len(arrows) == {3: 2, 4: 1}[count]


def test_mermaid_has_states_in_states_and_regions() -> None:
    """Every arrow is outside all states, since Mermaid draws none of a region within a state."""
    lines = format(day(), "mermaid").splitlines()
    opened = lines.index('    state "awake" as s1 {')
    closed = lines.index("    }")
    assert "        --" in lines[opened:closed]
    assert "            [*] --> s3" in lines[opened:closed]
    assert "    s3 --> s4 : opens" in lines[closed:]
    assert "    s1 --> s0 : sleeps" in lines[closed:]
    arrows = [line for line in lines if " --> " in line and "[*]" not in line]
    assert len(arrows) == len(to_outline(day().definition).arrows)
    assert not any(line.startswith("     ") for line in arrows)


def test_dot_has_a_cluster_for_each_composite() -> None:
    """An arrow of a composite ends at its border; regions have a dashed one."""
    text = format(whole_phone(), "dot")
    assert "subgraph cluster_s1" in text
    assert '[label="opens", lhead=cluster_s1];' in text
    assert 'style="rounded,dashed"' in format(day(), "dot")
    assert text.count("{") == text.count("}")


def test_svg_draws_what_lies_inside_in_its_box() -> None:
    """Every state once, regions apart by a dashed line, and histories as circles."""
    picture = day().to_svg()
    texts = [found.text for found in ElementTree.fromstring(picture).iter() if found.text]
    for name in ("asleep", "awake", "phone", "idle", "feed", "writing", "body", "fresh", "tired"):
        assert texts.count(name) == 2, name  # the name and its tooltip
    assert picture.count('class="line rest"') == 1

    picture = everything().to_svg()
    assert re.search(r">H\*<", picture)
    said = ["entry / unlock", "resumes → H*", "reading: idles (rate speed)", "swipes → replying"]
    for each in said:
        assert each in picture, each


def is_strong(agent: Any, force: Any) -> bool:
    return bool(force > 3)


@pytest.mark.parametrize(
    ("guard", "action", "label"),
    [
        (None, None, "go"),
        (is_strong, None, "go [is_strong]"),
        (None, is_strong, "go / is_strong"),
        (lambda agent, context: True, partial(is_strong), "go [guard] / action"),
    ],
)
def test_labels_are_as_in_uml(guard: Any, action: Any, label: str) -> None:
    """A label is ``trigger [guard] / action``; a nameless function is called guard or action."""
    assert label_of(Transition("go", Phone.POCKET, Phone.READING, guard, action)) == label


@given(data=st.data())
def test_a_diagram_shows_every_transition(random_charts: Any, data: st.DataObject) -> None:
    """Every transition is on an arrow, and no arrow shows one that the chart lacks."""
    chart = data.draw(random_charts.charts())
    shown = {
        (arrow.source, arrow.target, label)
        for arrow in to_outline(chart.definition).arrows
        for label in arrow.labels
    }
    needed = {(str(item.source), str(item.target), label_of(item)) for item in chart.transitions}
    left = {str(state) for state in chart.states - chart.final_states}
    spread = {
        (source, target, label)
        for end, target, label in shown
        for source in ([end] if end is not None else left - {target})
    }
    assert spread <= needed
    assert all(item in spread or (None, *item[1:]) in shown for item in needed)

"""Charts with composites as SVG, Mermaid and DOT."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from prism.drawing import Box
from prism.statechart.outline import to_outline
from tests.statechart.nested.phone import day, whole_phone
from tests.statechart.nested.test_documents import everything


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

"""Charts as SCXML documents."""

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.statechart import (
    Statechart,
    Transition,
    state_enum,
)
from prism.statechart.formats import scxml_guards, scxml_name
from prism.statechart.formats._scxml import to_scxml
from prism.statechart.formats._scxml_names import NAMESPACE, PRISM_NAMESPACE
from tests.kit.texts import ANY

CODE = re.compile(r"_x([0-9A-F]{4,6})_")
TEXTS = (
    st.text("_x0F2 a.*\n", min_size=1)
    | st.text(ANY, min_size=1)
    | st.sampled_from(["error", "done", "error.x"])
)


def decoded(name: str) -> str:
    return CODE.sub(lambda found: chr(int(found[1], 16)), name)


@settings(max_examples=10 * settings().max_examples)
@given(TEXTS)
def test_names_can_be_read_back(text: str) -> None:
    """A name has only ASCII letters, digits and underscores, and can be decoded to its text."""
    assert re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", scxml_name(text))
    assert decoded(scxml_name(text)) == text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("engaging_like", "engaging_like"),
        ("max_x", "max_x"),
        ("round ends", "round_x0020_ends"),
        ("2nd", "_x0032_nd"),
        ("a.b*", "a_x002E_b_x002A_"),
        ("_x0041_", "_x005F_x0041_"),
        ("_x0020 ", "_x005F_x0020_x0020_"),
        ("error", "_x0065_rror"),
        ("done", "_x0064_one"),
        ("compose_done", "compose_done"),
        ("😀", "_x1F600_"),
    ],
)
def test_names_are_as_documented(text: str, name: str) -> None:
    """Plain texts stay as they are; all others, and the platform's own names, are encoded."""
    assert scxml_name(text) == name


def is_busy(agent: Any, context: Any) -> bool:
    return bool(context)


def test_guards_have_fields_of_their_own() -> None:
    """Different guards never have the same field, and one guard has one field."""
    A, B = state_enum("AB", ["a", "b"])

    def other() -> Any:
        def is_busy(agent: Any, context: Any) -> bool:
            return not context

        return is_busy

    twin, unnamed = other(), lambda agent, context: True
    guards = [is_busy, twin, unnamed, is_busy, None]
    chart = Statechart(
        [A, B], [Transition(f"t{number}", A, B, guard) for number, guard in enumerate(guards)], A
    )
    assert scxml_guards(chart.definition) == {
        "guard_is_busy": is_busy,
        "guard_is_busy_2": twin,
        "guard_guard": unnamed,
    }
    conditions = [
        item.get("cond")
        for item in ET.fromstring(to_scxml(chart.definition)).iter(f"{{{NAMESPACE}}}transition")
    ]
    fields = ["guard_is_busy", "guard_is_busy_2", "guard_guard", "guard_is_busy"]
    assert conditions == [*(f"_event.data.{field}" for field in fields), None]


@given(data=st.data())
def test_any_chart_is_a_well_formed_document(random_charts: Any, data: st.DataObject) -> None:
    """The document parses, and says of states and transitions all that the chart does, in order."""
    chart = data.draw(random_charts.charts())
    root = ET.fromstring(to_scxml(chart.definition))
    assert root.tag == f"{{{NAMESPACE}}}scxml"
    assert decoded(root.get("initial", "")) == str(chart.initial)
    assert {decoded(state.get("id", "")) for state in root} == set(map(str, chart.states))
    for state in root:
        text = decoded(state.get("id", ""))
        leaving = [item for item in chart.transitions if item.source == text]
        ends = [(decoded(item.get("event", "")), decoded(item.get("target", ""))) for item in state]
        assert ends == [(item.trigger, str(item.target)) for item in leaving]
        assert [item.get(f"{{{PRISM_NAMESPACE}}}action") for item in state] == [
            item.action and "note" for item in leaving
        ]
        assert (state.get(f"{{{PRISM_NAMESPACE}}}decision") == "true") == (
            text in chart.decision_states
        )
        assert state.get(f"{{{PRISM_NAMESPACE}}}timeout") == (
            str(chart.timeouts[text]) if text in chart.timeouts else None
        )


@settings(max_examples=2 * settings().max_examples)
@given(st.text(ANY))
def test_a_description_is_read_as_it_is(text: str) -> None:
    """The document parses and has the description, but for characters that XML has no room for."""
    (red,) = state_enum("Light", ["red"])
    chart = Statechart([red], [], red, description=text)
    said = ET.fromstring(to_scxml(chart.definition)).get(f"{{{PRISM_NAMESPACE}}}description", "")
    assert len(said) == len(text)
    for one, other in zip(said, text, strict=True):
        assert one in (other, "\N{REPLACEMENT CHARACTER}")
    assert said == text or not text.isprintable()

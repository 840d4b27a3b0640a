"""Charts as SCXML documents."""

import xml.etree.ElementTree as ET
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from prism.statechart import Statechart, Transition, state_enum
from tests.kit.charts import ANY

SCXML = "{http://www.w3.org/2005/07/scxml}"


@given(data=st.data())
def test_any_chart_comes_back_equal(random_charts: Any, data: st.DataObject) -> None:
    """Whatever its texts, from a well-formed document that has its states and transitions."""
    chart = data.draw(random_charts.charts())
    text = chart.to_scxml()
    functions = {"guards": random_charts.guards, "actions": random_charts.actions}
    again = Statechart.from_scxml(text, **functions)
    assert again == chart
    assert again.to_scxml() == text
    root = ET.fromstring(text)
    assert len(root) == len(chart.states)
    assert len([*root.iter(f"{SCXML}transition")]) == len(chart.transitions)


@given(st.text(ANY) | st.text("_x0F9 "), st.text(ANY) | st.text("_x0F9 ", min_size=1))
def test_any_text_comes_back_equal(description: str, state: str) -> None:
    """Those that XML has no room for are encoded."""
    (red,) = state_enum("Light", [state or "red"])
    chart = Statechart([red], [], red, name=state, description=description)
    assert Statechart.from_scxml(chart.to_scxml()) == chart


def test_a_document_says_what_another_program_reads() -> None:
    """Plain names stay as they are, and conditions are names of guards."""
    A, B = state_enum("AB", ["a", "b c"])

    def is_busy(agent: Any, context: Any) -> bool:
        return True

    text = Statechart([A, B], [Transition("go", A, B, is_busy, print)], A).to_scxml()
    assert '<state id="b_x0020_c" />' in text
    assert '<transition event="go" cond="is_busy" target="b_x0020_c"' in text
    assert 'prism:action="print"' in text

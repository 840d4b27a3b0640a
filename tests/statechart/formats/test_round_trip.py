"""Charts as documents, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import DefinitionError
from prism.statechart import History, Statechart, Transition, state_enum
from tests.kit.charts import ANY
from tests.statechart.nested.phone import Phone, day, is_fresh, phone, whole_phone
from tests.statechart.nested.random_charts import make_twins


def speed(agent: Any, context: Any = None) -> float:
    """Return a rate."""
    return 0.5


def everything() -> Statechart[Phone]:
    """Return a chart that has all that a document can say beside regions."""
    return phone(
        Transition(None, Phone.READING, Phone.POCKET, is_fresh),
        Transition("resumes", Phone.POCKET, History(Phone.ENGAGING, deep=True, default=Phone.SENT)),
        Transition("swipes", Phone.ENGAGING, Phone.REPLYING, internal=True),
        Transition("buzzes", "*", None),
        Transition("tires", Phone.ENGAGING, Phone.POCKET, after=np.int64(20)),
        Transition("idles", Phone.READING, Phone.POCKET, rate=speed),
        Transition("idles", Phone.REPLYING, Phone.POCKET, rate=np.float32(0.25)),
        Transition("naps", Phone.READING, Phone.POCKET, after=speed),
        Transition("looks", Phone.POCKET, Phone.READING, probability=np.float64(0.3)),
        timeouts={Phone.ENGAGING: np.int64(30)},
        decision_states=[Phone.REPLYING],
        description="a phone",
    )


def functions_of(chart: Statechart[Any]) -> dict[str, Any]:
    """Return a chart's guards and actions by the names that they have in documents."""
    nodes = chart.definition.hierarchy.nodes
    found = [each for node in nodes for each in (*node.entry, *node.exit)]
    found += [each for item in chart.transitions for each in (item.guard, item.action) if each]
    return {getattr(each, "__qualname__", None) or each.__name__: each for each in found}


FORMATS: dict[str, Any] = {"json": Statechart.from_json, "scxml": Statechart.from_scxml}


@pytest.mark.parametrize("spec", FORMATS)
@pytest.mark.parametrize("chart", [everything(), whole_phone(), day()], ids=["all", "phone", "day"])
def test_a_chart_comes_back_equal(chart: Statechart[Any], spec: str) -> None:
    """From the names of its functions, and over its own enum."""
    named = functions_of(chart)
    functions: dict[str, Any] = {"guards": {"speed": speed, **named}, "actions": named}
    text = format(chart, spec)
    again = FORMATS[spec](text, **functions)
    assert again == chart
    assert format(again, spec) == text
    same = FORMATS[spec](text, states=chart.state_type, **functions)
    assert same == chart
    assert same.state_type is chart.state_type


@pytest.mark.parametrize("spec", FORMATS)
@given(data=st.data())
def test_a_flat_chart_comes_back_equal(spec: str, random_charts: Any, data: st.DataObject) -> None:
    """Whatever its texts, in a document that any program can write to a file."""
    chart = data.draw(random_charts.charts())
    text = format(chart, spec)
    functions = {"guards": random_charts.guards, "actions": random_charts.actions}
    again = FORMATS[spec](text, **functions)
    assert (again, hash(again), again.transitions) == (chart, hash(chart), chart.transitions)
    assert format(again, spec) == text
    assert text.encode()


@given(st.text(ANY) | st.text("_x0F9 "), st.text(ANY) | st.text("_x0F9 ", min_size=1))
def test_any_text_comes_back_equal(description: str, state: str) -> None:
    """Those that XML has no room for are encoded."""
    (red,) = state_enum("Light", [state or "red"])
    chart = Statechart([red], [], red, name=state, description=description)
    assert Statechart.from_scxml(chart.to_scxml()) == chart


@pytest.mark.parametrize("spec", FORMATS)
def test_a_state_may_be_called_as_the_wildcard(spec: str) -> None:
    """Then the source of that text is the state."""
    star, rest = state_enum("Star", ["*", "rest"])
    chart = Statechart([star, rest], [Transition("go", star, rest)], star)
    assert FORMATS[spec](format(chart, spec)) == chart


@pytest.mark.parametrize("spec", FORMATS)
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sampled(20)
def test_a_random_chart_comes_back_equal(seed: int, spec: str) -> None:
    """Whatever it has."""
    try:
        chart = make_twins(seed).chart
    except DefinitionError:
        return
    named = functions_of(chart)
    assert FORMATS[spec](format(chart, spec), guards=named, actions=named) == chart


def test_the_document_says_what_was_written() -> None:
    """States in states, histories, guards, and times."""
    chart = everything()
    data = chart.to_dict()
    assert data["schema"] == 2
    assert data["states"][1] == {
        "state": "engaging",
        "states": ["reading", "replying", "sent"],
        "entry": ["unlock"],
        "exit": ["lock"],
    }
    written = {each["trigger"]: each for each in data["transitions"]}
    assert written[None]["guard"] == "is_fresh"
    assert written["resumes"]["target"] == {"history": "engaging", "deep": True, "default": "sent"}
    assert written["idles"]["rate"] == 0.25
    assert written["naps"]["after"] == "speed"

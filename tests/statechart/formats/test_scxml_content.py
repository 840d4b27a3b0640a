"""What the content of SCXML documents does, step by step, and how it fails."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import DefinitionError
from prism.statechart import Statechart
from prism.statechart._engine.rows import MOST_EVENTS

HEAD = '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" datamodel="python">'
DATA = (
    "<datamodel><data id='o' expr=\"{'a': [1, 2]}\"/><data id='n' expr='0'/>"
    "<data id='t' expr=\"'x'\"/><data id='got'/></datamodel>"
)
NOTED = "<transition event='*' target='t'><assign location='got' expr='[_event.name, {}]'/>"


def begun(inside: str) -> Any:
    """Return an agent that has begun in a document with something inside."""
    chart = Statechart.from_scxml(f"{HEAD}\n{inside}\n</scxml>")
    agent = SimpleNamespace(state=chart.initial, state_memory=None, agent_id="ada")
    chart.begin(agent)
    return agent


def entered(content: str, noted: str = "_event.data") -> dict[str, Any]:
    """Return the data of an agent after content, and after the first event that it gives."""
    state = f"<state id='s'><onentry>{content}</onentry>{NOTED.format(noted)}</transition></state>"
    data: dict[str, Any] = begun(f"{DATA}{state}<state id='t'/>").state_memory["data"]
    return data


@pytest.mark.parametrize(
    ("location", "name", "value"),
    [
        ("o['a'][1]", "o", {"a": [1, 7]}),
        ("o.k", "o", {"a": [1, 2], "k": 7}),
        ("o['a'][n]", "o", {"a": [7, 2]}),
    ],
)
def test_a_part_of_a_variable_is_assigned(location: str, name: str, value: Any) -> None:
    """By key or index, also by one that is computed; what stands beside it stays."""
    assert entered(f'<assign location="{location}" expr="7"/>')[name] == value


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("<assign location='nope' expr='1'/>", "there is no variable 'nope' to assign to"),
        ("<assign location='o.z.y' expr='1'/>", "there is no 'o.z.y' to assign to: KeyError"),
        ("<assign location='o.a[9]' expr='1'/>", "there is no 'o.a[9]' to assign to: IndexError"),
        ("<assign location='t[0]' expr='1'/>", "there is no 't[0]' to assign to: TypeError"),
        ("<assign location='1' expr='1'/>", "'1' is not a location"),
        ("<assign location='a b' expr='1'/>", "'a b' is not a location"),
        ("<assign location='_event.name' expr='1'/>", "'_event.name' is a read-only variable"),
        ("<assign location='n' expr='{1: 2}'/>", "the keys of a mapping must be text"),
        ("<assign location='n' expr='In'/>", "values must have a type of JSON"),
        ("<foreach array='n' item='i'/>", "'n' must evaluate to a list, got 0"),
        ("<foreach array='[1]' item='a b'/>", "'a b' cannot be a variable of <foreach>"),
        ("<foreach array='[1]' item='i' index='In'/>", "'In' cannot be a variable of <foreach>"),
        ("<if cond='missing'><raise event='x'/></if>", "there is no variable 'missing'"),
        ("<cancel sendidexpr='n'/>", "'n' must evaluate to text, got 0"),
        ("<send/>", "<send> needs an event"),
        ("<send eventexpr='missing'/>", "there is no variable 'missing'"),
        ("<send event='x' type='foo'/>", "events of type 'foo' cannot be sent"),
        ("<send event='x' delayexpr='t'/>", "the delay must be a duration such as '1s', got 'x'"),
        ("<send event='x' target='#_internal' delay='1s'/>", "#_internal cannot be delayed"),
        ("<send event='x' idlocation='9'/>", "'9' is not a location"),
        ("<send event='x' idlocation='nope'/>", "there is no variable 'nope' to assign to"),
        ("<send event='x'><param name='a' expr='missing'/></send>", "no variable 'missing'"),
    ],
)
def test_content_that_fails_says_why(
    content: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The document gets an event, and the log the reason; the variables stay as they were."""
    data = entered(content)
    assert data["got"] == ["error.execution", None]
    assert (data["o"], data["n"], data["t"]) == ({"a": [1, 2]}, 0, "x")
    assert told in caplog.text


def test_an_event_about_a_send_names_the_send() -> None:
    """By its id, so that the document knows which one failed."""
    content = "<send event='x' id='mine' delayexpr='missing'/>"
    assert entered(content, "_event.sendid")["got"] == ["error.execution", "mine"]


@pytest.mark.parametrize(
    ("inside", "data"),
    [
        ("<content>[1, 2]</content>", [1, 2]),
        ("<content>{'a': 1}</content>", {"a": 1}),
        ("<content>two\n words</content>", "two words"),
        ("<content expr='n + 1'/>", 1),
        ("<param name='a' location='o.a'/><param name='b' expr='t'/>", {"a": [1, 2], "b": "x"}),
    ],
)
@pytest.mark.parametrize("target", ["", "target='#_internal'"])
def test_an_event_carries_data(inside: str, data: Any, target: str) -> None:
    """As text, as JSON, as a value or as parameters, wherever it is sent within the agent."""
    assert entered(f"<send event='x' {target}>{inside}</send>")["got"] == ["x", data]


def test_a_send_can_be_given_an_id() -> None:
    """It is in the variable, and in the event; another send has another one."""
    content = "<send event='y' idlocation='n' delay='1s'/><send event='x' idlocation='t'/>"
    data = entered(content, "_event.sendid")
    assert (data["n"], data["t"], data["got"]) == ("send.1", "send.2", ["x", "send.2"])


def test_the_branch_behind_a_test_that_fails_is_taken() -> None:
    """A test that fails does not hold."""
    content = "<if cond='missing'><assign location='n' expr='1'/><else/><raise event='x'/></if>"
    state = f"<state id='s'><onentry>{content}</onentry><transition event='x' target='t'/></state>"
    assert begun(f"{DATA}{state}<state id='t'/>").state == "t"


def test_a_variable_without_a_first_value_is_none(caplog: pytest.LogCaptureFixture) -> None:
    """One whose first value fails as well; the others get theirs."""
    agent = begun(
        "<datamodel><data id='a' expr='missing'/><data id='b'>[1</data></datamodel>"
        "<state id='s'><transition event='error.execution' target='t'/></state><state id='t'/>"
    )
    assert agent.state_memory["data"] == {"a": None, "b": "[1"}
    assert agent.state == "t"
    assert "there is no variable 'missing'" in caplog.text


@pytest.mark.parametrize("given", ["<content expr='missing'/>", "<param name='a' expr='missing'/>"])
def test_a_state_is_done_though_its_data_fail(given: str) -> None:
    """The event about the failure comes first, and that the state is done without data."""
    agent = begun(
        f"<state id='s'><final id='f'><donedata>{given}</donedata></final>"
        "<transition event='error.execution' target='u'/></state>"
        "<state id='u'><transition event='done.state.s' cond='_event.data is None' target='v'/>"
        "</state><state id='v'/>"
    )
    assert agent.state == "v"


@pytest.mark.parametrize(
    "start",
    [
        "<state id='s'><initial>{}</initial>",
        "<state id='s' initial='h'><history id='h'>{}</history>",
    ],
    ids=["initial", "history"],
)
@pytest.mark.parametrize("content", ["<raise event='x'/>", "<send event='x'/>"])
def test_what_leads_into_a_state_may_have_content(start: str, content: str) -> None:
    """The way from an initial or a history, also if nothing else of the document has content."""
    way = f"<transition target='b'>{content}</transition>"
    text = (
        f"{start.format(way)}<state id='a'/><state id='b'><transition event='x' target='t'/>"
        "</state></state><state id='t'/>"
    )
    assert begun(text).state == "t"
    with pytest.raises(DefinitionError, match="keep its document"):
        Statechart.from_scxml(f"{HEAD}{text}</scxml>").to_json()


def test_log_needs_no_value(caplog: pytest.LogCaptureFixture) -> None:
    """The label alone is a line."""
    with caplog.at_level(logging.INFO, "prism.statechart"):
        entered("<log label='here'/>")
    assert "statechart: here: " in caplog.messages


def test_the_transitions_of_a_document_can_be_gathered() -> None:
    """They are hashable, as the transitions of every chart, and equal ones are one."""
    text = (
        f"{HEAD}{DATA}<state id='s'><transition event='x' cond='n &lt; 1' target='s'>"
        "<assign location='got'>[1]</assign><send event='y'><content>[2]</content></send>"
        "</transition></state></scxml>"
    )
    one, other = Statechart.from_scxml(text), Statechart.from_scxml(text)
    assert {*one.transitions, *other.transitions} == {*one.transitions}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("<raise/>", "<raise> needs the attribute event"),
        ("<if><raise event='x'/></if>", "<if> needs the attribute cond"),
        ("<foreach array='[1]'/>", "<foreach> has no item"),
        ("<if cond='True'><else/><elseif cond='True'/></if>", "<elseif> stands behind <else>"),
        ("<if cond='True'><else/><else/></if>", "<else> stands behind <else>"),
        ("<foreach array='(lambda: 1)' item='i'/>", "the expression '(lambda: 1)' uses Lambda"),
        ("<assign location='o[open(t)]'/>", "the location 'o[open(t)]' calls open()"),
        ("<script>1</script>", "<script> is not supported: remove it"),
    ],
)
def test_content_that_is_not_read_is_refused(content: str, told: str) -> None:
    """When the document is read, with the line."""
    with pytest.raises(DefinitionError) as caught:
        entered(content)
    assert f"line 2: {told}" in str(caught.value)


def test_content_of_others_is_passed_over() -> None:
    """With a note, as elsewhere."""
    assert entered("<e:x xmlns:e='urn:e'/><raise event='x'/>")["got"] == ["x", None]


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ("<state><transition event=''/></state>", "line 2: the event is empty"),
        ("<state><transition event='x' target='no'/></state>", "line 2: names 'no', which is not"),
        ("<state><transition event='x' target=' '/></state>", "line 2: names no state"),
        (
            "<state id='s'><transition event='x' target='s' type='extern'/></state>",
            "line 2: type must be 'external' or 'internal', got 'extern'",
        ),
        (
            "<state id='s'><history id='h' type='depp'/><state/></state>",
            "line 2: type must be 'shallow' or 'deep', got 'depp'",
        ),
        (
            "<datamodel><data id='n' expr='1'/><data id='n' expr='2'/></datamodel><state/>",
            "line 2: the variable 'n' is already declared on line 2: rename one of the two",
        ),
        (
            "<state><initial><transition target='a' cond='x'/></initial><state id='a'/></state>",
            "line 2: is always made, so it has no cond",
        ),
        (
            "<state initial='h'><history id='h'><transition target='a' event='x'/></history>"
            "<state id='a'/></state>",
            "line 2: is always made, so it has no event",
        ),
        (
            "<state id='s'><history id='h'><transition target='no'/></history><state/>"
            "<transition event='x' target='h'/><transition event='y' target='h'/></state>",
            "line 2: a history's default must name states, got 'no'",
        ),
        ("<state><datamodel><foo/></datamodel></state>", "line 2: <foo> in <datamodel>"),
    ],
)
def test_one_fault_is_told_once(inside: str, told: str) -> None:
    """And not again by what it leads to."""
    with pytest.raises(DefinitionError) as caught:
        begun(inside)
    assert told in str(caught.value)
    assert " problems:" not in str(caught.value)


def test_more_events_than_are_remembered_are_answered() -> None:
    """Documents need not say which events there are, so any number may come."""
    text = (
        "<datamodel><data id='n' expr='0'/></datamodel><state id='s'><transition event='e'>"
        "<assign location='n' expr='n + 1'/></transition></state>"
    )
    chart = Statechart.from_scxml(f"{HEAD}{text}</scxml>")
    agent = SimpleNamespace(state="s", state_memory=None)
    for number in range(MOST_EVENTS + 1):
        chart.fire(agent, f"e.{number}")
    chart.fire(agent, "e.0")
    assert agent.state_memory["data"] == {"n": MOST_EVENTS + 2}


def test_what_is_active_is_known_where_no_step_is_made() -> None:
    """Whoever asks what is enabled gets the answer of `In` for the agent's state."""
    text = (
        "<state id='s'><state id='a'><transition event='x' cond='In(\"s\") and not In(\"b\")'"
        " target='b'/><transition event='x' cond='In(\"nowhere\")' target='a'/></state>"
        "<state id='b'/></state>"
    )
    chart = Statechart.from_scxml(f"{HEAD}{text}</scxml>")
    agent = SimpleNamespace(state=chart.initial, state_memory=None)
    assert chart.enabled_targets(agent, "x") == ["b"]
    assert agent.state_memory is None

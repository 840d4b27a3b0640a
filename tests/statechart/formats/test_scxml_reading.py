"""SCXML documents as charts: what is read, what their content does, and what is refused."""

from __future__ import annotations

import json
import logging
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import AgentError, DefinitionError, InputError, RunawayError
from prism.statechart import Statechart, Transition, state_enum
from tests.kit.commands import Prism

HEAD = '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0"'


def document(inside: str, attributes: str = 'datamodel="python"') -> str:
    """Return a document with something inside."""
    return f"{HEAD} {attributes}>\n{inside}\n</scxml>"


def begun(inside: str, attributes: str = 'datamodel="python"', **options: Any) -> tuple[Any, Any]:
    """Return the chart of a document, and an agent that has begun."""
    chart = Statechart.from_scxml(document(inside, attributes), **options)
    agent = SimpleNamespace(state=chart.initial, state_memory=None, agent_id="ada")
    chart.begin(agent)
    return chart, agent


COUNTER = """
<datamodel><data id="n" expr="0"/><data id="seen">[]</data></datamodel>
<state id="counting">
  <transition event="add" cond="_event.data['by'] > 0">
    <assign location="n" expr="n + _event.data['by']"/>
    <if cond="n > 9"><raise event="full"/><else/><raise event="more"/></if>
  </transition>
  <transition event="full" target="done"/>
  <transition event="more"><assign location="seen" expr="seen + [n]"/></transition>
</state>
<final id="done"/>
"""


# What is read


def test_a_simple_document_is_a_chart_like_any_other() -> None:
    """Without content it can be written in every format, and its events are plain."""
    chart = Statechart.from_scxml(
        document(
            '<state id="on" initial="a"><state id="a"><transition event="next" target="b"/></state>'
            '<state id="b"/><transition event="off" target="off"/></state><final id="off"/>',
            'name="lamp"',
        )
    )
    assert chart.name == "lamp"
    assert set(chart.triggers) == {"next", "off"}
    assert Statechart.from_json(chart.to_json()) == chart
    assert "machine" not in vars(chart)
    assert set(chart.machine.events) == {"next", "off"}


def test_a_state_without_an_id_gets_a_name() -> None:
    """Only what is named elsewhere needs one."""
    chart = Statechart.from_scxml(document("<state/><state/>"))
    assert sorted(chart.states) == ["state1", "state2"]
    chart = Statechart.from_scxml(document("<state/><state/><state id='state1'/><state/>"))
    assert sorted(chart.states) == ["state1", "state2", "state3", "state4"]


def test_transitions_keep_their_order_whatever_the_states_order() -> None:
    """The first transition stays first, though the state that it leaves is last in the document."""
    on, off = state_enum("Lamp", ["on", "off"])
    moves = [
        Transition("go", off, on),
        Transition("go", on, off),
        Transition("stop", on, off, after=3),
    ]
    chart = Statechart([on, off], moves, on)
    read = Statechart.from_scxml(chart.to_scxml())
    assert [(each.trigger, str(each.source)) for each in read.transitions] == [
        ("go", "off"),
        ("go", "on"),
        ("stop", "on"),
    ]


def test_the_states_may_be_members_of_an_enum() -> None:
    """Then agents have the enum's members as their states."""
    Lamp = state_enum("Lamp", ["on", "off"])
    text = document('<state id="on"><transition event="x" target="off"/></state><state id="off"/>')
    chart = Statechart.from_scxml(text, states=Lamp)
    assert chart.initial is Lamp("on")
    with pytest.raises(DefinitionError, match="has no members 'on'"):
        Statechart.from_scxml(text, states=state_enum("Other", ["off"]))


@pytest.mark.parametrize(
    ("descriptor", "event", "is_meant"),
    [
        ("a", "a", True),
        ("a", "a.b.c", True),
        ("a", "ab", False),
        ("a.*", "a.b", True),
        ("a.*", "a", True),
        ("a.", "a.b", True),
        ("a.b", "a", False),
        ("x a.b", "a.b.c", True),
        ("*", "whatever", True),
        (".*", "whatever", True),
        ("error.*", "error.execution", True),
        ("error.*", "errors.execution", False),
    ],
)
def test_events_are_matched_by_descriptors(descriptor: str, event: str, is_meant: bool) -> None:
    """By their parts between dots (SCXML, 3.12.1)."""
    chart, agent = begun(
        f'<state id="s"><transition event="{descriptor}" target="t"><log label="x"/></transition>'
        '</state><state id="t"/>'
    )
    assert (chart.fire(agent, event) is not None) is is_meant


def test_events_need_not_be_known_beforehand(caplog: pytest.LogCaptureFixture) -> None:
    """An event that nothing reacts to does nothing, and nobody is warned."""
    chart, agent = begun(COUNTER)
    assert chart.fire(agent, "unheard of") is None
    assert not caplog.records


# Content


def test_data_are_in_the_agents_memory() -> None:
    """As JSON has them, so that an agent is kept and goes on."""
    chart, agent = begun(COUNTER)
    chart.fire(agent, "add", {"by": 3})
    chart.fire(agent, "add", {"by": 4})
    assert agent.state_memory["data"] == {"n": 7, "seen": [3, 7]}
    again = SimpleNamespace(
        state=str(agent.state), state_memory=json.loads(json.dumps(agent.state_memory))
    )
    assert chart.fire(again, "add", {"by": 5}) == "done"
    assert chart.fire(agent, "add", {"by": 0}) is None


def test_what_is_raised_is_answered_before_the_agent_has_settled() -> None:
    """One fire brings the agent to its end."""
    chart, agent = begun(COUNTER)
    assert chart.fire(agent, "add", {"by": 10}) == "done"


def test_an_event_comes_when_its_delay_is_over() -> None:
    """To the tick, in the order of the delays, unless it is cancelled."""
    chart, agent = begun(
        '<state id="s"><onentry><send event="late" delay="2.5s"/><send event="soon" delay="1s"/>'
        '<send event="never" id="x" delay="1s"/><cancel sendid="x"/></onentry>'
        '<transition event="*" target="t"><assign location="got" expr="_event.name"/></transition>'
        '</state><state id="t"><transition event="*" target="u">'
        '<assign location="got" expr="_event.name"/></transition></state><state id="u"/>'
        '<datamodel><data id="got"/></datamodel>',
        tick="500ms",
    )
    states = []
    for _ in range(6):
        chart.tick(agent)
        states.append(str(agent.state))
    assert states == ["s", "t", "t", "t", "u", "u"]
    assert agent.state_memory["data"]["got"] == "late"


def test_a_delayed_event_survives_being_kept() -> None:
    """It waits in the memory, as JSON."""
    chart, agent = begun(
        '<state id="s"><onentry><send event="go" delay="2s"><param name="a" expr="1"/></send>'
        '</onentry><transition event="go" cond="_event.data[\'a\'] == 1" target="t"/></state>'
        '<state id="t"/>'
    )
    chart.tick(agent)
    again = SimpleNamespace(state="s", state_memory=json.loads(json.dumps(agent.state_memory)))
    assert chart.tick(again) == "t"


def test_what_is_sent_comes_behind_what_is_raised() -> None:
    """Internal events before external ones (SCXML, appendix D)."""
    _, agent = begun(
        '<state id="s"><onentry><send event="out"/><raise event="in"/></onentry>'
        '<transition event="*" target="t"><assign location="got" expr="_event.name"/></transition>'
        '</state><state id="t"/><datamodel><data id="got"/></datamodel>'
    )
    assert agent.state == "t"
    assert agent.state_memory["data"]["got"] == "in"


def test_a_list_is_gone_through() -> None:
    """With item and index, over a copy."""
    _, agent = begun(
        '<datamodel><data id="all">[3, 4]</data><data id="sum" expr="0"/></datamodel>'
        '<state id="s"><onentry><foreach array="all" item="each" index="i">'
        '<assign location="sum" expr="sum + each * i"/><assign location="all" expr="all + [9]"/>'
        "</foreach></onentry></state>"
    )
    assert agent.state_memory["data"] == {"all": [3, 4, 9, 9], "sum": 4, "each": 4, "i": 1}


def test_done_brings_data() -> None:
    """The event of a composite that is done has what the final state gives it."""
    _, agent = begun(
        '<state id="s"><final id="f"><donedata><param name="n" expr="5"/></donedata></final>'
        '<transition event="done.state.s" cond="_event.data[\'n\'] == 5" target="t"/></state>'
        '<state id="t"/>'
    )
    assert agent.state == "t"


def test_in_sees_what_is_active_at_the_instant() -> None:
    """While states are left, those that are left already are not active."""
    chart, agent = begun(
        '<datamodel><data id="seen">[]</data></datamodel><state id="s"><state id="a">'
        "<onexit><assign location=\"seen\" expr=\"seen + [In('a'), In('s')]\"/></onexit></state>"
        "<onexit><assign location=\"seen\" expr=\"seen + [In('a'), In('nowhere')]\"/></onexit>"
        '<transition event="go" target="t"/></state><state id="t"/>'
    )
    chart.fire(agent, "go")
    assert agent.state_memory["data"]["seen"] == [True, True, False, False]


def test_ecmascript_is_read_where_python_has_the_same() -> None:
    """Its signs and words, keys behind dots, and texts with numbers."""
    _, agent = begun(
        '<datamodel><data id="o" expr="{a: [1, 2], b: null}"/><data id="t"/></datamodel>'
        '<state id="s"><transition cond="o.a.length === 2 &amp;&amp; !(o.b !== null)" target="u">'
        '<assign location="t" expr="\'n=\' + 1"/><assign location="o.b" expr="true"/>'
        '</transition></state><state id="u"/>',
        'datamodel="ecmascript"',
    )
    assert agent.state == "u"
    assert agent.state_memory["data"] == {"o": {"a": [1, 2], "b": True}, "t": "n=1"}


def test_data_of_a_state_are_bound_late_if_the_document_says_so() -> None:
    """Once, when the state is entered first."""
    chart, agent = begun(
        '<datamodel><data id="n" expr="1"/></datamodel><state id="a"><transition event="x" '
        'target="b"/></state><state id="b"><datamodel><data id="m" expr="n + 1"/></datamodel>'
        '<onentry><assign location="n" expr="m * 10"/></onentry>'
        '<transition event="x" target="a"/></state>',
        'datamodel="python" binding="late"',
    )
    assert agent.state_memory["data"] == {"n": 1, "m": None}
    for _ in range(3):
        chart.fire(agent, "x")
    assert agent.state_memory["data"] == {"n": 20, "m": 2}


def test_log_is_a_line_of_the_standard_library(caplog: pytest.LogCaptureFixture) -> None:
    """With the document's name and the label."""
    with caplog.at_level(logging.INFO, "prism.statechart"):
        begun(
            '<state id="s"><onentry><log label="now" expr="1 + 1"/></onentry></state>',
            'datamodel="python" name="lamp"',
        )
    assert "lamp: now: 2" in caplog.messages


# Faults while it runs


def test_a_fault_is_an_event_and_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """What stands behind it in its block is left out, other blocks run."""
    chart, agent = begun(
        '<datamodel><data id="n" expr="0"/></datamodel><state id="s">'
        '<onentry><assign location="n" expr="missing"/><assign location="n" expr="5"/></onentry>'
        '<onentry><assign location="n" expr="n + 1"/></onentry>'
        '<transition event="error.execution" target="t"/></state><state id="t"/>'
    )
    assert agent.state == "t"
    assert agent.state_memory["data"]["n"] == 1
    assert "there is no variable 'missing'" in caplog.text
    assert chart.definition.name in caplog.text


def test_a_guard_that_fails_is_an_event_once() -> None:
    """It does not hold, and the event can be reacted to."""
    _, agent = begun(
        '<state id="s"><transition cond="missing" target="u"/>'
        '<transition event="error.execution" target="t"/></state><state id="t"/><state id="u"/>'
    )
    assert agent.state == "t"


def test_an_ill_formed_expression_fails_when_it_is_reached(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As the recommendation allows; whoever loads the document is warned, with the line."""
    _, agent = begun(
        '<state id="s">\n<transition cond="1 =" target="u"/>'
        '<transition event="error.execution" target="t"/></state><state id="t"/><state id="u"/>'
    )
    assert agent.state == "t"
    assert any("line 3: '1 =' is not an expression" in message for message in caplog.messages)


def test_nobody_elsewhere_is_reached() -> None:
    """A target that is computed is an error of communication, or none that there is."""
    for target, event in (("#_parent", "error.communication"), ("baz", "error.execution")):
        _, agent = begun(
            f'<state id="s"><onentry><send event="x" targetexpr="\'{target}\'"/></onentry>'
            f'<transition event="{event}" target="t"/></state><state id="t"/>'
        )
        assert agent.state == "t", target


def test_an_agent_without_a_memory_is_an_error() -> None:
    """The chart remembers data of it."""
    chart = Statechart.from_scxml(document(COUNTER))
    with pytest.raises(AgentError, match="state_memory"):
        chart.begin(SimpleNamespace(state=chart.initial))


NESTED = (
    '<foreach array="all" item="a"><foreach array="all" item="b"><foreach array="all" item="c">'
    '<assign location="n" expr="{}"/></foreach></foreach></foreach>'
)


@pytest.mark.parametrize(
    "content",
    [
        '<raise event="again"/>',
        NESTED.format("text + 'x' * 10000"),
        pytest.param(NESTED.format("n + 1"), marks=pytest.mark.slow),
        '<assign location="text" expr="text + text"/><raise event="again"/>',
    ],
)
def test_content_without_end_is_ended(content: str) -> None:
    """By the limit of steps, or by what one step may make and look at."""
    chart, agent = begun(
        '<datamodel><data id="n" expr="0"/><data id="text" expr="\'ab\'"/><data id="all" expr="'
        + json.dumps([1] * 300)
        + '"/></datamodel><state id="s"><transition event="again">'
        + content
        + '</transition><transition event="error" target="t"/></state><state id="t"/>'
    )
    try:
        assert chart.fire(agent, "again") == "t"
    except RunawayError:
        assert "raise" in content
    assert len(agent.state_memory["data"]["text"]) <= 200_000


# What is refused


def test_everything_that_is_not_read_is_told_at_once_with_lines() -> None:
    """Whoever mends a document mends all of it."""
    with pytest.raises(DefinitionError) as caught:
        Statechart.from_scxml(
            document(
                "<script>x</script>\n"
                '<state id="a"><invoke/>\n'
                '<transition event="e" target="nowhere" cond="(lambda: 1)()"/>\n'
                '<onentry><send event="x" target="http://elsewhere"/>\n<send type="basichttp"/>'
                "</onentry></state>\n"
                '<state id="b"><history id="h"><transition target="no"/></history></state>\n'
                '<state><transition event="e" target="h"/></state>'
            )
        )
    message = str(caught.value)
    for line, part in (
        (2, "<script>"),
        (3, "<invoke>"),
        (4, "names 'nowhere'"),
        (4, "the expression '(lambda: 1)()'"),
        (5, "an agent can send events only to itself"),
        (6, "the Basic HTTP processor"),
        (7, "a history's default must name states, got 'no'"),
    ):
        assert f"line {line}: {part}" in message, message


@pytest.mark.parametrize(
    ("inside", "attributes", "said"),
    [
        ("<state/>", 'datamodel="xpath"', "'xpath' is not supported"),
        ("<state/>", 'datamodel="c89"', "'c89' is not supported"),
        ("", "", "there are no states"),
        ("<state/>", 'initial="no"', "line 1: names 'no', which is not a state"),
        ("<state/>", 'binding="lat"', "line 1: binding must be 'early' or 'late', got 'lat'"),
        ('<state id="a"/><state id="a"/>', "", "the id 'a' is already used on line 2"),
        ('<datamodel><data id="x" src="file:x"/></datamodel><state/>', "", "has a src"),
        ("<datamodel><data id='x'><a/></data></datamodel><state/>", "", "XML in <data>"),
        ("<datamodel><data id='_event'/></datamodel><state/>", "", "cannot be the id"),
        ("<state><transition target='a'/></state>", "", "names 'a', which is not a state"),
        ("<state><transition event='e' target=''/></state>", "", "names no state"),
        (
            "<state><transition cond='x.__class__'/></state>",
            'datamodel="python"',
            "line 2: the expression 'x.__class__'",
        ),
        ("<state><transition cond='x'/></state>", 'datamodel="null"', "null data model"),
        ("<state><onentry><foreach/></onentry></state>", "", "<foreach> has no array"),
        (
            "<state><onentry><send event='x' delay='soon'/></onentry></state>",
            "",
            "the delay must be a duration",
        ),
        (
            "<state><onentry><send event='x' target='#_parent'/></onentry></state>",
            "",
            "only to itself",
        ),
        ("<state><history/></state>", "", "a history needs an id"),
        ("<parallel><final/></parallel>", "", "<final> in <parallel>"),
        ("<state><initial/><state/></state>", "", "<initial> needs one"),
    ],
)
def test_what_is_not_read_is_refused_by_name(inside: str, attributes: str, said: str) -> None:
    """Each with its sentence and its line."""
    with pytest.raises(DefinitionError) as caught:
        Statechart.from_scxml(document(inside, attributes))
    assert said in str(caught.value)
    assert "line " in str(caught.value)


def test_what_is_not_xml_names_its_line() -> None:
    """As for every other document."""
    with pytest.raises(InputError, match="line 2"):
        Statechart.from_scxml(f"{HEAD}>\n<state></scxml>")
    with pytest.raises(DefinitionError, match="must be <scxml>"):
        Statechart.from_scxml("<state/>")


def test_a_tick_must_be_a_duration() -> None:
    """Delays are counted in it."""
    with pytest.raises(DefinitionError, match="tick must be a duration"):
        Statechart.from_scxml(document("<state/>"), tick="0s")


def test_foreign_elements_are_passed_over_with_a_note(caplog: pytest.LogCaptureFixture) -> None:
    """Editors keep where they have drawn a state."""
    Statechart.from_scxml(document('<state id="a"><e:place xmlns:e="urn:editor" x="1"/></state>'))
    assert any("line 2: <urn:editor place> is ignored" in each for each in caplog.messages)


# Elsewhere


def test_a_chart_of_a_document_is_copied_and_pickled() -> None:
    """With its content, which is data."""
    chart = Statechart.from_scxml(document(COUNTER))
    again = pickle.loads(pickle.dumps(chart))
    assert again == chart
    assert again == Statechart.from_scxml(document(COUNTER))


def test_a_chart_with_content_has_no_other_document() -> None:
    """It says so instead of leaving the content out."""
    chart = Statechart.from_scxml(document(COUNTER))
    with pytest.raises(DefinitionError, match="keep its document"):
        chart.to_json()
    with pytest.raises(DefinitionError, match="keep the document"):
        chart.to_scxml()
    with pytest.raises(DefinitionError, match="has no Machine"):
        _ = chart.machine


def test_a_chart_of_a_document_is_explained() -> None:
    """Nothing is done: neither an event raised nor a variable set."""
    chart, agent = begun(COUNTER)
    before = json.dumps(agent.state_memory)
    told = str(chart.explain(agent, "add", {"by": 2}))
    assert "_event.data['by'] > 0" in told
    assert chart.enabled_targets(agent, "add", {"by": 2}) == ["counting"]
    assert json.dumps(agent.state_memory) == before


def test_the_command_reads_documents(prism: Prism) -> None:
    """Wherever it reads a chart's JSON."""
    path = prism.folder / "lamp.scxml"
    path.write_text(
        document('<state id="on"><transition event="x" target="off"/></state><state id="off"/>')
    )
    assert "off" in prism("chart", "show", path).out
    path.write_text("<scxml>")
    assert prism("chart", "check", path).status == 2

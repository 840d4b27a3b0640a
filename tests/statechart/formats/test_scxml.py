"""SCXML documents as charts: what is read, and what is refused, at once."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import DefinitionError, InputError
from prism.statechart import Statechart, Transition, state_enum

HEAD = '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0"'
PRISM = 'xmlns:prism="urn:prism:statechart"'


def document(inside: str, attributes: str = "") -> str:
    """Return a document with something inside."""
    return f"{HEAD} {attributes}>\n{inside}\n</scxml>"


def begun(inside: str, attributes: str = "", **options: Any) -> tuple[Any, Any]:
    """Return the chart of a document, and an agent that has begun."""
    chart = Statechart.from_scxml(document(inside, attributes), **options)
    agent = SimpleNamespace(state=chart.initial, state_memory=None, agent_id="ada")
    chart.begin(agent)
    return chart, agent


LAMP = (
    '<state id="on" initial="a"><state id="a"><transition event="next" target="b"/></state>'
    '<final id="b"/><transition event="off.*" target="off"/>'
    '<transition event="done" target="off"/></state><state id="off"/>'
)


def test_a_document_is_a_chart_like_any_other() -> None:
    """It is written in every format, comes back from it, and is copied and explained."""
    chart, agent = begun(LAMP, 'name="lamp"')
    assert chart.name == "lamp"
    assert set(chart.triggers) == {"next", "off.*", "done"}
    assert Statechart.from_json(chart.to_json()) == chart
    assert Statechart.from_scxml(chart.to_scxml()) == chart
    assert pickle.loads(pickle.dumps(chart)) == chart
    assert "fire moves the agent to 'off'" in str(chart.explain(agent, "off.now"))
    assert chart.valid_triggers(agent.state) == ["next", "off.*", "done"]
    assert "only to next, off.*, done" in str(chart.explain(agent, "offer"))
    assert chart.fire(agent, "next") == "off"


@pytest.mark.parametrize(
    ("descriptor", "event", "is_meant"),
    [
        ("a", "a.b.c", True),
        ("a", "ab", False),
        ("a.*", "a.b", True),
        ("a.*", "a", True),
        ("a.b", "a", False),
        ("x a.b", "a.b.c", True),
        ("*", "whatever", True),
    ],
)
@pytest.mark.parametrize("attributes", ["", PRISM])
def test_events_are_matched_by_descriptors(
    descriptor: str, event: str, is_meant: bool, attributes: str
) -> None:
    """By their parts between dots (SCXML, 3.12.1), in every document."""
    chart, agent = begun(
        f'<state id="s"><transition event="{descriptor}" target="t"/></state><state id="t"/>',
        attributes,
    )
    assert (chart.fire(agent, event) is not None) is is_meant


def test_conditions_and_actions_are_texts_for_which_the_caller_has_functions() -> None:
    """Nothing is evaluated, ``In`` included."""
    seen: list[str] = []
    chart, agent = begun(
        '<state id="s" prism:exit="leave"><transition event="e" cond="x &gt; 3" target="t" '
        'prism:action="say it"/></state><state id="t"><transition event="e" cond="In(\'t\')" '
        'target="s"/></state>',
        PRISM,
        guards={"x > 3": lambda agent, x: x > 3, "In('t')": lambda agent, _: agent.state == "t"},
        actions={"say it": lambda *_: seen.append("it"), "leave": lambda *_: seen.append("left")},
    )
    assert chart.fire(agent, "e", 3) is None
    assert chart.fire(agent, "e", 4) == "t"
    assert seen == ["left", "it"]
    assert chart.fire(agent, "e") == "s"
    with pytest.raises(
        DefinitionError, match=r"guard: unknown function 'x > 3': pass it in guards="
    ):
        Statechart.from_scxml(document('<state><transition event="e" cond="x &gt; 3"/></state>'))


# What is refused

HISTORY = "<history id='h'><transition target='{}'/></history>"
TWICE = "<transition target='s'/><transition target='s'/>"


@pytest.mark.parametrize(
    ("inside", "attributes", "said"),
    [
        ("<state/>", 'intial="no"', "line 1: intial of <scxml> is not supported"),
        ("<state>x</state>", "", "text of <state>"),
        ("<state><transition prism:afther='3'/></state>", PRISM, "prism:afther of <transition>"),
        ("<state/>\n<script>x</script>", "", "line 3: <script> in <scxml>"),
        ("<state><transition><raise event='x'/></transition></state>", "", "<raise> in <transi"),
        ("<state><initial><transition event='x'/></initial></state>", "", "event of <transition>"),
        ("<state><transition type='intrnal'/></state>", "", "line 2: type 'intrnal'"),
        ("<state>\n<history type='depp'/></state>", "", "line 3: type 'depp'"),
        ("<state><transition event='e' target=' '/></state>", "", "an empty target"),
        ("<state id='a'/>\n<state id='a'/>", "", "line 3: a second 'a'"),
        ("<state id='a'><history id='a'/></state>", "", "a second 'a'"),
        ("<state id='a'/>\n<final id='_x0061_'/>", "", "line 3: a second 'a'"),
        ("<state id='_xFFFFFF_'\ninitial='_x'/>", PRISM, "line 2: initial '_x', which no state h"),
        ("\n<state><transition target='no'/></state>", "", "line 3: target 'no', which no state"),
        (f"<state>\n{HISTORY.format('no')}</state>", "", "line 3: default 'no', which no state"),
        # an initial and a history have one transition, with a target (3.6.2, 3.10.2)
        ("<state>\n<initial/><state/></state>", "", "line 3: <initial> without a <transition>"),
        ("<state>\n<history/></state>", "", "line 3: <history> without a <transition>"),
        ("<state><history><transition/></history></state>", "", "a transition without a target"),
        (
            f"<state id='s'><initial>{TWICE}</initial></state>",
            "",
            "a second initial or default state",
        ),
        (f"<state initial='s'>\n<initial>{TWICE}", "", "line 3: a second initial or default"),
        # what only the whole chart can tell
        ("", "", "line 1: state enum 'State': states must be non-empty strings, got none"),
        (
            "<state id='s' initial='t'/>\n<state id='t'/>",
            "",
            "line 2: states.s: state 's': has no s",
        ),
        (
            "<state id='s'><state id='t'/>\n<transition event='e' target='s t'/>\n"
            "<transition event='e' target='t s'/></state>",
            "",
            "line 3, 4: chart 'statechart': transition 1 (s --e--> s + t): 's' and 't' do not lie",
        ),
    ],
)
def test_what_is_not_read_is_refused_by_name(inside: str, attributes: str, said: str) -> None:
    """The first with its sentence, and its line if it is no name."""
    with pytest.raises(DefinitionError) as caught:
        Statechart.from_scxml(document(inside, attributes))
    assert said in str(caught.value)


def test_what_is_not_xml_names_its_line() -> None:
    """As for every other document."""
    for inside in ("<state>", "<qt:state/>"):
        with pytest.raises(InputError, match="line 2"):
            Statechart.from_scxml(f"{HEAD}>\n{inside}</scxml>")
    with pytest.raises(DefinitionError, match="<state> in <document>"):
        Statechart.from_scxml("<state/>")
    with pytest.raises(DefinitionError, match="line 2: chart 'statechart': timeouts: 'x' is not"):
        Statechart.from_scxml("\n" + document(LAMP, f"{PRISM} prism:timeouts='{{\"x\": 2}}'"))


def test_a_document_of_an_editor_is_read(caplog: pytest.LogCaptureFixture) -> None:
    """Qt Creator writes where it has drawn each element, and any type and a default everywhere."""
    text = """<?xml version="1.0" encoding="UTF-16"?>
<scxml xmlns="http://www.w3.org/2005/07/scxml" xmlns:qt="http://www.qt.io/2015/02/scxml-ext"
    version="1.0" binding="early" qt:editorversion="4.10.1" datamodel="ecmascript" name="lights">
  <qt:editorinfo initialGeometry="150;119"/><!-- drawn by hand -->
  <state id="on"><qt:editorinfo geometry="300;200"><qt:more/>text</qt:editorinfo>
    <initial><qt:editorinfo geometry="1"/><transition type="external" target="red"/></initial>
    <state id="green"/>
    <state id="red"><transition type="external" event="go" target="green"/></state>
    <transition type="external" event="smash" target="off"><qt:editorinfo movePoint="1;2"/>
    </transition>
    <history type="deep" id="h"><transition type="external" target="red"/></history>
  </state>
  <state id="off"><transition type="internal" event="mend" target="h"/></state>
</scxml>"""
    chart = Statechart.from_scxml(text)
    assert caplog.messages == [
        "SCXML document: ignored what is of http://www.qt.io/2015/02/scxml-ext"
    ]
    agent = chart.adopt(SimpleNamespace())
    chart.begin(agent)
    assert [chart.fire(agent, each) for each in ("go", "smash", "mend")] == [
        "green",
        "off",
        "green",
    ]
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


def many(number: int, form: str = '<state id="s%d"/>') -> str:
    """Return a state so many times."""
    return "".join(form % each for each in range(number))


HOSTILE: dict[str, Callable[[], str]] = {
    "a document type": lambda: '<!DOCTYPE x [<!ENTITY a "aaaa">]>' + document("<state/>"),
    "a million states": lambda: document(many(1_000_000, "<state id='s%d'/>")),
    "10,000 levels": lambda: document("<state>" * 10_000 + "</state>" * 10_000),
    "ids twice": lambda: document("<state id='a'/>" * 30_000),
    "100 MB": lambda: document(" " * 100_000_000),
    "a product of transitions": lambda: document(
        f"<state id='top'>{many(5000)}"
        + "".join(f'<transition event="e{each}" target="s{each}"/>' for each in range(5000))
        + "</state>"
    ),
    "wide regions": lambda: document(
        "<parallel id='p'>"
        + "".join(
            f"<state id='s{each}'><state id='a{each}'/><transition event='e' target='a{each}'/>"
            "</state>"
            for each in range(3000)
        )
        + "</parallel>"
    ),
    "many targets": lambda: document(
        f"<parallel id='p'>{many(5000)}</parallel><state id='x'><transition event='a' target='"
        + many(5000, "s%d ")
        + "'/></state>"
    ),
}

_MEASURE = r"""
import json, re, sys, time
from pathlib import Path
from prism.errors import DefinitionError
from prism.statechart import Statechart
with open(sys.argv[1]) as file:
    text = file.read(1_000_002)
began = time.process_time()
try:
    Statechart.from_scxml(text)
except DefinitionError:
    pass
spent = time.process_time() - began
# of this process alone, where ``ru_maxrss`` may be what started it
peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
print(json.dumps([spent, int(peak[1]) // 1024]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_refused_or_read_at_once(name: str, tmp_path: Path) -> None:
    """Within 2 s of CPU and 200 MB, the interpreter's own 30 among them."""
    path = tmp_path / "hostile.scxml"
    path.write_text(HOSTILE[name]())
    found = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    seconds, megabytes = json.loads(found.stdout)
    assert seconds < 2
    assert megabytes < 200

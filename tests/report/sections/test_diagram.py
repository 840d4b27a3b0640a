"""The section of the chart and its traffic."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from prism.analysis import read_log
from prism.drawing import Arrow, Box, Diagram
from prism.examples.day import Person
from prism.report._facts.run_facts import facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._page import familiar_charts
from prism.report._sections.diagram import CHART, diagram_of, traffic_of
from prism.statechart.outline import to_outline


def test_chart_has_every_state_and_trigger_of_the_log(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """The drawing has the states and triggers that were seen, and a table of the counts."""
    moves = [make.move("x", "a", "b"), make.move("x", "b", "a", "back"), make.move("y", "a", "b")]
    (facts,), _ = facts_of(read_log(write_log(moves)))
    figures = PageFigures(facts.state_names)
    section = str(CHART.make(facts, "1", figures))
    for text in (">a<", ">b<", "go", "back"):
        assert text in figures.drawings["chart-1"]
    assert 'id="table-transitions-1"' in section
    assert figures.drawings["chart-1"] in section


@pytest.mark.slow
def test_a_given_chart_is_drawn_as_it_is_defined(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """The drawing has the initial state, guards and transitions that were never made."""
    arrows = (Arrow("b", "a", ("go [may]",)), Arrow("a", "c", ("leave",)))
    chart = Diagram(("b", "a", "c"), arrows, initial="b", name="c")
    log = read_log(write_log([make.move("x", "b", "a"), make.move("x", "a", "elsewhere")]))
    (facts,), _ = facts_of(log, [chart])
    figures = PageFigures(facts.state_names)
    CHART.make(facts, "1", figures)
    drawn = figures.drawings["chart-1"]
    for text in ("go [may]", "leave", "0\N{MULTIPLICATION SIGN}", ">elsewhere<", 'class="start"'):
        assert text in drawn


@pytest.mark.slow
def test_decisions_to_stay_are_the_traffic_of_a_loop(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """A loop counts decisions to stay, once where the log has their transitions, too."""
    decided = [make.decision("x", ["a", "b"], chosen) for chosen in ("a", "a", "b")]
    moved = make.move("x", "a", "b")
    for transitions in ([moved], [make.move("x", "a", "a"), make.move("x", "a", "a"), moved]):
        (facts,), _ = facts_of(read_log(write_log([*decided, *transitions])))
        assert traffic_of("c", facts) == {("a", "a"): 2, ("a", "b"): 1}


@pytest.mark.slow
def test_stays_belong_to_the_chart_that_alone_has_the_state(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """Where two charts have a state, nobody knows whose the decisions are, so none are counted."""
    decided = [make.decision("x", ["a", "b"], "a"), make.decision("x", ["d", "b"], "d", state="d")]
    moved = [
        *(make.move("x", "a", "b"), make.move("y", "a", "b", chart="other")),
        make.move("x", "b", "d"),
    ]
    (facts,), _ = facts_of(read_log(write_log([*decided, *moved])))
    assert traffic_of("c", facts) == {("a", "b"): 1, ("b", "d"): 1, ("d", "d"): 1}
    assert traffic_of("other", facts) == {("a", "b"): 1}


@pytest.mark.slow
def test_the_initial_state_is_on_top(write_log: Callable[..., Path], make: SimpleNamespace) -> None:
    """Without a chart, too, the state that agents began in stands above all others."""
    moves = [make.move("x", "z", "a"), make.move("x", "a", "m"), make.move("x", "m", "z")]
    log = read_log(write_log([make.joined("x", "z"), make.joined("y", "z"), *moves]))
    (facts,), _ = facts_of(log)
    figures = PageFigures(facts.state_names)
    CHART.make(facts, "1", figures)
    found = re.findall(
        r'class="name" x="[^"]*" y="([^"]*)" [^>]*>(\w+)<', figures.drawings["chart-1"]
    )
    assert min((float(y), state) for y, state in found)[1] == "z"


@pytest.mark.slow
def test_each_chart_of_a_run_has_its_drawing(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """A run by two charts has a drawing of each, with its own states."""
    moves = [make.move("x", "a", "b"), make.move("y", "u", "v", chart="other")]
    (facts,), _ = facts_of(read_log(write_log(moves)))
    figures = PageFigures(facts.state_names)
    section = str(CHART.make(facts, "1", figures))
    assert "The chart other" in section
    assert ">u<" in figures.drawings["chart-1-2"]
    assert ">a<" not in figures.drawings["chart-1-2"]


@pytest.mark.slow
def test_runs_side_by_side_are_drawn_alike(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """Two runs by one chart have the same boxes, also where one run left out a state."""
    one = write_log([make.move("x", "a", "b"), make.move("x", "b", "c")], "one/events.jsonl")
    other = write_log([make.move("x", "a", "b")] * 999, "other/events.jsonl")
    runs, _ = facts_of(read_log(one, other))
    figures = PageFigures(("a", "b", "c"), runs=runs)
    for number, facts in enumerate(runs, start=1):
        CHART.make(facts, str(number), figures)
    boxes = [
        re.findall(r'class="box[^>]*>', figures.drawings[f"chart-{number}"]) for number in (1, 2)
    ]
    assert boxes[0] == boxes[1]
    assert len(boxes[0]) == 3


TREE = {"awake": ["place", "phone"], "place": ["work", "home"], "phone": ["pocket", "feed"]}


@pytest.mark.slow
def test_states_in_states_are_boxes(write_log: Callable[..., Path], make: SimpleNamespace) -> None:
    """What a log says lies inside of what is drawn so, with regions where agents were in two."""
    moves = [
        make.move("x", "work+pocket", "work+feed", "looks"),
        make.move("x", "work+feed", "asleep", "sleeps"),
        make.move("y", "asleep", "home+pocket", "wakes"),
    ]
    begun = [make.started(charts={"c": TREE}), make.joined("x", "work+pocket", chart="c")]
    (facts,), _ = facts_of(read_log(write_log([*begun, *moves])))
    diagram = diagram_of("c", [facts])
    assert diagram.boxes == {
        "awake": Box(("place", "phone"), is_parallel=True),
        "place": Box(("work", "home"), ("work",)),
        "phone": Box(("pocket", "feed"), ("pocket",)),
    }
    assert diagram.initial == "awake"
    assert {(arrow.source, arrow.target): arrow.labels for arrow in diagram.arrows} == {
        ("pocket", "feed"): ("looks",),
        ("awake", "asleep"): ("sleeps",),
        ("asleep", "awake"): ("wakes",),
    }
    figures = PageFigures(tuple(facts.state_names))
    CHART.make(facts, "1", figures)
    assert figures.drawings["chart-1"].count('class="line rest"') == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "tree",
    [
        {"a": ["b"], "b": ["a"]},
        {"r": ["a"], "a": ["r", "a", "x"]},
        {"a": ["x"], "b": ["x"]},
        {"a\x00": ["x\x00"], "b": []},
        {"a": ["a"]},
    ],
)
def test_a_tree_that_is_none_is_drawn_as_far_as_it_is(
    tree: Any, write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """Circles, states in two places and what cannot be shown end in a picture all the same."""
    moves = [make.move("x", "x", "y+a"), make.move("x", "y+a", "x\x00")]
    (facts,), _ = facts_of(read_log(write_log([make.started(charts={"c": tree}), *moves])))
    figures = PageFigures(tuple(facts.state_names))
    assert CHART.make(facts, "1", figures)
    ElementTree.fromstring(figures.drawings["chart-1"])


@pytest.mark.slow
def test_a_given_nested_chart_is_drawn_with_its_boxes(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """It has arrows that were never used, histories, and a state that only the log knows."""
    moves = [make.move("x", "work+pocket", "work+feed", "looks", chart="day")]
    moves.append(make.move("x", "work+feed", "work+lost", "slips", chart="day"))
    (facts,), _ = facts_of(read_log(write_log(moves)), [to_outline(Person.chart.definition)])
    figures = PageFigures(tuple(facts.state_names))
    CHART.make(facts, "1", figures)
    drawn = figures.drawings["chart-1"]
    for text in (">H<", ">lost<", "home: sleeps (after 8)", "1\u00d7", "0\u00d7"):
        assert text in drawn, text
    assert facts.state_names[:2] == ["work+pocket", "work+feed"]


@pytest.mark.slow
def test_an_example_has_all_arrows_of_its_chart(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """The folder of a run tells its world; what a user calls the same is drawn as it was used."""
    moved = make.move("x", "spreader", "stifler", "tires", chart="rumour")
    log = write_log([make.started(chart="rumour", world="Rumour"), moved])
    for world, arrows in (("prism.examples.rumour:Rumour", 3), ("rumour.py:Rumour", 1)):
        told = {"prism": "0", "schema": 1, "config": {"world": world}}
        log.with_name("run.json").write_text(json.dumps(told))
        logs = read_log(log)
        (facts,), _ = facts_of(logs, [], familiar_charts(logs.runs))
        assert len(diagram_of("rumour", [facts]).arrows) == arrows


@pytest.mark.slow
def test_agents_without_a_transition_have_a_chart(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """It is that in which they joined, whole if it is one of prism's own."""
    begun = [make.started(chart="cognition"), make.joined("x", "thinking")]
    (facts,), _ = facts_of(read_log(write_log(begun)), [], familiar_charts())
    assert facts.chart_names == ["cognition"]
    assert diagram_of("cognition", [facts]).states == ("thinking", "executing", "paging")
    (unknown,), _ = facts_of(read_log(write_log([make.joined("x", "idle", chart="c")])))
    assert diagram_of("c", [unknown]).states == ("idle",)

"""Charts with states in states, and of agents that have not moved, as the viewer draws them."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import prism.examples.rumour as rumour
from prism.analysis import read_log
from prism.report import make_report
from prism.worlds import Run
from tests.kit import make
from tests.kit.visits import Visitor, visiting

Visit = Callable[[Any], Visitor]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """Yield a browser of a run of a world with regions."""
    folder = tmp_path_factory.mktemp("day") / "real"
    Run("day", 12, rounds=2, seed=1).keep(folder)
    with visiting(folder) as visitor:
        yield visitor


def test_states_in_states_are_boxes_that_lead_to_the_agents_inside(day: Visitor) -> None:
    """An agent is found in each state that it is in, and by each arrow that it took."""
    chart = day.html("/round", round=2)["the-chart"]
    states = dict(re.findall(r'data-state="([^"]*)".*?>([\d,]+) agents?<', chart))
    assert {"awake", "place", "work", "home", "phone", "pocket", "feed", "asleep"} == {*states}
    assert states["awake"] == states["place"] == states["phone"]
    assert int(states["pocket"]) + int(states["feed"]) == int(states["awake"])
    for state, count in states.items():
        assert day.ask("/agents", round=2, state=state)["number"] == int(count), state

    arrows = re.findall(r'data-source="(\w+)" data-target="(\w+)".*?>([\d,]+)\u00d7<', chart)
    assert {("asleep", "awake"), ("pocket", "feed")} <= {
        (source, target) for source, target, _ in arrows
    }
    for source, target, count in arrows:
        found = day.ask("/agents", round=2, source=source, target=target)
        assert sum(times for _, times in found["agents"]) == int(count), (source, target)


def test_an_agent_of_a_nested_chart_has_its_path_in_the_boxes(day: Visitor) -> None:
    """Its page draws the chart with what it did alone."""
    html = day.html("/agent", agent="person_1")["its-path-on-the-chart"]
    assert 'class="box inner"' in html
    assert "asleep \u2192 awake: wakes" in html


def test_transitions_that_no_agent_has_made_yet_are_drawn(day: Visitor) -> None:
    """The folder says which there are, so that the chart is whole from its first round."""
    titles = re.findall("<title>([^<]*)</title>", day.html("/round", round=1)["the-chart"])
    assert "feed \u2192 pocket: tires (rate 0.7), hides" in titles
    assert "awake \u2192 asleep: home: sleeps (after 8)" in titles


@pytest.mark.slow
def test_a_kept_run_of_a_users_world_has_its_whole_chart_without_the_code(
    visit: Visit, own_modules: Path
) -> None:
    """Arrows that nobody took are drawn from the folder alone; what is damaged there is not."""
    file, folder = own_modules / "mine.py", own_modules / "real"
    file.write_text(Path(rumour.__file__).read_text())
    Run(f"{file}:Rumour", 12, rounds=1, seed=3).keep(folder)
    file.unlink()
    kept = json.loads((folder / "run.json").read_text())
    client = visit(folder)
    arrow = "<title>spreader \u2192 stifler: tires</title>"
    assert arrow in client.html("/round", round=1)["the-chart"]
    assert arrow in make_report(read_log(folder)).html()

    for damaged in ([{**kept["charts"][0], "arrows": [{"target": "mars"}]}], [7], []):
        (folder / "run.json").write_text(json.dumps({**kept, "charts": damaged}))
        assert arrow not in make_report(read_log(folder)).html()


def test_agents_that_have_not_moved_are_on_their_chart(visit: Visit) -> None:
    """An agent is there before its first transition."""
    client = visit([make.started(chart="mine"), make.joined("ada", "thinking")])
    chart = client.html("/round")["the-chart"]
    assert ">1 agent<" in chart
    assert ">thinking<" in chart
    assert client.ask("/agents", state="thinking")["number"] == 1

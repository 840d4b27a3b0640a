"""Charts with states in states, and of agents that have not moved, as the viewer draws them."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import prism.examples.rumour as rumour
from prism.analysis import read_log
from prism.report import make_report
from prism.watch import Watching, watch
from prism.worlds import Run
from tests.kit import make
from tests.kit.waiting import wait_until
from tests.watch.test_server import ask

Show = Callable[[Path], Watching]
Visit = Callable[[Watching], httpx.Client]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of a world with regions."""
    Run("day", 12, rounds=2, seed=1).keep(folder := tmp_path_factory.mktemp("day") / "real")
    return folder


@pytest.fixture(scope="module")
def day(folder: Path) -> Iterator[httpx.Client]:
    """Yield a browser of that run, whose log has been read."""
    watching = watch(folder)
    with httpx.Client(base_url=watching.url.partition("/?")[0], timeout=30) as client:
        assert client.get(watching.url).status_code == 200
        wait_until(lambda: (head := ask(client, "/head"))["read"] == head["size"] > 0)
        yield client
    watching.stop()


def chart_in(view: dict[str, Any]) -> str:
    """Return the charts of a round."""
    (html,) = (each["html"] for each in view["sections"] if each["anchor"] == "the-chart")
    return str(html)


def test_states_in_states_are_boxes_that_lead_to_the_agents_inside(day: httpx.Client) -> None:
    """An agent is found in each state that it is in, and by each arrow that it took."""
    chart = chart_in(ask(day, "/round", round=2))
    states = dict(re.findall(r'data-state="([^"]*)".*?>([\d,]+) agents?<', chart))
    assert {"awake", "place", "work", "home", "phone", "pocket", "feed", "asleep"} == {*states}
    assert states["awake"] == states["place"] == states["phone"]
    assert int(states["pocket"]) + int(states["feed"]) == int(states["awake"])
    for state, count in states.items():
        assert ask(day, "/agents", round=2, state=state)["number"] == int(count), state

    arrows = re.findall(r'data-source="(\w+)" data-target="(\w+)".*?>([\d,]+)\u00d7<', chart)
    assert {("asleep", "awake"), ("pocket", "feed")} <= {
        (source, target) for source, target, _ in arrows
    }
    for source, target, count in arrows:
        found = ask(day, "/agents", round=2, source=source, target=target)
        assert sum(times for _, times in found["agents"]) == int(count), (source, target)


def test_an_agent_of_a_nested_chart_has_its_path_in_the_boxes(day: httpx.Client) -> None:
    """Its page draws the chart with what it did alone."""
    html = "".join(each["html"] for each in ask(day, "/agent", agent="person_1")["sections"])
    assert 'class="box inner"' in html
    assert "asleep \u2192 awake: wakes" in html


def test_transitions_that_no_agent_has_made_yet_are_drawn(day: httpx.Client) -> None:
    """The folder says which there are, so that the chart is whole from its first round."""
    titles = re.findall("<title>([^<]*)</title>", chart_in(ask(day, "/round", round=1)))
    assert "feed \u2192 pocket: tires (rate 0.7), hides" in titles
    assert "awake \u2192 asleep: home: sleeps (after 8)" in titles


@pytest.mark.slow
def test_a_kept_run_of_a_users_world_has_its_whole_chart_without_the_code(
    shown: Show, visit: Visit, own_modules: Path
) -> None:
    """Arrows that nobody took are drawn from the folder alone; what is damaged there is not."""
    file, folder = own_modules / "mine.py", own_modules / "real"
    file.write_text(Path(rumour.__file__).read_text())
    Run(f"{file}:Rumour", 12, rounds=1, seed=3).keep(folder)
    file.unlink()
    kept = json.loads((folder / "run.json").read_text())
    client = visit(shown(folder))
    wait_until(lambda: ask(client, "/head")["read"] == ask(client, "/head")["size"] > 0)
    arrow = "<title>spreader \u2192 stifler: tires</title>"
    assert arrow in chart_in(ask(client, "/round", round=1))
    assert arrow in make_report(read_log(folder)).html()

    for damaged in ([{**kept["charts"][0], "arrows": [{"target": "mars"}]}], [7], []):
        (folder / "run.json").write_text(json.dumps({**kept, "charts": damaged}))
        assert arrow not in make_report(read_log(folder)).html()


@pytest.mark.slow
def test_agents_that_have_not_moved_are_on_their_chart(
    shown: Show, visit: Visit, tmp_path: Path
) -> None:
    """An agent is there before its first transition."""
    begun = [make.started(chart="mine"), make.joined("ada", "thinking")]
    log = tmp_path / "real" / "events.jsonl"
    log.parent.mkdir()
    log.write_text("".join(json.dumps(event) + "\n" for event in begun))
    client = visit(shown(log.parent))
    wait_until(lambda: ask(client, "/head")["read"] == ask(client, "/head")["size"] > 0)
    chart = chart_in(ask(client, "/round"))
    for text in (">1 agent<", ">thinking<"):
        assert text in chart
    assert ask(client, "/agents", state="thinking")["number"] == 1

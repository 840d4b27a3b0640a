"""What the page shows of a round and of an agent, and what it says of a log that lacks some."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import prism.examples.rumour as rumour
from prism.analysis import read_log
from prism.report import make_report
from prism.worlds import Run, measure
from tests.kit import make
from tests.kit.visits import Visitor, visiting

Visit = Callable[[Any], Visitor]


def at(number: int, event: dict[str, Any], tick: int = 1) -> dict[str, Any]:
    return {**event, "round": number, "tick": tick}


def counts(client: Visitor, number: int, states: str = "xyz") -> dict[str, int]:
    """Return the agents in each state, which are as many on the chart as behind it."""
    html = client.html("/round", round=number)["the-chart"]
    found = {}
    for state in states:
        box = html.partition(f'data-state="{state}"')[2].partition("</g>")[0]
        agents = client.ask("/agents", round=number, state=state)["number"]
        assert f">{agents} agent" in box or not (agents or box)
        found[state] = agents
    return found


def test_agents_in_a_round_that_goes_on_are_counted_from_the_last_end(visit: Visit) -> None:
    """What closes a round comes after its states were counted."""
    states = {"x": 1, "y": 2}
    ended = {"event": "round.ended", "timestamp": "t", "round": 1, "states": states}
    client = visit(
        [
            make.started(agents=3),
            *(make.joined(agent, state) for agent, state in zip("abc", "xxy", strict=True)),
            at(1, make.move("a", "x", "y")),
            ended,
            at(1, make.move("a", "y", "x", trigger="round_ends"), tick=3),
            at(2, make.move("c", "y", "z")),
        ]
    )
    assert counts(client, 1) == {"x": 1, "y": 2, "z": 0}
    assert counts(client, 2) == {"x": 2, "y": 0, "z": 1}


def test_agents_of_a_loop_of_ones_own_are_counted_by_what_moves(visit: Visit) -> None:
    """Such a log has neither agents that join nor ends of rounds."""
    client = visit(
        [
            make.started(agents=2),
            at(1, make.move("a", "x", "y")),
            at(1, make.move("b", "x", "z")),
            at(2, make.move("a", "y", "z"), tick=2),
            at(3, make.event("agent.left", agent_id="b", state="z", chart="c")),
        ]
    )
    assert counts(client, 1) == {"x": 0, "y": 1, "z": 1}
    assert counts(client, 2) == {"x": 0, "y": 0, "z": 2}
    assert counts(client, 3) == {"x": 0, "y": 0, "z": 1}
    for tick, state in ((1, "y"), (2, "z")):
        found = client.ask("/agents", round=2, tick=tick, state=state)["agents"]
        assert ["a", 1] in found


@pytest.mark.slow
def test_kinds_whose_states_have_one_name_are_counted_apart(visit: Visit) -> None:
    """Three wolves and a sheep that rest are three and one, and grass that never moved is one."""
    kinds = {"a": "wolf", "b": "wolf", "c": "wolf", "d": "sheep"}
    states = {"event": "round.ended", "timestamp": "t", "round": 1, "states": {"rests": 5}}
    client = visit(
        [
            make.started(agents=5, chart="wolf, sheep, grass"),
            *({**make.joined(name, "roams"), "chart": kind} for name, kind in kinds.items()),
            {**make.joined("e", "rests"), "chart": "grass"},
            *(
                at(1, {**make.move(name, "roams", "rests"), "chart": kind})
                for name, kind in kinds.items()
            ),
            states,
        ]
    )
    charts = client.html("/round", round=1)["the-chart"].split("data-chart=")[1:]
    shown = {part.split('"')[1]: part.partition('data-state="rests"')[2] for part in charts}
    for kind, count in (("wolf", 3), ("sheep", 1), ("grass", 1)):
        assert f">{count} agent" in shown[kind].partition("</g>")[0]
        behind = client.ask("/agents", round=1, state="rests", chart=kind)
        assert behind["number"] == count
        arrow = client.ask("/agents", round=1, source="roams", target="rests", chart=kind)
        assert arrow["number"] == count * (kind != "grass")


@pytest.mark.slow
def test_what_was_said_is_a_transcript_of_the_round_and_of_each_agent(visit: Visit) -> None:
    """Messages stand in the order in which they were said; nothing speaks of posts."""

    def message(number: int, sender: str, receiver: str, content: str) -> dict[str, Any]:
        own = {"agent_id": sender, "receiver": receiver, "content": content}
        return at(number, make.event("message.sent", **own))

    client = visit(
        [
            make.started(world="Talk", chart=None),
            *(make.joined(name, "x") for name in ("ann", "di", "bo")),
            message(1, "ann", "di", "Hello!"),
            message(2, "di", "ann", "<b>Well?</b>"),
            message(2, "ann", "di", "Well."),
            message(2, "bo", "di", "And I?"),
        ]
    )
    view = client.ask("/round", round=2)
    html = client.html("/round", round=2)["messages"]
    places = [html.index(text) for text in ("&lt;b&gt;Well?", "Well.", "And I?")]
    assert places == sorted(places)
    assert "Hello!" not in html
    page = client.html("/agent", agent="ann", round=2)
    with_di = page["its-messages"].partition("<summary>With di: 3 messages")[2]
    assert with_di.index("Hello!") < with_di.index("Well?")
    assert "post" not in json.dumps(view).replace("data-post", "").lower()


@pytest.mark.slow
def test_the_head_and_the_round_are_of_one_instant(visit: Visit, folder: Path) -> None:
    """Whatever round is asked for, the head that comes with it counts the same lines."""
    client = visit(folder)
    for number in ("", 1):
        view = client.ask("/round", round=number)
        assert (view["head"]["rounds"], view["round"]) == (4, number or 4)
        assert view["head"]["read"] == view["head"]["size"]


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


class Heard(rumour.Rumour):
    """A rumour with a measure in words."""

    @measure(label="Those who know", unit="%")
    def known(self) -> float:
        """Return a number."""
        return 50.0


def test_a_measure_is_shown_in_words(visit: Visit, tmp_path: Path) -> None:
    """The numbers of a round and the page of a report have its label and unit."""
    Run(Heard, 12, rounds=1, seed=3).keep(tmp_path / "run")
    client = visit(tmp_path / "run")
    for html in (
        client.html("/round", round=1)["numbers"],
        make_report(read_log(tmp_path / "run")).html(),
    ):
        assert "Those who know (%)" in html


@pytest.mark.slow
def test_agents_that_have_not_moved_are_on_their_chart(visit: Visit) -> None:
    """An agent is there before its first transition."""
    client = visit([make.started(chart="mine"), make.joined("ada", "thinking")])
    chart = client.html("/round")["the-chart"]
    assert ">1 agent<" in chart
    assert ">thinking<" in chart
    assert client.ask("/agents", state="thinking")["number"] == 1


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """Yield a browser of a run in which a model decides about a post and templates write."""
    first, second = {"round": 1, "tick": 1}, {"round": 1, "tick": 2}
    about = {"context": {"post_id": "p1"}, "source": "model", "model": "small"}
    events = [
        make.started(parameters={"engagement": 0.25}),
        *(make.joined(name) for name in ("ada", "bob")),
        make.post("bob", "p1", **first),
        make.decision("ada", ["write", "scroll"], "write", **about, **first),
        make.post("ada", "p2", "p1", "p1", **second),
        make.decision("ada", ["write", "scroll"], "scroll", **about, **second),
        make.post("ada", "p3", **second),
        make.like("ada", "p1", "bob", **second),
        make.decision("bob", ["a", "b"], "b", source="fallback", reason="late", **second),
        make.move("ada", "idle", "scroll", round=2, tick=1),
        *(make.move("cem", "idle", "scroll", round=2, tick=tick) for tick in range(1, 303)),
    ]
    log = tmp_path_factory.mktemp("decided") / "real" / "events.jsonl"
    log.parent.mkdir()
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    with visiting(log.parent) as visitor:
        yield visitor


def test_a_decision_says_what_it_was_about_and_what_was_chosen(client: Visitor) -> None:
    """The last decision is first, with its options, its source and why it fell back."""
    last, first = client.html("/agent", agent="ada", round=1)["what-it-was-asked"].split(
        "</details>"
    )[:2]
    assert "post_id: p1" in first
    assert re.findall(r"<li>(\w+) <b>chosen</b>", first) == ["write"]
    assert re.findall(r"<li>(\w+) <b>chosen</b>", last) == ["scroll"]
    assert "round 1, tick 2: a on go, chose scroll (model)" in last
    assert "what-it-was-asked" not in client.html("/agent", agent="ada", round=0)
    assert (
        "<p>Reason</p><pre>late</pre>"
        in client.html("/agent", agent="bob", round=1)["what-it-was-asked"]
    )


def test_the_story_leads_to_every_round_and_a_round_without_events_says_so(
    client: Visitor,
) -> None:
    """What an agent did in the round stands before what it did in the whole run."""
    html = client.html("/agent", agent="ada", round=2)
    assert set(re.findall(r'data-round="(\d)"', html["all-that-it-did"])) == {"0", "1", "2"}
    assert set(re.findall(r'data-round="(\d)"', html["what-it-did"])) == {"2"}
    assert "Nothing." in client.html("/agent", agent="bob", round=2)["what-it-did"]


def test_of_a_long_story_the_last_part_is_on_the_page(client: Visitor) -> None:
    """Of more than 300 events the last are listed."""
    story = client.html("/agent", agent="cem", round=2)["all-that-it-did"]
    ticks = [int(tick) for tick in re.findall(r"round 2, tick (\d+)<", story)]
    assert ticks == [*range(302, 2, -1)]


def test_a_fallback_is_a_fault(client: Visitor) -> None:
    """The head counts it, and its round has it before what else happened."""
    assert client.ask("/head")["faults"] == 1
    html = client.html("/round", round=1)
    assert [*html][-2:] == ["what-went-wrong", "what-happened"]
    assert "fallback" in html["what-went-wrong"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"log_agents": 40}, "The log has 40 of 2,100 agents: the numbers in states count every"),
        ({"log_agents": 0}, "The log has 0 of 2,100 agents: the numbers in states count everybody"),
    ],
)
def test_a_log_without_everybody_says_whom_its_numbers_count(
    form: dict[str, Any], message: str, visit: Visit, tmp_path: Path
) -> None:
    """States of everybody and arrows of the sample have a label."""
    Run("epidemic", 2_100, rounds=3, seed=1, **form).keep(tmp_path / "real")
    sections = visit(tmp_path / "real").ask("/round", round=3)["sections"]
    (chart,) = (each for each in sections if each["anchor"] == "the-chart")
    assert chart["explanation"].startswith(message)
    counts = read_log(tmp_path / "real").sql("select agents from states where round = 3").fetchall()
    assert all(f"{count:,} agent" in chart["html"] for (count,) in counts)
    assert any("transitions" in each["html"] for each in sections if each["anchor"] == "numbers")

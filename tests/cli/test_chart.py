"""``prism chart``."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from prism.statechart import Statechart, social_media_chart, social_media_guards
from tests.kit.commands import Prism

WRONG = {
    "no chart": (["show", "nowhere.json"], ["nowhere.json", "no such file"]),
    "unknown format": (["export", "social_media", "--format", "jpg"], ["jpg", "mermaid", "svg"]),
    "lambda as JSON": (
        ["export", "moods:chart", "--format", "json"],
        ["'moods'", "calm --bumped--> angry", "no name"],
    ),
    "output in no folder": (
        ["export", "social_media", "--format", "dot", "-o", "no/such/x.dot"],
        ["no/such/x.dot", "cannot be written", "No such file"],
    ),
}


@pytest.fixture
def charts(prism: Prism, charts_folder: Path) -> Prism:
    """Return ``prism chart``, in a folder with charts."""
    return replace(prism, group=("chart",))


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_line_and_status_2(case: str, charts: Prism) -> None:
    """Wrong input ends with status 2 and one line that names it, and nothing is written."""
    arguments, named = WRONG[case]
    before = sorted(path for path in charts.folder.rglob("*") if "__pycache__" not in path.parts)
    ran = charts(*arguments)
    assert (ran.status, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith("prism: ")
    assert [words for words in named if words not in line] == []
    assert (
        sorted(path for path in charts.folder.rglob("*") if "__pycache__" not in path.parts)
        == before
    )


def test_final_states_are_shown_and_are_no_finding(charts: Prism) -> None:
    """``show`` marks a final state, and ``check`` does not complain that it has no way out."""
    doors = {
        "schema": 2,
        "states": ["shut", "open", "broken"],
        "initial": "shut",
        "final_states": ["broken"],
        "transitions": [
            {"trigger": "push", "source": "shut", "target": "open"},
            {"trigger": "timeout", "source": "open", "target": "shut"},
            {"trigger": "kick", "source": "*", "target": "broken"},
        ],
    }
    (charts.folder / "doors.json").write_text(json.dumps(doors), encoding="utf-8")
    lines = [" ".join(line.split()) for line in charts("show", "doors.json").out.splitlines()]
    assert "broken final" in lines
    assert "shut initial" in lines
    ran = charts("check", "doors.json")
    assert (ran.status, ran.out) == (0, "")


def test_show_prints_states_and_transitions(charts: Prism) -> None:
    """``show`` prints states with their marks and limits, and transitions with their guards."""
    ran = charts("show", "social_media")
    assert (ran.status, ran.err) == (0, "")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    for line in (
        "social_media: 8 states, 27 transitions",
        "idle initial",
        "evaluating decision",
        "resting time-out after 2 ticks",
        "source trigger [guard] / action target",
        "evaluating ignores scrolling",
        "decides [should_engage] composing",
        "composing compose_done [intends_reply] engaging_reply",
    ):
        assert line in lines
    assert max(map(len, ran.out.splitlines())) <= 80


NESTED = """
from enum import StrEnum

from prism.statechart import History, State, Statechart, Transition, done


class S(StrEnum):
    POCKET = "pocket"
    ENGAGING = "engaging"
    READING = "reading"
    REPLYING = "replying"
    SENT = "sent"
    BROKEN = "broken"


def unlock(agent, context):
    pass


moves = [
    Transition("opens", S.POCKET, S.ENGAGING),
    Transition("writes", S.READING, S.REPLYING),
    Transition("sends", S.REPLYING, S.SENT),
    Transition(done(S.ENGAGING), S.ENGAGING, S.POCKET),
    Transition("resumes", S.POCKET, History(S.ENGAGING)),
    Transition("rings", S.ENGAGING, S.READING, internal=True),
    Transition("breaks", "*", S.BROKEN),
]
inside = State(S.ENGAGING, [S.READING, S.REPLYING, S.SENT], entry=unlock)


def made(*more, **options):
    ends = [S.SENT, S.BROKEN]
    states = [S.POCKET, inside, S.BROKEN]
    return Statechart(states, [*moves, *more], S.POCKET, name="phone", final_states=ends, **options)


timed = made(
    Transition("bores", S.READING, S.POCKET, after=5),
    Transition("looks", S.POCKET, S.READING, rate=0.25),
    Transition("drops", S.POCKET, S.BROKEN, probability=0.5),
    timeouts={S.ENGAGING: 9},
)
"""


def test_show_prints_a_nested_chart_as_it_is_written(charts: Prism) -> None:
    """``show`` indents states inside others, and prints each transition once, as written."""
    (charts.folder / "phone.py").write_text(NESTED, encoding="utf-8")
    ran = charts("show", "phone:timed")
    assert (ran.status, ran.err) == (0, "")
    lines = [line.removeprefix(" ").rstrip() for line in ran.out.splitlines()]
    assert [line for line in lines if line.strip("─")] == [
        "phone: 6 states, 10 transitions",
        "state",
        "pocket      initial",
        "engaging    time-out after 9 ticks, entry / unlock",
        "  reading   initial",
        "  replying",
        "  sent      final",
        "broken      final",
        "source    trigger [guard] / action  target",
        "pocket    opens                     engaging",
        "          resumes                   engaging.H",
        "          looks (rate 0.25)         reading",
        "          drops (probability 0.5)   broken",
        "engaging  done.state.engaging       pocket",
        "          rings (internal)          reading",
        "reading   writes                    replying",
        "          bores (after 5)           pocket",
        "replying  sends                     sent",
        "*         breaks                    broken",
    ]


def test_a_world_in_the_place_of_a_chart_is_told(prism: Prism) -> None:
    """The name of a world, given as a chart, leads to the command that shows the world's."""
    said = prism("chart", "show", "rumour")
    assert (said.status, said.out) == (2, "")
    assert "prism world show rumour" in said.err


def test_export_prints_the_format(charts: Prism) -> None:
    """``export`` prints exactly the result of ``format``."""
    ran = charts("export", "social_media", "--format", "svg")
    assert (ran.status, ran.out, ran.err) == (0, f"{social_media_chart():svg}", "")


def test_an_exported_chart_loads_back(charts: Prism) -> None:
    """The social chart's JSON, written to a file, is a chart again, equal to the original."""
    ran = charts("export", "social_media", "--format", "json", "-o", "social.json")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    again = Statechart.from_json(
        (charts.folder / "social.json").read_text("utf-8"), guards=social_media_guards()
    )
    assert again == social_media_chart()
    assert charts("check", "social.json").status == 0


def test_check_lists_findings(charts: Prism) -> None:
    """``check`` prints each finding on a line, with its kind, and ends with status 1."""
    ran = charts("check", "moods:chart")
    assert ran.status == 1
    assert "no time-outs" in ran.err
    kinds = [line.partition(": ")[0] for line in ran.out.splitlines()]
    assert kinds == ["unreachable", "no_way_out", "no_way_out"]
    assert "state 'lost' cannot be reached" in ran.out


def test_check_as_json_lists_the_same(charts: Prism) -> None:
    """``check --json`` prints chart and findings as JSON, with the same statuses."""
    ran = charts("check", "moods:chart", "--json")
    found = json.loads(ran.out)
    assert (ran.status, found["chart"], len(found["findings"])) == (1, "moods", 3)
    assert found["findings"][0]["kind"] == "unreachable"
    assert found["findings"][0]["state"] == "lost"

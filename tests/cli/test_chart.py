"""``prism chart``."""

import importlib
import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prism.cli._chart_argument import chart_from
from prism.errors import InputError
from prism.statechart import social_media_chart
from tests.kit.commands import Prism

MODULE = """
from prism.statechart import Statechart, Transition, state_enum

Mood = state_enum("Mood", ["calm", "angry", "lost"])
bumped = Transition("bumped", Mood("calm"), Mood("angry"), guard=lambda agent, force: force > 3)
chart = Statechart(Mood, [bumped], Mood("calm"), name="moods")


class Charts:
    tidy = Statechart([Mood("calm")], [Transition("go", Mood("calm"), Mood("calm"))], Mood("calm"))


def make():
    return chart


def broken():
    raise KeyError("no")


def wrong():
    return Statechart(Mood, [], "calm")


def needy(settings):
    return chart


number = 3
"""

DOCUMENT = {
    "schema": 1,
    "name": "doors",
    "states": ["open", "shut"],
    "initial": "shut",
    "transitions": [
        {
            "trigger": "push",
            "source": "shut",
            "target": "open",
            "guard": "is_strong",
            "action": "creak",
        },
        {"trigger": "timeout", "source": "open", "target": "shut"},
    ],
    "timeouts": {"open": 3},
}

FILES = {
    "doors.json": json.dumps(DOCUMENT),
    "newer.json": json.dumps({**DOCUMENT, "schema": 9}),
    "unknown.json": json.dumps({**DOCUMENT, "stats": []}),
    "list.json": "[]",
    "truncated.json": '{\n"schema": 1,\n"states": [',
    "twice.json": '{"schema": 1, "schema": 1}',
    "empty.json": "",
    "latin.json": "é",
    "deep.json": "[" * 100_000,
    "chart.txt": "{}",
    "moods.py": MODULE,
    "faulty.py": "import nothing_of_the_kind",
    "raising.py": "1 / 0",
    "syntax.py": "def",
}

NO_CHARTS = {
    "social": ["'social'", "social_media", ".json", "package.module:attribute"],
    "": ["''", "social_media"],
    ":": ["':'", "package.module:attribute"],
    "chart.txt": ["chart.txt", ".json"],
    "nowhere.json": ["nowhere.json", "no such file"],
    "folder.json": ["folder.json", "is a folder"],
    "newer.json": ["newer.json", "schema 9", "newer prism"],
    "unknown.json": ["unknown.json", "'doors'", "'stats'"],
    "list.json": ["list.json", "must be an object"],
    "truncated.json": ["truncated.json", "line 3", "not valid JSON"],
    "twice.json": ["twice.json", "'schema'", "stands twice"],
    "empty.json": ["empty.json", "is empty"],
    "latin.json": ["latin.json", "UTF-8"],
    "deep.json": ["deep.json", "nested too deeply"],
    "long.json": ["long.json", "longer than 10,000,000 characters"],
    "nothing.here:chart": ["there is no module 'nothing'"],
    "moods.here:chart": ["there is no module 'moods.here'"],
    "moods:carht": ["'moods' has no 'carht'"],
    "moods:Charts.messy": ["'Charts' has no 'messy'"],
    "moods:a b": ["'moods:a b'"],
    "moods:number": ["moods:number is int, not a chart"],
    "moods:Mood": ["moods:Mood", "calling it failed"],
    "moods:broken": ["moods:broken", "KeyError", "no"],
    "moods:wrong": ["moods:wrong", "initial state 'calm'"],
    "moods:needy": ["moods:needy", "settings"],
    "faulty:chart": ["importing faulty failed", "nothing_of_the_kind"],
    "raising:chart": ["importing raising failed", "ZeroDivisionError"],
    "syntax:chart": ["importing syntax failed", "SyntaxError"],
}

WRONG = {
    "no chart": (["show", "nowhere.json"], ["nowhere.json", "no such file"]),
    "unknown format": (["export", "social_media", "--format", "png"], ["png", "mermaid", "svg"]),
    "lambda as JSON": (
        ["export", "moods:chart", "--format", "json"],
        ["'moods'", "calm --bumped--> angry", "no name"],
    ),
    "output in no folder": (
        ["export", "social_media", "--format", "dot", "-o", "no/such/x.dot"],
        ["no/such/x.dot", "cannot be written", "No such file"],
    ),
}


def fill(folder: Path) -> None:
    """Put valid and invalid charts into a folder."""
    for name, text in FILES.items():
        (folder / name).write_text(
            text, encoding="latin-1" if name.startswith("latin") else "utf-8"
        )
    (folder / "folder.json").mkdir()


@pytest.fixture
def charts(prism: Prism, folder: Path) -> Prism:
    """Return ``prism chart``, in a folder with charts."""
    return replace(prism, group=("chart",))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder with charts the current one, and forget its modules afterwards."""
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    importlib.invalidate_caches()
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize("text", NO_CHARTS)
def test_invalid_charts_are_refused(text: str, folder: Path) -> None:
    """An invalid chart gives an InputError that names it and says what is wrong."""
    if text == "long.json":
        (folder / text).write_text(" " * 10_000_001, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        chart_from(text)
    assert [words for words in NO_CHARTS[text] if words not in str(caught.value)] == []


@pytest.mark.parametrize("text", ["moods:chart", "moods:make", "moods:Charts.tidy"])
def test_charts_of_modules_in_the_current_folder_are_found(text: str, folder: Path) -> None:
    """A chart, a function that returns one and a class attribute are found in a module."""
    assert "calm" in chart_from(text).states


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


def test_show_prints_states_and_transitions(charts: Prism) -> None:
    """``show`` prints states with their marks and limits, and transitions with their guards."""
    ran = charts("show", "social_media")
    assert (ran.status, ran.err) == (0, "")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    for line in (
        "social_media: 8 states, 27 transitions",
        "idle initial",
        "evaluating decision",
        "resting 2 ticks",
        "source trigger [guard] / action target",
        "evaluating ignores scrolling",
        "decides [should_engage] composing",
        "composing compose_done [intends_reply] engaging_reply",
    ):
        assert line in lines
    assert max(map(len, ran.out.splitlines())) <= 80


def test_show_prints_no_control_characters(charts: Prism) -> None:
    """Control characters and markup are printed as plain text or blanks."""
    states = ["\x1b[31mred", "[bold]x[/bold]", "a\nb"]
    document = {
        **DOCUMENT,
        "states": states,
        "initial": states[0],
        "transitions": [],
        "timeouts": {},
    }
    (charts.folder / "odd.json").write_text(json.dumps(document), encoding="utf-8")
    ran = charts("show", "odd.json")
    assert ran.status == 0
    assert "\x1b" not in ran.out
    assert "[bold]x[/bold]" in ran.out
    assert "a b" in ran.out
    assert "No transitions." in ran.out


def test_export_prints_the_format(charts: Prism) -> None:
    """``export`` prints exactly the result of ``format``."""
    ran = charts("export", "social_media", "--format", "svg")
    assert (ran.status, ran.out, ran.err) == (0, f"{social_media_chart():svg}", "")


def test_an_exported_chart_loads_back(charts: Prism) -> None:
    """The social chart's JSON, written to a file, is a chart again, equal to the original."""
    ran = charts("export", "social_media", "--format", "json", "-o", "social.json")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert chart_from(str(charts.folder / "social.json")) == social_media_chart()


def test_functions_of_a_file_need_no_code(folder: Path) -> None:
    """Guards and actions of a file are shown and written by name, without the functions."""
    doors = chart_from("doors.json")
    assert "push [is_strong] / creak" in [
        element.text for element in ET.fromstring(format(doors, "svg")).iter()
    ]
    assert doors.to_dict()["transitions"] == DOCUMENT["transitions"]


def test_check_finds_nothing_wrong(charts: Prism) -> None:
    """``check`` of a sound chart prints nothing and ends with status 0."""
    ran = charts("check", "doors.json")
    assert (ran.status, ran.out, ran.err) == (0, "", "")


def test_check_lists_findings(charts: Prism) -> None:
    """``check`` prints each finding on a line, with its kind, and ends with status 1."""
    ran = charts("check", "moods:chart")
    assert (ran.status, ran.err) == (1, "")
    kinds = [line.partition(": ")[0] for line in ran.out.splitlines()]
    assert kinds == ["unreachable", "no_way_out", "no_way_out", "no_timeout", "no_timeout"]
    assert "state 'lost' cannot be reached" in ran.out


def test_check_as_json_lists_the_same(charts: Prism) -> None:
    """``check --json`` prints chart and findings as JSON, with the same statuses."""
    ran = charts("check", "moods:chart", "--json")
    found = json.loads(ran.out)
    assert (ran.status, found["chart"], len(found["findings"])) == (1, "moods", 5)
    assert found["findings"][0]["kind"] == "unreachable"
    assert found["findings"][0]["state"] == "lost"


def test_help_explains_what_a_chart_is(charts: Prism) -> None:
    """The help of a command explains its chart argument, and shows an example."""
    shown = " ".join(charts("export", "--help").out.split())
    assert [
        text
        for text in ("CHART", "social_media", "[required]", "prism chart export")
        if text not in shown
    ] == []


def test_a_function_known_by_name_only_says_so(tmp_path: Path) -> None:
    """A guard known by name only says how to load the chart with its functions."""
    (tmp_path / "doors.json").write_text(FILES["doors.json"], encoding="utf-8")
    guard = chart_from(str(tmp_path / "doors.json")).transitions[0].guard
    assert guard is not None
    with pytest.raises(
        ValueError,
        match=r"guard 'is_strong' is known by name only: .*guards=\{'is_strong': function\}",
    ):
        guard(None, None)


def test_the_documented_form_is_a_chart(tmp_path: Path) -> None:
    """The example of the documentation is a chart with the transitions it shows."""
    page = (Path(__file__).parents[2] / "docs" / "charts.md").read_text(encoding="utf-8")
    example = page.partition("```json\n")[2].partition("```")[0]
    (tmp_path / "doors.json").write_text(example, encoding="utf-8")
    doors = chart_from(str(tmp_path / "doors.json"))
    assert list(map(str, doors.transitions)) == [
        "shut --push--> open",
        "shut --timeout--> shut",
        "open --timeout--> shut",
    ]

"""The chart that a user names."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from prism.cli._chart_argument import chart_from
from prism.errors import InputError
from tests.kit.chart_files import DOCUMENT, FILES

NO_CHARTS = {
    "social": ["'social'", "social_media", ".json", "package.module:attribute"],
    "": ["''", "social_media"],
    "nowhere.json": ["nowhere.json", "no such file"],
    "newer.json": ["newer.json", "has schema 9", "reads schema 2"],
    "unknown.json": ["unknown.json", "'doors'", "stats: is unknown; did you mean 'states'?"],
    "truncated.json": ["truncated.json", "line 3", "not valid JSON"],
    "deep.json": ["deep.json", "nested too deeply"],
    "long.json": ["long.json", "longer than 10,000,000 characters"],
    "nothing.here:chart": ["there is no module 'nothing.here' (no 'nothing' on"],
    "moods:carht": ["'moods' has no 'carht'"],
    "moods:number": ["moods:number is int, not a chart"],
    "moods:broken": ["moods:broken", "KeyError", "no"],
    "faulty:chart": ["faulty.py, line 1: importing faulty failed", "nothing_of_the_kind"],
    "syntax:chart": ["syntax.py, line 1: importing syntax failed", "SyntaxError"],
}


@pytest.mark.parametrize("text", NO_CHARTS)
@pytest.mark.sampled(7)
def test_invalid_charts_are_refused(text: str, charts_folder: Path) -> None:
    """An invalid chart gives an InputError that names it and says what is wrong."""
    if text == "long.json":
        (charts_folder / text).write_text(" " * 10_000_001, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        chart_from(text)
    assert [words for words in NO_CHARTS[text] if words not in str(caught.value)] == []


@pytest.mark.parametrize("text", ["moods:chart", "moods:make", "moods:Charts.tidy"])
def test_charts_of_modules_in_the_current_folder_are_found(text: str, charts_folder: Path) -> None:
    """A chart, a function that returns one and a class attribute are found in a module."""
    assert "calm" in chart_from(text).states


def test_functions_of_a_file_need_no_code(charts_folder: Path) -> None:
    """Guards and actions of a file are shown and written by name, without the functions."""
    doors = chart_from("doors.json")
    assert "push [is_strong] / creak" in [
        element.text for element in ET.fromstring(format(doors, "svg")).iter()
    ]
    assert doors.to_dict()["transitions"] == DOCUMENT["transitions"]


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

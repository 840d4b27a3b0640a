"""The chart that a user names."""

from pathlib import Path

import pytest

from prism.cli._chart_argument import chart_from
from tests.kit.chart_files import FILES


@pytest.mark.parametrize("text", ["moods:chart", "moods:make", "moods:Charts.tidy"])
def test_charts_of_modules_in_the_current_folder_are_found(text: str, charts_folder: Path) -> None:
    """A chart, a function that returns one and a class attribute are found in a module."""
    assert "calm" in chart_from(text).states


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

"""Measures, treatments, parameters and own events on the page of a world."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.analysis import read_log
from prism.report import Report, make_report

WriteLog = Callable[..., Path]


@pytest.fixture(scope="module")
def told(rumours: list[Path]) -> Report:
    """Return the report of two runs of one world."""
    return make_report(read_log(*rumours))


@pytest.mark.slow
def test_a_world_has_sections_of_its_own_and_none_of_a_feed(
    market: Path, told: Report, parse: Callable[[str], Any]
) -> None:
    """A page has what its world measured and logged, and no section or number about posts."""
    sold, rumoured = (parse(each.html()) for each in (make_report(read_log(market)), told))
    assert [section.attributes["id"] for section in sold.all("section")] == [
        *("numbers", "parameters", "measures", "events", "chart", "states", "dwell", "agents")
    ]
    assert [section.attributes["id"] for section in rumoured.all("section")] == [
        *("numbers", "parameters", "picture", "measures", "chart", "states"),
        "dwell",
        *("decisions", "agents"),
    ]
    for page in (sold, rumoured):
        shown = " ".join(section.text for section in page.all("section"))
        assert "posts" not in shown
        assert not page.all("div", role="note")


@pytest.mark.slow
def test_a_series_has_its_rounds_and_marks_of_treatments(
    told: Report, parse: Callable[[str], Any]
) -> None:
    """A figure holds each value of the measure, and the rounds of its own run's treatments."""
    assert told.failures == {}
    figures = parse(told.html()).data("figures")
    for number, treated in ((1, 3), (2, 5)):
        rows = [
            row
            for rows in figures[f"figure-measure-{number}-1"]["datasets"].values()
            for row in rows
        ]
        values = {(row["round"], row["value"]) for row in rows if "value" in row}
        measured = told.runs[number - 1].measures
        assert values == set(measured.select("round", "value").iter_rows())
        assert [row for row in rows if "treatment" in row] == [
            {"round": treated, "treatment": "warning"}
        ]


def test_parameters_stand_side_by_side(told: Report, parse: Callable[[str], Any]) -> None:
    """Each parameter is a row with the value of each run."""
    page = parse(told.html())
    (table,) = page.all("table", id="table-parameters")
    assert "friends48" in table.text.replace(" ", "")


@pytest.mark.slow
def test_hostile_names_do_not_break_the_page(
    write_log: WriteLog, make: Any, parse: Callable[[str], Any]
) -> None:
    """Names of measures, events, treatments and parameters are shown as texts, and drawn."""
    bad = "</script><b>-\u2028x"
    events = [
        make.started(world=bad, parameters={bad: bad}),
        make.joined("ada", "a", attributes={bad: bad}),
        make.event("treatment.applied", treatment=bad, parameters={bad: [bad]}),
        make.event("world." + bad, agent_id="ada"),
        make.move("ada", "a", "b"),
        make.event("round.ended", states={}, measures={bad: 1.5, "none": None, "text": bad}),
    ]
    report = make_report(read_log(write_log(events)))
    page = parse(report.html())
    assert {element.text for element in page.all("b")} <= {"Notes"}
    (table,) = page.all("table", id="table-parameters")
    assert "</script><b>" in table.text
    assert report.failures == {}

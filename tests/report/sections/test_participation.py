"""Who takes part."""

import pytest

from prism.analysis import RunLogs, participation
from prism.report import Report
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.participation import PARTICIPATION


def test_shares_are_those_of_the_table(logs: RunLogs, report: Report) -> None:
    """The figure has the three shares of every round, and the table is of all rounds."""
    (facts,) = report.runs
    figures = PageFigures(facts.state_names)
    section = PARTICIPATION.make(facts, "1", figures)
    assert section is not None
    (rows,) = figures.charts["figure-participation-1"].alone()["datasets"].values()
    table = participation(logs).drop_nulls("round")
    assert {(row["round"], row["group"]): row["share"] for row in rows} == {
        (row["round"], group): pytest.approx(row[group])
        for row in table.iter_rows(named=True)
        for group in ("silent", "writing", "creating")
    }
    assert "table-participation-1" in section

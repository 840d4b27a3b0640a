"""Who takes part."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism.analysis import RunLogs, participation, read_log
from prism.report import Report
from prism.report._facts.run_facts import RunFacts, facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.participation import ENGAGEMENT, PARTICIPATION


def test_shares_are_those_of_the_table(logs: RunLogs, report: Report) -> None:
    """The figure has the three shares of every round, and the tables are of all rounds."""
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
    assert all(f"{what}-1" in section for what in ("participation", "views", "rhythm"))


@pytest.mark.slow
def test_log_without_posts_has_no_participation(bare: RunFacts) -> None:
    """A log in which nobody posted has no such section."""
    assert PARTICIPATION.make(bare, "1", PageFigures(())) is None


def test_lorenz_curve_has_the_shares_of_the_agents(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """With all posts by one of four agents, the curve is zero up to three quarters of them."""
    lines = [make.joined(name) for name in "abcd"] + [make.post("d", "p1"), make.post("d", "p2")]
    (facts,), _ = facts_of(read_log(write_log(lines)))
    figures = PageFigures(facts.state_names)
    assert ENGAGEMENT.make(facts, "1", figures) is not None
    datasets = figures.charts["figure-inequality-1"].alone()["datasets"].values()
    curve = max(datasets, key=len)
    assert [(row["agents"], row["share"]) for row in curve] == [
        (pytest.approx(part / 4), pytest.approx(float(part == 4))) for part in range(5)
    ]


def test_log_without_posts_has_no_engagement(bare: RunFacts) -> None:
    """A log in which nobody posted, replied, reshared or liked has no such section."""
    assert ENGAGEMENT.make(bare, "1", PageFigures(())) is None

"""Agents in each state, and how long they stay."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism import Run
from prism.analysis import Log, read_log
from prism.report import make_report
from prism.report._facts.run_facts import facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.states import STATES
from tests.kit.textbook import Moran


def drawn(figures: PageFigures, name: str) -> dict[str, int]:
    """Return the agents in each state of the only bars of a figure."""
    (rows,) = figures.charts[name].alone()["datasets"].values()
    return {row["state"]: row["agents"] for row in rows if row["agents"]}


@pytest.mark.slow
def test_one_chart_has_one_figure(
    write_log: Callable[..., Path], make: Any, parse: Callable[[str], Any]
) -> None:
    """A single chart is not named."""
    (facts,), _ = facts_of(
        read_log(write_log([make.move("ada", "a", "b"), make.move("bo", "a", "c")]))
    )
    figures = PageFigures(facts.state_names)
    assert parse(str(STATES.make(facts, "1", figures))).all("h3") == []
    assert list(figures.charts) == ["figure-states-1"]
    assert drawn(figures, "figure-states-1") == {"b": 1, "c": 1}


@pytest.mark.slow
def test_each_chart_has_its_figure(
    write_log: Callable[..., Path], make: Any, parse: Callable[[str], Any]
) -> None:
    """If several charts drive the agents of a run, each has a figure under its name."""
    names = ("mood", "<b>job</b>")
    lines = [make.move(agent, "a", "b", chart=chart) for chart in names for agent in ("ada", "bo")]
    (facts,), _ = facts_of(read_log(write_log(lines[:3])))
    figures = PageFigures(facts.state_names)
    headings = parse(str(STATES.make(facts, "1", figures))).all("h3")
    assert [heading.text for heading in headings] == [f"By the chart {name}" for name in names]
    assert list(figures.charts) == ["figure-states-1-1", "figure-states-1-2"]
    assert [drawn(figures, name) for name in figures.charts] == [{"b": 2}, {"b": 1}]


def test_states_inside_states_have_a_figure_for_each_level(
    write_log: Callable[..., Path], make: Any, parse: Callable[[str], Any]
) -> None:
    """Of a chart with regions each level, without them all but the last, which is drawn already."""
    inside = {"chart": {"on": ["left", "right"], "left": ["a", "b"], "right": ["c", "d"]}}
    lines = [make.started(charts=inside), make.move("ada", "a+c", "b+c", chart="chart")]
    (facts,), _ = facts_of(read_log(write_log(lines)))
    figures = PageFigures(facts.state_names)
    page = parse(str(STATES.make(facts, "1", figures)))
    assert [heading.text for heading in page.all("h3")] == [
        f"Level {depth} of the chart" for depth in (1, 2, 3)
    ]
    assert [drawn(figures, name) for name in figures.charts] == [
        *({"b+c": 1}, {"on": 1}, {"left": 1, "right": 1}, {"b": 1, "c": 1})
    ]

    flat = [make.started(charts={"chart": {"on": ["a", "b"]}})]
    (facts,), _ = facts_of(read_log(write_log([*flat, make.move("bo", "a", "b", chart="chart")])))
    page = parse(str(STATES.make(facts, "1", PageFigures(facts.state_names))))
    assert [heading.text for heading in page.all("h3")] == ["Level 1 of the chart"]


@pytest.mark.slow
def test_each_chart_has_figures_of_its_own(
    write_log: Callable[..., Path], make: SimpleNamespace, parse: Callable[[str], Any]
) -> None:
    """Where several charts have a state of one name, each has its own figure and table."""
    moves = [
        make.move("x", "busy", "idle", ticks_in_state=ticks, chart=chart)
        for chart, ticks in (("ant", 1), ("bee", 5), ("bee", 3))
    ]
    report = make_report(read_log(write_log(moves)))
    assert report.failures == {}
    (section,) = (each for each in parse(report.html()).all("section", id="dwell"))
    assert "By the chart ant" in section.text
    assert "By the chart bee" in section.text


@pytest.fixture
def at_rates(tmp_path: Path) -> Log:
    """Return the log of a run whose events happen at rates."""
    Run(Moran(), 30, seed=1).keep(tmp_path / "run")
    return read_log(tmp_path / "run")


@pytest.mark.slow
def test_times_of_events_at_rates_are_drawn_in_rounds(at_rates: Log) -> None:
    """Nothing on the page of a run whose events happen at rates speaks of ticks."""
    report = make_report(at_rates)
    assert report.failures == {}
    assert "rounds in the state" in report.html()
    assert "ticks in the state" not in report.html()

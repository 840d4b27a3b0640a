"""Agents in each state, drawn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from prism.analysis import read_log
from prism.report._facts.run_facts import facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.states import make as make_section


def drawn(figures: PageFigures, name: str) -> dict[str, int]:
    """Return the agents in each state of the only bars of a figure."""
    (rows,) = figures.charts[name].alone()["datasets"].values()
    return {row["state"]: row["agents"] for row in rows if row["agents"]}


def test_one_chart_has_one_figure(
    write_log: Callable[..., Path], make: Any, parse: Callable[[str], Any]
) -> None:
    """A single chart is not named."""
    (facts,), _ = facts_of(
        read_log(write_log([make.move("ada", "a", "b"), make.move("bo", "a", "c")]))
    )
    figures = PageFigures(facts.state_names)
    assert parse(str(make_section(facts, "1", figures))).all("h3") == []
    assert list(figures.charts) == ["figure-states-1"]
    assert drawn(figures, "figure-states-1") == {"b": 1, "c": 1}


def test_each_chart_has_its_figure(
    write_log: Callable[..., Path], make: Any, parse: Callable[[str], Any]
) -> None:
    """If several charts drive the agents of a run, each has a figure under its name."""
    names = ("mood", "<b>job</b>")
    lines = [make.move(agent, "a", "b", chart=chart) for chart in names for agent in ("ada", "bo")]
    (facts,), _ = facts_of(read_log(write_log(lines[:3])))
    figures = PageFigures(facts.state_names)
    headings = parse(str(make_section(facts, "1", figures))).all("h3")
    assert [heading.text for heading in headings] == [f"By the chart {name}" for name in names]
    assert list(figures.charts) == ["figure-states-1-1", "figure-states-1-2"]
    assert [drawn(figures, name) for name in figures.charts] == [{"b": 2}, {"b": 1}]

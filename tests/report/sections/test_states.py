"""Agents in each state, and how long they stay."""

from collections.abc import Callable
from math import exp
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism import Run
from prism.analysis import RunLogs, dwell_survival, dwell_times, read_log
from prism.report import make_report
from prism.report._facts.run_facts import facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.states import STATES, fit_table, reaches
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


def test_fit_is_that_of_the_analysis(logs: RunLogs) -> None:
    """Shares are what the survival curve falls by from one tick on; p gives the expected ones."""
    dwelling, visits = dwell_times(logs), dwell_survival(logs)
    fitted = fit_table(visits, dwelling)
    assert (
        fitted["state"].unique().sort().to_list()
        == dwelling.filter(pl.col("p") < 1)["state"].sort().to_list()
    )
    for row in fitted.iter_rows(named=True):
        (p,) = dwelling.filter(state=row["state"])["p"]
        own = visits.filter(pl.col("ticks") >= 0, state=row["state"])
        stays, share, leaving = 1.0, 0.0, 0
        for ticks, exits, at_risk in own.select("ticks", "exits", "at_risk").iter_rows():
            left = stays * exits / at_risk if ticks else 0.0
            stays -= left
            if row["ticks"] <= ticks <= row["until"]:
                share += left
                leaving += exits
        assert row["share"] == pytest.approx(share)
        assert row["visits"] == leaving
        expected = (p * (1 - p) ** (ticks - 1) for ticks in range(row["ticks"], row["until"] + 1))
        assert row["expected"] == pytest.approx(sum(expected))


@given(st.dictionaries(st.integers(0, 400), st.integers(1, 50), min_size=2))
def test_long_visits_are_binned(found: dict[int, int]) -> None:
    """Visits of any length make few bars without gaps, up to the 99th percentile."""
    left = pl.Series(
        [
            1 - sum(n for k, n in found.items() if k <= length) / sum(found.values())
            for length in found
        ]
    )
    visits = pl.DataFrame(
        {"state": "a", "ticks": list(found), "exits": list(found.values()), "survival": left}
    ).sort("ticks")
    timed = visits.filter(pl.col("ticks") > 0)
    total, ticks = timed["exits"].sum(), (timed["ticks"] * timed["exits"]).sum()
    lengths = sorted(length for length, count in found.items() for _ in range(count))
    p99 = lengths[-(-99 * len(lengths) // 100) - 1]
    dwelling = pl.DataFrame({"state": ["a"], "p": [total / ticks], "p99": [p99], "max": [p99]})
    fitted = fit_table(visits, dwelling)
    if total == ticks:
        assert fitted.is_empty()
        return
    assert fitted.height <= 30
    assert fitted["ticks"].to_list() == [1, *(until + 1 for until in fitted["until"][:-1])]
    kept = sum(count for length, count in found.items() if 0 < length <= max(1, p99))
    assert fitted["visits"].sum() == kept
    assert fitted["share"].sum() == pytest.approx(kept / total)
    assert fitted["expected"].sum() == pytest.approx(1 - (1 - total / ticks) ** fitted["until"][-1])


def test_small_figures_side_by_side_reach_equally_far() -> None:
    """The axes of a state reach as far as the longest and most frequent visits of any run."""
    columns = {"state": ["a"], "ticks": [1], "until": [3], "share": [0.5], "expected": [0.4]}
    one = pl.DataFrame(columns)
    other = one.with_columns(until=pl.lit(9, pl.Int64), expected=pl.lit(0.8))
    assert reaches([one, other]).rows() == [("a", 0.55, 9.45, 0.8)]


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
def at_rates(tmp_path: Path) -> RunLogs:
    """Return the log of a run whose events happen at rates."""
    Run(Moran(), 30, seed=1).keep(tmp_path / "run")
    return read_log(tmp_path / "run")


def test_times_of_events_at_rates_are_compared_in_rounds(at_rates: RunLogs) -> None:
    """Bars of equal width reach up to the 99th percentile, beside an exponential distribution."""
    logs = at_rates
    fitted = fit_table(dwell_survival(logs), dwell_times(logs))
    for (_, part), row in zip(
        fitted.group_by("state", maintain_order=True),
        dwell_times(logs).iter_rows(named=True),
        strict=True,
    ):
        assert part["until"][-1] == pytest.approx(row["p99"] or row["max"])
        assert part["expected"].sum() == pytest.approx(1 - exp(-row["rate"] * part["until"][-1]))


@pytest.mark.slow
def test_times_of_events_at_rates_are_drawn_in_rounds(at_rates: RunLogs) -> None:
    """Nothing on the page of a run whose events happen at rates speaks of ticks."""
    report = make_report(at_rates)
    assert report.failures == {}
    assert "rounds in the state" in report.html()
    assert "ticks in the state" not in report.html()

"""The numbers that stand for whole runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.report import Report
from prism.report._sections.numbers import key_numbers, make_numbers
from prism.social import Results
from tests.kit.logs import AGENTS


def test_key_numbers_are_those_of_the_simulation(report: Report, run: tuple[Path, Results]) -> None:
    """The key numbers of a log are those the simulation counted itself."""
    results = run[1]
    found = key_numbers(report.runs[0])
    for name in ("posts", "replies", "reshares", "likes"):
        assert found[name] == getattr(results.totals, name)
    assert found["agents"] == results.agents
    assert found["rounds"] == found["rounds planned"] == len(results.rounds)
    assert found["transitions"] == results.totals()["transitions"]
    assert found["time-outs"] == sum(results.totals()["timeouts"].values())
    assert found["decisions asked"] == results.totals()["decisions_asked"]
    assert found["largest cascade, posts"] == results.cascades[0].size


def test_two_runs_have_a_difference(side_by_side: Report, parse: Callable[[str], Any]) -> None:
    """Two runs have a column of differences, in points for shares, and none for seeds."""
    page = parse(make_numbers(side_by_side.runs).together)
    cells, heads = page.all("td")[1:], [head.text for head in page.all("th", scope="row")]
    rows = {head: cells[3 * place : 3 * place + 3] for place, head in enumerate(heads)}
    first, second, difference = (cell.text for cell in rows["agents"])
    assert (first, second, difference) == (str(AGENTS), "16", str(16 - AGENTS))
    assert [cell.text for cell in rows["seed"]] == ["3", "5", ""]
    assert rows["share of fallbacks"][2].text.endswith(" points")
    assert float(rows["transitions"][2].attributes["data-value"]) == float(
        rows["transitions"][1].attributes["data-value"]
    ) - float(rows["transitions"][0].attributes["data-value"])


@pytest.mark.slow
def test_numbers_that_a_log_lacks_are_left_out(facts: Callable[..., Any], make: Any) -> None:
    """A log without rounds and seed has no such rows; planned rounds show if fewer were made."""
    bare = key_numbers(facts([make.move("ada", "a", "b", round=None, tick=None)]))
    assert bare["rounds"] is None
    assert bare["seed"] is None
    cut = facts([make.started(rounds=9), make.move("ada", "a", "b")], "cut.jsonl")
    assert "rounds planned" in str(make_numbers([cut]).together)


def test_the_log_of_a_loop_has_no_numbers_of_a_feed(facts: Callable[..., Any], make: Any) -> None:
    """A log whose first line names no chart is of no feed, so nobody counts posts and likes."""
    found = key_numbers(facts([make.event("run.started", schema=1), make.move("x", "a", "b")]))
    assert {found[name] for name in ("posts", "likes", "cascades of two posts or more")} == {None}
